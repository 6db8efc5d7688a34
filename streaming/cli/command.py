"""An operator's command: a row in `config` that a running hub takes with its next batch."""

from datetime import datetime

from checkpoints.config import KEY, last_number
from checkpoints.reader import Reader
from checkpoints.store import Store, rows_of
from checkpoints.tables import TableName


def ask_hub(reader: Reader, command: str, argument: str | None, at: datetime) -> int:
    """Append the command and give its number; one that waits already is not asked twice."""
    taken = reader.commit.command_number if reader.commit else 0
    for row in reader.commands():
        same = (row["command"], row["argument"]) == (command, argument)
        if same and row["number"] > taken:
            return int(row["number"])
    return _append(Store(reader.root), command, argument, at)


def _append(store: Store, command: str, argument: str | None, at: datetime) -> int:
    """Take the next number; where another writer is faster, the one after it."""
    while True:
        number = last_number(store) + 1
        row = {
            "number": number,
            "kind": "command",
            "at": at,
            "command": command,
            "argument": argument,
        }
        if store.append_once(TableName.CONFIG, rows_of(TableName.CONFIG, [row]), KEY, number):
            return number
