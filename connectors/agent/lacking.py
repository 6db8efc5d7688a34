"""The columns that a replica's table lacks: a row that has a value there waits at the hub.

It is refused with the code `column`, and the agent says which columns those are. Once they are in
the table it says so too, and the hub sends the rows again (docs/protocol.md, Refused rows).
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from connectors import wire
from streaming.core.model.errors import WireError
from streaming.core.model.table import Table


class LackingColumnError(WireError):
    """The table has no such column."""


def present_part(table: Table, there: Collection[str]) -> Table:
    """The table with those of its columns that the database has, by their names there.

    The key stays whole, and so does a name that differs in case only: both are mistakes.
    """
    names = {name.lower() for name in there}
    columns = {
        name: kind
        for name, kind in table.columns.items()
        if name in table.key or name.lower() in names
    }
    return table if len(columns) == len(table.columns) else replace(table, columns=columns)


def lacking_text(name: str) -> str:
    """What an agent says of a configured column that its table lacks."""
    return (
        f"column {name} is configured, and the table has none: add it (ALTER TABLE); until then"
        " each row that others write with it waits at the hub, and goes on by itself afterwards"
    )


@dataclass(slots=True)
class LackingColumns:
    """Of one table as its database has it; `configured`: what it has not of the configuration.

    `met`: columns of items that are not configured here.
    """

    table: Table
    configured: frozenset[str] = frozenset()
    met: set[str] = field(default_factory=set)

    @property
    def named(self) -> set[str]:
        """All of them, each as table.column."""
        return {f"{self.table.name}.{one}" for one in {*self.configured, *self.met}}

    def check(self, image: str) -> None:
        """LackingColumnError: an image or key has a column that the table lacks."""
        unknown = [name for name in wire.loads(image) if name not in self.table.columns]
        if not unknown:
            return
        self.met.update(unknown)
        new = [name for name in unknown if name not in self.configured]
        what = (
            "configure it for this agent too (slackwater agent --config), and start it again"
            if new
            else "add it (ALTER TABLE), and the row goes on by itself"
        )
        names = ", ".join(new or unknown)
        raise LackingColumnError(f"table {self.table.name} has no column {names} here: {what}")


def all_lacking(tables: Iterable[LackingColumns]) -> tuple[str, ...]:
    """The columns that these tables lack, each as table.column."""
    return tuple(sorted({name for one in tables for name in one.named}))
