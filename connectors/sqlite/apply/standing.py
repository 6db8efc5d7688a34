"""Whether a row stands as it was sent, in a table where the user's triggers may prevent it.

A BEFORE trigger lets a statement pass without its effect by RAISE(IGNORE); an AFTER trigger may
change or delete the row that was written. Neither is an error of SQLite's.
"""
# ruff: noqa: S608 every name is quoted

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from connectors.sqlite import sql
from connectors.sqlite.schema.user_triggers import UserTrigger
from connectors.sqlite.values.spellings import Stored
from streaming.core.model.errors import WireError

SHOWN_COLUMNS = 5
"""No more columns are named in a message."""


class NotStandingError(WireError):
    """The database took the statement, and the row does not stand as it was sent."""


@dataclass(frozen=True, slots=True)
class StandingCheck:
    """Reads a row back that was written; `triggers`: the user's on its table, at least one."""

    table: str
    triggers: Sequence[UserTrigger]

    def check_written(
        self,
        connection: sqlite3.Connection,
        same: Mapping[str, str],
        where: str,
        values: Sequence[Stored],
        event: str,
    ) -> None:
        """NotStandingError unless the row is there with its values.

        `same`: column -> the condition that it holds the value that was sent.
        """
        conditions = ", ".join(["1", *same.values()])
        query = f"SELECT {conditions} FROM {sql.name(self.table)} WHERE {where}"
        row = connection.execute(query, values).fetchone()
        if row is None:
            raise NotStandingError(f"the row is not there: {self._by(event)}")
        wrong = [name for name, holds in zip(same, row[1:], strict=True) if not holds]
        if wrong:
            named = ", ".join(wrong[:SHOWN_COLUMNS]) + (", ..." if wrong[SHOWN_COLUMNS:] else "")
            raise NotStandingError(f"not stored as it was sent ({named}): {self._by(event)}")

    def check_deleted(
        self, connection: sqlite3.Connection, where: str, key: Sequence[Stored]
    ) -> None:
        """NotStandingError if there is a row that this condition holds for."""
        query = f"SELECT 1 FROM {sql.name(self.table)} WHERE {where}"
        if connection.execute(query, key).fetchone() is not None:
            raise NotStandingError(f"the row is still there: {self._by('delete')}")

    def _by(self, event: str) -> str:
        """The trigger, or those that it may be: as near as their texts show."""
        on = f"of table {self.table}"
        fired = [one for one in self.triggers if one.event == event and not one.is_guarded]
        likely = [one for one in fired if one.ignores] or fired
        if not likely:
            return f"a trigger {on} prevents it"
        names = " or ".join(f"trigger {one.name}" for one in likely)
        return f"{names} {on} prevents it; give it a condition that lets this row pass"
