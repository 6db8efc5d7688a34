"""`level`: whether all consumers have everything; exit 0 if so."""

import time
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from streaming.cli.appends import appends
from streaming.cli.exit_codes import ExitCode, cannot_say
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, now, opened
from streaming.core.model.command import CommandName
from streaming.core.text.wording import as_age, as_count
from streaming.facts.consumers.compared import other_rows_warnings
from streaming.facts.consumers.divergent import DivergenceKind, differing_text
from streaming.facts.consumers.lacking import COLUMN_REMEDY
from streaming.facts.consumers.level import HubLevel, TopicEnds, hub_level, left_replicas
from streaming.facts.consumers.resync import ConsumerResync
from streaming.facts.freshness import MAX_AGE_S
from streaming.facts.health import paused_remedy, unnamed_remedy, unnamed_text
from streaming.facts.status.local_writes import local_warnings
from streaming.facts.status.schemas import schema_warnings, unreplicated_warnings
from streaming.terminal.output import write_json, write_line, write_sentence, write_table

POLL_S = 0.1
READ_S = 6.0
"""How long the hub gets to read what its topics held when Kafka was asked, without --wait.

Three of its polls, which tell what it has read of heartbeats; from the first answer on, however
long that took.
"""
SHOWN_BY = {
    DivergenceKind.REFUSED: "slackwater conflicts show ID",
    DivergenceKind.UNCARRIED: "slackwater conflicts list --kind uncarried",
    DivergenceKind.QUARANTINED: "slackwater quarantine show ID",
}
"""Why a row differs -> the command that shows it."""
SHOWN = 20
"""How many differing rows are shown; --json has more."""

WaitSeconds = Annotated[
    float,
    typer.Option(
        "--wait", min=0, help="Wait for it for up to this many seconds.", metavar="SECONDS"
    ),
]
MaxAge = Annotated[
    float,
    typer.Option(
        "--max-age",
        min=0,
        help="Facts that are older than this many seconds prove nothing.",
        metavar="SECONDS",
    ),
]


@appends(CommandName.LEVEL, when="once, if an agreement lags")
@cannot_say()
def level(
    *,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
    wait: WaitSeconds = 0,
    max_age: MaxAge = MAX_AGE_S,
) -> None:
    """Exit 0 when every consumer has everything that the hub and its topics have.

    Otherwise list what is missing. Exit 3 if that is all but records in quarantine that name no
    row: their replicas may have written what nobody got, and the others are level. Exit 1 also if
    it cannot be said: no hub is running, Kafka does not answer, or the agent of a replica has ended
    or sent nothing for hub.heartbeat_timeout_s. A running hub sends lagging consumers their
    completeness at once.

    The answer is also no while an agent has more to publish, a consumer is away, in a resync or
    waits for one, a table of an agreement is paused, a replica or an agreement is stopped, a row is
    refused or uncarried, a database lacks a column that it is sent, or a change in quarantine
    leaves a row different. It is not no because of what waits by an agreement's delay; how much
    that is, and until when, is shown.
    """
    found = _awaited(config, wait, max_age)
    if as_json:
        write_json(asdict(found))
    else:
        _show(found)
        for warning in (
            *unreplicated_warnings(found.unreplicated),
            *schema_warnings(found.schema_differences),
            *other_rows_warnings(found.other_rows),
            *local_warnings(found.local_writes),
            *(one.text for one in found.left_unread),
        ):
            write_sentence(warning)
    if not found.level:
        raise typer.Exit(ExitCode.APART if found.apart else ExitCode.NO)


def _awaited(path: Path, wait_s: float, max_age_s: float) -> HubLevel:
    """The answer as soon as it is yes, or when the time is over.

    Between two looks is the time that a look takes: the processor is for those who are waited for.
    """
    started_s, ends, is_requested = time.monotonic(), TopicEnds(), False
    answered_s: float | None = None
    while True:
        began_s = time.monotonic()
        configured, reader = opened(path)
        ask = partial(ends.ask, configured, *left_replicas(configured, reader).values())
        found = hub_level(configured, reader, ask, now().timestamp(), max_age_s)
        now_s = time.monotonic()
        answered_s = now_s if answered_s is None else answered_s
        may_read = found.only_reads and now_s - answered_s < READ_S
        if found.lags and not is_requested:
            from streaming.cli.command import append_command  # noqa: PLC0415  # not needed when all are level

            append_command(reader, CommandName.LEVEL, None)
            is_requested = True
        if found.level or found.apart or not (may_read or now_s - started_s < wait_s):
            return found
        time.sleep(max(POLL_S, now_s - began_s))


