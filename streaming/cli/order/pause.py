"""`pause` and `resume`: send nothing more to a consumer, or send again after a refused row."""

from collections.abc import Collection
from typing import Annotated

import typer

from checkpoints.reading.reader import Reader
from streaming.cli.appends import appends
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, opened
from streaming.core.model.command import CommandName, TablesOrder
from streaming.core.model.errors import ConfigError, HubError
from streaming.core.model.statuses import AgreementStatus, AwayReason
from streaming.core.state.agreement_state import AgreementState
from streaming.facts.consumers.resync import orderable
from streaming.facts.names import agreement_named, committed
from streaming.terminal.output import write_json, write_line

AgreementName = Annotated[
    str, typer.Argument(metavar="AGREEMENT", help="Its name in the configuration.")
]


PausedTables = Annotated[
    list[str] | None,
    typer.Option("--table", metavar="TABLE", help="Only this table; may be given several times."),
]


@appends(CommandName.PAUSE, CommandName.PAUSE_TABLES)
def pause(
    agreement: AgreementName,
    *,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
    tables: PausedTables = None,
) -> None:
    """Send nothing more to a consumer; what it writes still reaches the others.

    `slackwater resync` ends the pause: it brings the last version of each row that it lacks.
    With --table the other tables go on, and `slackwater resume` with the same ends the pause: it
    brings the table whole.
    """
    from streaming.cli.command import append_named  # noqa: PLC0415  # a refusal does without

    configured, reader = opened(config)
    one = agreement_named(configured, agreement)
    known = orderable(reader, one)
    if tables:
        paused = _paused(reader, agreement)
        if again := sorted(paused.intersection(tables)):
            raise HubError(
                f"{again[0]} is paused in {agreement} already: `slackwater resume {agreement}"
                f" --table {again[0]}` ends it"
            )
        others = configured.tables_of(one) - paused
        order = _order(agreement, tables, others, "is not sent by")
        if order.tables == others:
            raise HubError(
                f"nothing would be left that {agreement} sends: `slackwater pause {agreement}`"
            )
        _append(reader, CommandName.PAUSE_TABLES, order, as_json=as_json)
        return
    _check(known)
    append_named(reader, CommandName.PAUSE, agreement, agreement, "agreement", as_json=as_json)
    if not as_json:
        write_line(f"then {one.consumer} is sent nothing until `slackwater resync {agreement}`")


def _paused(reader: Reader, agreement: str) -> frozenset[str]:
    return committed(reader).paused_tables.get(agreement, frozenset())


def _order(
    agreement: str, tables: Collection[str], among: Collection[str], what: str
) -> TablesOrder:
    """The order for these tables; ConfigError names one that is not among them."""
    for table in tables:
        if table not in among:
            listed = f"use one of {', '.join(sorted(among))}" if among else "no table is"
            raise ConfigError(f"{table} {what} {agreement}: {listed}")
    return TablesOrder(agreement, frozenset(tables))


def _append(reader: Reader, name: CommandName, order: TablesOrder, *, as_json: bool) -> None:
    from streaming.cli.command import append_command, queued_text  # noqa: PLC0415  # a refusal does without

    number, tables = append_command(reader, name, order.text()), sorted(order.tables)
    if as_json:
        found = {"command": name, "agreement": order.agreement, "tables": tables}
        write_json(found | {"number": number})
    else:
        write_line(queued_text(name, f"{order.agreement} {', '.join(tables)}", number))


def _check(known: AgreementState) -> None:
    """HubError if nothing is sent to the consumer anyway."""
    if known.status is AgreementStatus.REFUSED:
        raise HubError(
            f"{known.name} is {known.status_text}: it is sent nothing until `slackwater resume`"
        )
    if known.detail == AwayReason.PAUSED:
        raise HubError(f"{known.name} is paused already: `slackwater resync {known.name}` ends it")


AtOnce = Annotated[
    bool,
    typer.Option(
        "--now",
        help="Send at once, this time, what waits by its delay or hours; of a delayed one a copy"
        " too.",
    ),
]


@appends(CommandName.RESUME, CommandName.RESUME_TABLES, CommandName.SEND_NOW)
def resume(
    agreement: AgreementName,
    *,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
    at_once: AtOnce = False,
    tables: PausedTables = None,
) -> None:
    """Send to an agreement again that stopped at a refused row: first what was refused.

    With --table it sends a table again that was paused, as a whole.

    With --now it lets go what an agreement with `delay_s` or `hours` holds back: all that is
    committed when a batch takes the command, once. If the consumer of a delayed one needs a copy,
    that begins.
    """
    from streaming.cli.command import append_named  # noqa: PLC0415  # a refusal does without

    configured, reader = opened(config)
    one = agreement_named(configured, agreement)
    if tables:
        order = _order(agreement, tables, _paused(reader, agreement), "is not paused in")
        _append(reader, CommandName.RESUME_TABLES, order, as_json=as_json)
        return
    if at_once:
        if not one.times.is_limited:
            raise HubError(
                f"{agreement} has no delay_s and no hours, so nothing waits that could be sent now"
            )
        orderable(reader, one)
        name = CommandName.SEND_NOW
        append_named(reader, name, agreement, agreement, "agreement", as_json=as_json)
        return
    known = committed(reader).agreements.get(agreement, AgreementState(agreement, 0))
    if known.status is not AgreementStatus.REFUSED:
        raise HubError(
            f"{agreement} is {known.status_text}: it has not stopped at a refused row, so there is"
            " nothing to resume"
        )
    append_named(reader, CommandName.RESUME, agreement, agreement, "agreement", as_json=as_json)
