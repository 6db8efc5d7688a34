"""Rows as they stand behind the last committed batch: of the window, or looked up."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from streaming.core.model.change import RowKey
from streaming.core.model.row import RowState, with_image
from streaming.stages.window import Window

LookUp = Callable[[Collection[RowKey]], Mapping[RowKey, RowState]]
"""Looks up rows that the window does not hold, with images; unknown ones may be left out."""
LookUpImages = Callable[[Mapping[RowKey, RowState]], Mapping[RowKey, str | None]]
"""Looks up the images of row versions that the window holds."""


@dataclass(frozen=True, slots=True)
class RowsAt:
    """Rows as they stand behind the last committed batch: of the window, or looked up."""

    window: Window
    look_up: LookUp
    look_up_images: LookUpImages

    def rows(self, keys: Collection[RowKey]) -> dict[RowKey, RowState]:
        """These rows; images only of those that are looked up."""
        known = self.window.held(keys)
        return {**self._others(keys, known), **known}

    def with_images(self, keys: Collection[RowKey]) -> dict[RowKey, RowState]:
        """These rows with images."""
        known = self.window.held(keys)
        seen = self.look_up_images(known) if known else {}
        mine = {key: with_image(row, seen.get(key)) for key, row in known.items()}
        return {**self._others(keys, known), **mine}

    def _others(
        self, keys: Collection[RowKey], known: Collection[RowKey]
    ) -> Mapping[RowKey, RowState]:
        older = [key for key in keys if key not in known]
        return self.look_up(older) if older else {}
