"""An operator's command: a row in `config` that a running hub takes with its next batch."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from checkpoints.config import KEY, last_number
from checkpoints.reader import Reader
from checkpoints.store import StateStore, rows_of
from checkpoints.tables import TableName
from streaming.cli.inputs import now
from streaming.cli.output import write_json, write_line
from streaming.core.model.command import CommandName


def ask_hub(
    reader: Reader,
    command: CommandName,
    argument: str | None,
    at: datetime,
    seen: int | None = None,
) -> int:
    """Append the command and give its number; one that waits already is not asked twice.

    `seen`: the hub epoch that the operator looked at; None: the last one that is committed.
    """
    committed = reader.commit.state.hub_epoch if reader.commit else 0
    taken = reader.commit.command_number if reader.commit else 0
    for row in reader.commands():
        same = (row["command"], row["argument"]) == (command, argument)
        if same and row["number"] > taken:
            return int(row["number"])
    asked = {"command": command.value, "argument": argument, "at": at}
    return _append(StateStore(reader.root), asked | {"seen": committed if seen is None else seen})


def ask_all(
    reader: Reader, command: CommandName, ids: Iterable[str], seen: int | None, *, as_json: bool
) -> None:
    """Give one command for each id, and say so."""
    numbers = {id_: ask_hub(reader, command, id_, now(), seen) for id_ in dict.fromkeys(ids)}
    if as_json:
        write_json({"command": command, "numbers": numbers})
        return
    for id_, number in numbers.items():
        write_line(f"{command} {id_}: command {number}; a running hub takes it with its next batch")


def _append(store: StateStore, asked: Mapping[str, object]) -> int:
    """Take the next number; where another writer is faster, the one after it."""
    while True:
        number = last_number(store) + 1
        row = {"number": number, "kind": "command", **asked}
        if store.append_once(TableName.CONFIG, rows_of(TableName.CONFIG, [row]), KEY, number):
            return number
