"""An operator's command: a row in `config` that a running hub executes with its next batch."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from checkpoints.config import KEY, last_number
from checkpoints.reader import Reader
from checkpoints.store import StateStore, rows_of
from checkpoints.tables import TableName
from streaming.cli.inputs import now
from streaming.cli.output import write_json, write_line
from streaming.core.model.command import CommandName


def append_command(
    reader: Reader,
    command: CommandName,
    argument: str | None,
    at: datetime,
    seen: int | None = None,
) -> int:
    """Append the command and return its number; one that is queued already is not appended twice.

    `seen`: the hub epoch that the operator based it on; None: the last committed one.
    """
    committed = reader.commit.state.hub_epoch if reader.commit else 0
    taken = reader.commit.command_number if reader.commit else 0
    for row in reader.commands():
        same = (row["command"], row["argument"]) == (command, argument)
        if same and row["number"] > taken:
            return int(row["number"])
    fields = {"command": command.value, "argument": argument, "at": at}
    return _append(StateStore(reader.root), fields | {"seen": committed if seen is None else seen})


def append_commands(
    reader: Reader, command: CommandName, ids: Iterable[str], seen: int | None, *, as_json: bool
) -> None:
    """Append one command for each id, and print the numbers."""
    numbers = {id_: append_command(reader, command, id_, now(), seen) for id_ in dict.fromkeys(ids)}
    if as_json:
        write_json({"command": command, "numbers": numbers})
        return
    for id_, number in numbers.items():
        write_line(
            f"{command} {id_}: command {number}; a running hub executes it with its next batch"
        )


def _append(store: StateStore, fields: Mapping[str, object]) -> int:
    """Append under the next free number; retry if another writer takes it first."""
    while True:
        number = last_number(store) + 1
        row = {"number": number, "kind": "command", **fields}
        if store.append_once(TableName.CONFIG, rows_of(TableName.CONFIG, [row]), KEY, number):
            return number
