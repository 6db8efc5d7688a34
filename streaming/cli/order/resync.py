"""`resync`: bring a consumer what it lacks as rows, or show how far that is."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer

from streaming.cli.appends import appends
from streaming.cli.exit_codes import cannot_say
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, now, opened
from streaming.core.model.command import CommandName, ResyncOrder
from streaming.core.model.errors import ConfigError
from streaming.core.text.wording import as_count
from streaming.facts.consumers.resync import ConsumerResync, PlannedResync, planned_resync, resyncs
from streaming.terminal.output import write_json, write_line, write_sentence, write_table

STATUS = "status"
"""The argument that shows what there is; an agreement of this name takes an option beside it."""

Which = Annotated[
    str | None,
    typer.Argument(
        metavar="AGREEMENT|status",
        help="Its name in the configuration; `status` or nothing: show all that are under way.",
    ),
]
Full = Annotated[
    bool,
    typer.Option(
        "--full", help="Copy all rows of all its tables; rows that the hub has not are deleted."
    ),
]
Tables = Annotated[
    list[str] | None,
    typer.Option(
        "--table", metavar="TABLE", help="Copy all rows of this table; can be given repeatedly."
    ),
]


@appends(CommandName.RESYNC, when="with the name of an agreement")
def resync(
    agreement: Which = None,
    *,
    config: ConfigPath = DEFAULT_CONFIG,
    full: Full = False,
    table: Tables = None,
    as_json: AsJson = False,
) -> None:
    """Bring a consumer what it lacks, each row once as it stands; or show what is under way.

    Works for a consumer that is paused, for one that stopped at a refused row, and for any other:
    without an option it is sent the rows that were written since its last acknowledgement. An
    agreement that is called `status` is resynced with --full or --table.
    """
    if agreement is None and (full or table):
        raise ConfigError("name the agreement to be resynced")
    if full and table:
        raise ConfigError("--full copies every table: leave --table out")
    if agreement is None or (agreement == STATUS and not (full or table)):
        with cannot_say():
            configured, reader = opened(config)
            _show(resyncs(configured, reader, now().timestamp()), as_json=as_json)
        return
    _order(ResyncOrder(agreement, full, frozenset(table or ())), config, as_json=as_json)


def _order(order: ResyncOrder, config: ConfigPath, *, as_json: bool) -> None:
    from streaming.cli.command import append_command, queued_text  # noqa: PLC0415  # a refusal does without

    configured, reader = opened(config)
    found = planned_resync(configured, reader, order)
    number = append_command(reader, CommandName.RESYNC, order.text())
    if as_json:
        write_json({"command": CommandName.RESYNC, **asdict(found), "number": number})
        return
    write_sentence(_planned_text(found))
    write_line(queued_text(CommandName.RESYNC, order.agreement, number))


def _planned_text(found: PlannedResync) -> str:
    named = ", ".join(found.whole)
    lost = "" if found.keeps_deleted else ", and loses those that the hub does not have"
    whole = f"all rows of {named} as they stand{lost}"
    if found.is_full:
        what = whole
    else:
        count = "" if found.tracked is None else f": {as_count(found.tracked, 'row')}"
        what = f"what was written since hub epoch {found.after}, each row once as it stands{count}"
        what += f"; and {whole}" if found.whole else ""
    when = ""
    if found.waits_for_hello:
        when = "; this begins when its agent is started with this hub's configuration"
    elif found.begins_again:
        when = "; the resync that is under way begins again"
    return f"{found.consumer} gets {what}{when}"


def _show(found: Sequence[ConsumerResync], *, as_json: bool) -> None:
    if as_json:
        write_json([asdict(one) for one in found])
        return
    if not found:
        write_line("no consumer is away, and no resync is under way")
        return
    resync = ("mode", "synchronized", "total", "progress", "tables left", "pages unacked")
    write_table(
        ("agreement", "consumer", "state", "since", "lacks", *resync, "estimated end"),
        (
            (
                one.agreement,
                one.consumer,
                f"{one.state}{', resync ordered' if one.is_ordered else ''}",
                one.since,
                one.tracked,
                one.mode,
                one.synchronized,
                one.total,
                one.percent_text,
                None if one.tables is None else f"{one.tables_left} of {one.tables}",
                one.unacknowledged,
                one.estimated_end,
            )
            for one in found
        ),
    )
    for one in found:
        write_sentence(f"{one.agreement}: {one.waits_text}")
