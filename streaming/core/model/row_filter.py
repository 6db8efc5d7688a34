"""Which rows of a table a consumer is shown; how that is decided, core does not know."""

from collections.abc import Sequence
from typing import Protocol


class RowFilter(Protocol):
    """Decides for each row by its image alone, so every part of the hub decides the same."""

    def shown(self, images: Sequence[str | None]) -> list[bool]:
        """Mark the rows that are shown, by their images; None is no row."""

    def surely_hidden(self, images: Sequence[str | None]) -> list[bool]:
        """Mark the images that have all columns that decide, and are not shown."""
