"""An operator's command: a row in `config` that a running hub executes with its next batch."""

from collections.abc import Collection, Iterable, Mapping

from checkpoints import config
from checkpoints.reading.reader import Reader
from checkpoints.store import StateStore
from streaming.cli.inputs import now
from streaming.core.model.command import CommandName
from streaming.core.text.wording import as_count
from streaming.terminal.output import write_json, write_line

NAMED = 20
"""How many commands are listed one by one."""


def append_command(
    reader: Reader,
    command: CommandName,
    argument: str | None,
    seen: int | None = None,
) -> int:
    """Append the command and return its number; one that is queued already is not appended twice.

    `seen`: the hub epoch that the operator based it on; None: the last committed one.
    """
    return _numbers(reader, command, [argument], seen)[argument]


def append_named(
    reader: Reader, command: CommandName, argument: str, name: str, of: str, *, as_json: bool
) -> None:
    """Append the command and print its number; `of`: of what `name` is, such as "agreement"."""
    number = append_command(reader, command, argument)
    if as_json:
        write_json({"command": command, of: name, "number": number})
    else:
        write_line(queued_text(command, name, number))


def queued_text(command: CommandName, name: str | None, number: int) -> str:
    """What is said of a command that is appended."""
    return f"{command} {name}: command {number}; a running hub executes it with its next batch"


def appended(
    reader: Reader, command: CommandName, arguments: Collection[str], seen: int
) -> list[int]:
    """Append one command for each argument; their numbers, in order."""
    numbers = _numbers(reader, command, list(dict.fromkeys(arguments)), seen)
    return [numbers[one] for one in arguments]


def append_anew(reader: Reader, command: CommandName, argument: str) -> None:
    """Append the command though it is queued already: one in between has undone it."""
    given = {"command": command.value, "argument": argument, "at": now()}
    config.append_commands(StateStore(reader.root), [given | {"seen": _committed(reader)}])


def append_commands(
    reader: Reader,
    command: CommandName,
    ids: Iterable[str],
    seen: int | None,
    *,
    as_json: bool,
    shown: Mapping[str, str] | None = None,
) -> None:
    """Append one command for each id, and print the numbers; `shown`: id -> its words."""
    numbers = _numbers(reader, command, dict.fromkeys(ids), seen)
    if as_json:
        write_json({"command": command, "numbers": numbers})
        return
    if len(numbers) > NAMED:
        write_line(
            f"{command} {as_count(len(numbers), 'record')}: commands {min(numbers.values())} to"
            f" {max(numbers.values())}; a running hub executes them with its next batches"
        )
        return
    for id_, number in numbers.items():
        write_line(queued_text(command, (shown or {}).get(id_ or "", id_), number))


def _numbers(
    reader: Reader, command: CommandName, arguments: Collection[str | None], seen: int | None
) -> dict[str | None, int]:
    """Argument -> the number of its command; those that are not queued yet are appended."""
    taken = reader.commit.command_number if reader.commit else 0
    queued = {
        row["argument"]: int(row["number"])
        for row in reader.commands()
        if row["command"] == command and row["number"] > taken
    }
    fields = {
        "command": command.value,
        "at": now(),
        "seen": _committed(reader) if seen is None else seen,
    }
    new = [one for one in arguments if one not in queued]
    first = config.append_commands(
        StateStore(reader.root), [fields | {"argument": one} for one in new]
    )
    given = queued | {one: number for number, one in enumerate(new, first)}
    return {one: given[one] for one in arguments}


def _committed(reader: Reader) -> int:
    return reader.commit.state.hub_epoch if reader.commit else 0
