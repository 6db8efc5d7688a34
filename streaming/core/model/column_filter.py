"""Which columns of a table a replica has; what the others hold is neither sent to it nor taken."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from json.encoder import encode_basestring

_MEMBER = re.compile(r'("(?:[^"\\]|\\.)*"):("(?:[^"\\]|\\.)*"|[^,}"]+)')
"""A member of a canonical image. Each quote of the text begins or ends a text that one matches."""


@dataclass(frozen=True)
class ColumnFilter:
    """The columns that are sent, those of the key among them."""

    columns: frozenset[str]
    _texts: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Write the names as they stand in an image."""
        object.__setattr__(self, "_texts", frozenset(map(encode_basestring, self.columns)))

    def shown(self, image: str | None) -> str | None:
        """Return a canonical image with these columns alone, of those that it has."""
        if image is None:
            return None
        found = _MEMBER.findall(image)
        return "{" + ",".join([f"{n}:{value}" for n, value in found if n in self._texts]) + "}"

    def all_shown(self, images: Sequence[str | None]) -> list[str | None]:
        """Return these images with these columns alone."""
        return [self.shown(image) for image in images]
