"""`chepoch` and `recoverpacket`: set the row of a consumer in the epoch number matrix."""

from dataclasses import asdict
from typing import Annotated

import typer

from checkpoints.reading.reader import Reader
from streaming.cli.appends import appends
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, confirm, now, opened
from streaming.core.model.command import CommandName, RowOrder
from streaming.core.model.errors import ConfigError
from streaming.core.replay.span import parse_moment
from streaming.facts.matrix.chepoch import RowChange, by_numbers, by_own_word, by_time
from streaming.terminal.output import write_json, write_line, write_sentence

RowName = Annotated[
    str, typer.Argument(metavar="NAME", help="The replica, or the agreement that sends to it.")
]
Numbers = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ORIGIN=NUMBER]...", help="The columns to be set, as in alpha=950."),
]
Actual = Annotated[
    bool, typer.Option("--actual", help="Set it to what the replica itself has acknowledged.")
]
RaiseOnly = Annotated[bool, typer.Option("--raise-only", help="Leave it if it would be lowered.")]
Force = Annotated[bool, typer.Option("--force", help="Do it without asking.")]
Since = Annotated[
    str,
    typer.Option(
        "--since",
        metavar="TIME",
        help="The time of the last packet that surely arrived, as in 2026-11-24T14:05:00Z.",
    ),
]


@appends(CommandName.CHEPOCH, when="once it is confirmed")
def chepoch(
    name: RowName,
    numbers: Numbers = None,
    *,
    actual: Actual = False,
    raise_only: RaiseOnly = False,
    force: Force = False,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
) -> None:
    """Set the row of a replica in the matrix: what lies behind it is sent again.

    For what was sent and did not arrive. Too low a number costs bandwidth only, because a replica
    skips what it has; it is never set below what the replica has acknowledged.
    """
    if actual == bool(numbers):
        raise ConfigError("give either --actual or the columns to be set, as in alpha=950")
    columns = [*map(_column, numbers or ())]
    wanted = dict(columns)
    if len(wanted) < len(columns):
        raise ConfigError("a column is given twice: name each origin once")
    configured, reader = opened(config)
    found = (
        by_own_word(configured, reader, name, raise_only=raise_only)
        if actual
        else by_numbers(configured, reader, name, wanted, raise_only=raise_only)
    )
    _carry_out(reader, found, force=force, as_json=as_json)


@appends(CommandName.CHEPOCH, when="once it is confirmed")
def recoverpacket(
    name: RowName,
    *,
    since: Since,
    force: Force = False,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
) -> None:
    """Set the row of a replica to what it was before a time, so that all since is sent again."""
    moment = parse_moment(since)
    if moment.time_ms is None:
        raise ConfigError(
            f"--since needs a time with its zone, as in 2026-11-24T14:05:00Z: {since}"
        )
    if moment.time_ms > now().timestamp() * 1000:
        raise ConfigError(
            f"{since} is in the future, and nothing was sent since: name the time of the last"
            " packet that surely arrived"
        )
    configured, reader = opened(config)
    found = by_time(configured, reader, name, moment.time_ms)
    _carry_out(reader, found, force=force, as_json=as_json)


def _column(text: str) -> tuple[str, int]:
    origin, _, number = text.partition("=")
    if not origin or not number.isdecimal() or len(number) > 18:
        raise ConfigError(f"{text!r} is no column: write the origin's name and a number, alpha=950")
    return origin, int(number)


def _carry_out(reader: Reader, found: RowChange, *, force: bool, as_json: bool) -> None:
    """Show what changes, ask, and append the order."""
    if not as_json:
        _show(found)
    if found.order is not None and not force:
        if as_json:
            raise ConfigError("--json asks nothing: give --force as well")
        confirm(f"Change the row of {found.consumer}?")
    number = None if found.order is None else _append(reader, found.order)
    if as_json:
        write_json(
            {**asdict(found), "order": None, "command": CommandName.CHEPOCH, "number": number}
        )
    elif number is not None:
        write_line(f"Epoch row successfully set: command {number}; a running hub executes it with")
        write_line("its next batch")


def _append(reader: Reader, order: RowOrder) -> int:
    from streaming.cli.command import append_command  # noqa: PLC0415  # a refusal does without

    return append_command(reader, CommandName.CHEPOCH, order.text())


def _show(found: RowChange) -> None:
    if found.is_own_word:
        write_sentence(
            f"{found.consumer} has acknowledged hub epoch {found.after}: its row is not set below"
        )
    if found.order is None:
        write_sentence(f"the row of {found.consumer} stays as it is, at hub epoch {found.before}")
        return
    if found.begins_resync:
        write_sentence(f"a resync of {found.consumer} is under way, which begins again")
    width = max((len(one.origin) for one in found.entries), default=0)
    for one in found.entries:
        name = f"{one.origin:<{width}}"
        write_line(f"Entry for {name} changed from: {one.before} to {one.after}")
    if not found.entries:
        write_sentence(
            f"no number changes, but what was refreshed since hub epoch {found.after} is sent again"
        )
