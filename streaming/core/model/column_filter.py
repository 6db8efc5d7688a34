"""Which columns of a table a replica has; what the others hold is neither sent to it nor taken."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from json.encoder import encode_basestring

from streaming.core.model.mask import ColumnMask

_MEMBER = re.compile(r'("(?:[^"\\]|\\.)*"):("(?:[^"\\]|\\.)*"|[^,}"]+)')
"""A member of a canonical image. Each quote of the text begins or ends a text that one matches."""


@dataclass(frozen=True)
class ColumnFilter:
    """The columns that are sent, those of the key among them, and masks in place of some values.

    What has a mask its replica may not write.
    """

    columns: frozenset[str]
    masks: Mapping[str, ColumnMask] = field(default_factory=dict)
    _texts: frozenset[str] = field(init=False, repr=False, compare=False)
    _masks: Mapping[str, Callable[[str], str]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Write the names as they stand in an image."""
        masks = {encode_basestring(name): mask.of for name, mask in self.masks.items()}
        object.__setattr__(self, "_texts", frozenset(map(encode_basestring, self.columns)))
        object.__setattr__(self, "_masks", masks)

    def shown(self, image: str | None) -> str | None:
        """Return a canonical image as it is sent: with these columns alone, of those it has."""
        if image is None:
            return None
        found = [one for one in _MEMBER.findall(image) if one[0] in self._texts]
        if self._masks:
            found = [(n, self._masks[n](v) if n in self._masks else v) for n, v in found]
        return "{" + ",".join([f"{name}:{value}" for name, value in found]) + "}"

    def all_shown(self, images: Sequence[str | None]) -> list[str | None]:
        """Return these images with these columns alone."""
        return [self.shown(image) for image in images]
