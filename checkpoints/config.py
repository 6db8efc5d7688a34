"""Table `config`: each version of the configuration, operators' commands, and comparisons."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.dataset as ds

from checkpoints import query
from checkpoints.commit.epochs import Plan, plan_of
from checkpoints.store import StateStore, rows_of
from checkpoints.tables import APPLIED, TableName
from checkpoints.times import time_of
from streaming.core.access.root import StateRoot
from streaming.core.model.command import Command, CommandName

COMMANDS_MAX = 10_000
"""How many commands a batch carries out at most."""
KEY = "config"
"""The application transaction under which a number of this table is taken."""


@dataclass(frozen=True, slots=True)
class StoredConfig:
    """A version of the configuration as JSON; `is_applied`: by `slackwater config apply`."""

    version: int
    document: str
    is_applied: bool


def store_configuration(store: StateStore, document: str, at_ms: int) -> int:
    """The version of this configuration; a new one if it is not the last that was stored."""
    while True:
        number, last = last_number(store) + 1, last_version(store)
        if last and settings_document(store, last) == document:
            return last
        if _has_stored(store, number, "config", document, at_ms):
            return number


def apply_configuration(
    store: StateStore, document: str, compared_with: int, at_ms: int
) -> int | None:
    """Store the configuration as the next version, which a running hub takes over; its number.

    None: `compared_with` is not the last version any more, and nothing is stored.
    """
    while True:
        number = (
            last_number(store) + 1
        )  # before the look: what is stored behind it takes this number
        if last_version(store) != compared_with:
            return None
        if _has_stored(store, number, "config", document, at_ms, APPLIED):
            return number


def store_comparison(store: StateStore, document: str, at_ms: int) -> int:
    """Append what a round of a comparison found, or why it could not be; its number."""
    while True:
        number = last_number(store) + 1
        if _has_stored(store, number, "comparison", document, at_ms):
            return number


def _has_stored(
    store: StateStore,
    number: int,
    kind: str,
    document: str,
    at_ms: int,
    argument: str | None = None,
) -> bool:
    """Append a row; False: its number is taken, and nothing is appended."""
    row = {
        "number": number,
        "kind": kind,
        "at": time_of(at_ms),
        "argument": argument,
        "document": document,
    }
    return store.append_once(TableName.CONFIG, rows_of(TableName.CONFIG, [row]), KEY, number)


def append_commands(store: StateStore, commands: Sequence[Mapping[str, object]]) -> int:
    """Append commands under the next free numbers; the first of them, 0 of none."""
    while commands:
        first = last_number(store) + 1
        rows = [{"number": n, "kind": "command", **one} for n, one in enumerate(commands, first)]
        last, appended = first + len(rows) - 1, rows_of(TableName.CONFIG, rows)
        if store.append_once(TableName.CONFIG, appended, KEY, last, first=first):
            return first
    return 0


def last_number(store: StateStore) -> int:
    """The last number that was taken, over all kinds."""
    return store.refreshed(TableName.CONFIG).transaction_version(KEY) or 0


def last_version(store: StateStore) -> int:
    """The number of the last configuration; 0: none was stored."""
    store.refreshed(TableName.CONFIG)
    rows = store.read(TableName.CONFIG, ds.field("kind") == "config", ["number"])
    return max(rows["number"].to_pylist(), default=0)


def last_applied(store: StateStore) -> int:
    """The number of the last configuration that `config apply` stored; 0: none was."""
    is_applied = (ds.field("kind") == "config") & (ds.field("argument") == APPLIED)
    rows = store.read(TableName.CONFIG, is_applied, ["number"])
    return max(rows["number"].to_pylist(), default=0)


def settings_document(store: StateStore, version: int) -> str | None:
    """The configuration of this version as JSON, or None."""
    rows = store.read(TableName.CONFIG, ds.field("number") == version, ["document"])
    return next(iter(rows["document"].to_pylist()), None)


def documents(root: StateRoot) -> list[str]:
    """Every configuration that was stored, the oldest first; none where there is no state yet."""
    return [one.document for one in stored_versions(root)]


def stored_versions(root: StateRoot) -> list[StoredConfig]:
    """Every version that was stored, the oldest first; none where there is no state yet."""
    table = query.open_table(root, TableName.CONFIG)
    where = query.equals({"kind": "config"})
    columns = ["number", "document", "argument"]
    rows = query.select(table, TableName.CONFIG, columns=columns, where=where, order_by="number")
    return [
        StoredConfig(row["number"], row["document"], row["argument"] == APPLIED)
        for row in rows.to_pylist()
        if row["document"] is not None
    ]


def next_commands(store: StateStore, after: int) -> tuple[Command, ...]:
    """What the next batch takes: the first commands above `after`, in order, COMMANDS_MAX at most.

    Those that only a later version knows are left out. A batch ends with an `undo`: the next one
    reads in the tables what it has written.
    """
    found = _commands(store, ds.field("number") > after)[:COMMANDS_MAX]
    undo = next((n for n, one in enumerate(found, 1) if one.name is CommandName.UNDO), None)
    return tuple(found[:undo])


def commands_numbered(store: StateStore, numbers: Collection[int]) -> dict[int, Command]:
    """Number -> command, of those that a plan takes; one that only a later version knows is absent.

    The numbers of a plan stand close together.
    """
    if not numbers:
        return {}
    number, taken = ds.field("number"), frozenset(numbers)
    found = _commands(store, (number >= min(taken)) & (number <= max(taken)))
    return {one.number: one for one in found if one.number in taken}


def plan_with_commands(store: StateStore, row: Mapping[str, Any]) -> Plan:
    """The plan that a row of `epochs` holds; StateError as plan_of says."""
    return plan_of(row, commands_numbered(store, row["commands"] or ()))


def commands_named(store: StateStore, *names: CommandName) -> list[Command]:
    """All commands of these names, in order, whether the hub has taken them or not."""
    return _commands(store, ds.field("command").isin([*names]))


def _commands(store: StateStore, which: ds.Expression) -> list[Command]:
    store.refreshed(TableName.CONFIG)
    where = (ds.field("kind") == "command") & which
    rows = store.read(TableName.CONFIG, where, ["number", "command", "argument", "seen"])
    return [
        Command(row["number"], CommandName(row["command"]), row["argument"], row["seen"])
        for row in rows.sort_by("number").to_pylist()
        if row["command"] in _KNOWN
    ]


_KNOWN = {name.value for name in CommandName}
