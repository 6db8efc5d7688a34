"""The columns of an item that its row has no value of: they get their default.

An UPDATE of SQLite knows no DEFAULT, so the value is written.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from connectors.sqlite.schema.catalog import DeclaredColumn
from connectors.sqlite.values.spellings import Stored
from streaming.core.records.record import Item


@dataclass(slots=True)
class ColumnDefaults:
    """The default of each column of a table but the key's; each is evaluated once, if at all."""

    columns: Mapping[str, DeclaredColumn]
    values: dict[str, Stored] = field(default_factory=dict)

    def of(self, item: Item) -> dict[str, Stored]:
        """The defaults of an item's unset columns; one that the table lacks comes with its own."""
        return {name: self._default(name) for name in item.unset if name in self.columns}

    def _default(self, name: str) -> Stored:
        if name not in self.values:
            self.values[name] = self.columns[name].default_value
        return self.values[name]