def _show(found: HubLevel) -> None:
    age_s = found.age_s
    when = "no batch is committed yet" if age_s is None else f"last commit {as_age(age_s)}"
    if found.level:
        agreements = as_count(len(found.agreements), "agreement")
        write_line(f"level: {agreements} at hub epoch {found.hub_epoch}, {when}")
        _show_delayed(found)
        return
    for doubt in found.cannot_say:
        write_sentence(f"cannot say: {doubt}")
    if found.apart:
        write_line(
            f"level, but for {', '.join(found.unnamed)}: hub epoch {found.hub_epoch}, {when}"
        )
    elif not found.cannot_say:
        write_line(f"not level: hub epoch {found.hub_epoch}, {when}")
    for name, count in found.unread.items():
        write_line(f"unread: {as_count(count, 'record')} in the topic of {name}")
    for name, count in found.unpublished.items():
        write_line(f"unpublished: {as_count(count, 'entry', 'entries')} of the journal of {name}")
    for name, count in found.waiting.items():
        write_line(f"waiting: {as_count(count, 'committed change')} of {name}, see `status`")
    for name, count in found.ordered.items():
        write_line(f"ordered: {as_count(count, 'command')} {name}, which no batch has taken yet")
    for name, state in found.stopped.items():
        write_line(f"stopped: {name}, {state}")
    for one in found.resyncs:
        write_sentence(_resync_text(one))
    for column in found.waited:
        write_sentence(f"waits: {column.text}; {COLUMN_REMEDY}")
    if found.lags:
        _show_lagging(found)
    _show_delayed(found)
    for agreement in found.agreements:
        if agreement.paused:
            what = f"{agreement.consumer} is sent nothing of {', '.join(agreement.paused)}"
            write_sentence(f"paused: {what}; {paused_remedy(agreement.name, agreement.paused)}")
    for name, counts in sorted(found.unnamed.items()):
        write_sentence(f"{unnamed_text(name, counts)}; {unnamed_remedy(name, counts)}")
    if found.differing:
        _show_differing(found)


def _resync_text(one: ConsumerResync) -> str:
    """Why a consumer that is away or in resync is not level, and what to do."""
    what = f"{one.consumer}, agreement {one.agreement} is {one.state_text}"
    if one.is_ordered:
        return f"resync: {what}, {one.waits_text}"
    if one.away:
        return f"away: {what}, {one.waits_text}; {one.remedy}"
    return f"resync: {what}, {one.waits_text}; `slackwater resync status` shows how far it is"


def _show_lagging(found: HubLevel) -> None:
    write_table(
        ("agreement", "consumer", "state", "acked", "lag", "lacks changes of"),
        (
            (
                one.name,
                one.consumer,
                one.state,
                one.acked_covers,
                one.lag_epochs,
                ", ".join(one.lacking),
            )
            for one in found.agreements
            if not one.has_all
        ),
    )
    for one in found.agreements:
        if one.packets is not None and not one.has_all:
            write_sentence(f"packets: {one.consumer} answers by packets; {one.packets.text}")


def _show_delayed(found: HubLevel) -> None:
    for one in found.agreements:
        if one.delayed is not None:
            write_sentence(f"delayed: {one.consumer}, agreement {one.name}; {one.delayed.text}")


def _show_differing(found: HubLevel) -> None:
    rows = differing_text(len(found.differing), found.differing)
    kinds = {one.kind for one in found.differing}
    commands = (f"`{SHOWN_BY[kind]}`" for kind in DivergenceKind if kind in kinds)
    write_line(f"{rows} may differ from the hub's, see {' or '.join(commands)}:")
    write_table(
        ("replica", "table", "key", "kind", "why", "id"),
        (
            (one.replica, one.table, one.key, one.kind, one.why, one.id)
            for one in found.differing[:SHOWN]
        ),
    )
