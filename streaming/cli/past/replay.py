"""`replay`: judge a part of the history again; exit 0 if everything comes out as it is recorded."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from checkpoints.times import time_of
from streaming.cli.exit_codes import ExitCode, cannot_say
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath
from streaming.config.config import Config
from streaming.config.sources.load import load
from streaming.core.model.errors import QuestionError
from streaming.core.replay.span import Moment, parse_moment
from streaming.core.text.wording import as_count, as_numbered
from streaming.facts.names import agreement_named, names_of
from streaming.terminal.output import (
    as_time,
    write_file,
    write_json,
    write_line,
    write_sentence,
    write_table,
)

if TYPE_CHECKING:
    from streaming.replay.report.answer import ReplayAnswer

SHOWN = 20
"""How many differences are shown; --json has more."""

MOMENT = "EPOCH|CSN|TIME"

From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar=MOMENT,
        help="The first hub epoch, the change with this CSN, or what was judged since a time"
        " (2026-11-24T14:05:00Z). By default all that is kept.",
    ),
]
To = Annotated[
    str | None,
    typer.Option("--to", metavar=MOMENT, help="The last of it. By default the last hub epoch."),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="SETTING",
        help="Ask what would have been: accounts.function=MAX(version), order=primary_csn or"
        " order=arrival.",
    ),
]

HtmlFile = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Write a report that a browser shows.")
]

ToAgreement = Annotated[
    str | None,
    typer.Option(
        "--agreement",
        metavar="AGREEMENT",
        help="Judge nothing: send this agreement again what it was sent from --from on.",
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="With --agreement: count only, and send nothing.")
]


def replay(
    *,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
    begin: From = None,
    end: To = None,
    settings: Set = None,
    html: HtmlFile = None,
    agreement: ToAgreement = None,
    dry_run: DryRun = False,
) -> None:
    """Judge the past again, and compare with what the hub recorded.

    Exit 0 if every verdict and fact comes out as it is recorded, 1 if one does not, 2 if that
    cannot be said. With --set nothing is compared: the answer is what another rule would have
    done, and exit 0. A running hub is not disturbed, and nothing of its state is written
    but that nothing of it is purged meanwhile.

    With --agreement the records that this agreement was sent are sent again, with the ids that they
    had: a consumer skips what it has.
    """
    with cannot_say():
        configured = load(config)
        if agreement is not None:
            first = _moment(begin)
            if first is None:
                raise QuestionError("--agreement needs --from: say where to begin")
            _resend(configured, agreement, first, _moment(end), dry_run=dry_run, as_json=as_json)
            return
        found = _answer(configured, _moment(begin), _moment(end), settings or [])
    if html is not None:
        from streaming.replay.report.html import html_report  # noqa: PLC0415  # it imports Spark

        write_file(html, html_report(found))
    if as_json:
        write_json(found.document())
    else:
        if found.what_if.is_something:
            _show_what_if(found, configured)
        else:
            _show(found)
        for undo in found.unasked:
            write_sentence(f"not asked: {undo.text}")
    if not (found.is_equal or found.what_if.is_something):
        raise typer.Exit(ExitCode.NO)


def _moment(text: str | None) -> Moment | None:
    return None if text is None else parse_moment(text)


def _answer(
    config: Config, begin: Moment | None, end: Moment | None, settings: list[str]
) -> "ReplayAnswer":
    from checkpoints.maintenance.leases import leased  # noqa: PLC0415  # they import Spark
    from streaming.facts.history.past_rows import past  # noqa: PLC0415
    from streaming.replay.report.answer import choose, replay  # noqa: PLC0415
    from streaming.replay.session import reading  # noqa: PLC0415
    from streaming.replay.what_if import parse_what_if  # noqa: PLC0415

    what_if = parse_what_if(settings)
    what_if.check(config)
    with past(config) as store, leased(store.root, "replay"):
        chosen = choose(store, begin, end)
        with reading(config, store, chosen.marks) as read:
            return replay(store, chosen, read, what_if)


def _show(found: "ReplayAnswer") -> None:
    changes, _ = found.tally.totals()
    what = f"{as_count(changes.judged, 'change')} and {_refreshes(found)} of {_span_text(found)}"
    if found.is_equal:
        write_sentence(f"equal: {what} come out as they are recorded")
    else:
        facts = as_count(found.count.total(), "fact")
        write_sentence(f"different: {facts} of {what} come out otherwise than they are recorded")
        write_line()
        _show_differences(found)
    write_line(f"judged again in {found.seconds:.1f} s")


def _refreshes(found: "ReplayAnswer") -> str:
    return as_count(found.tally.refreshes, "refresh", "refreshes")


def _span_text(found: "ReplayAnswer") -> str:
    first, last = found.span.from_epoch, found.span.to_epoch
    epochs = as_numbered("hub epoch", first, last)
    times = " to ".join(as_time(time_of(at_ms)) for at_ms in (found.first_ms, found.last_ms))
    return f"{epochs} ({as_count(found.batches, 'batch', 'batches')}, {times})"


def _show_differences(found: "ReplayAnswer") -> None:
    write_table(
        ("hub epoch", "what", "id", "row", "fact", "recorded", "replayed"),
        (
            (
                one.hub_epoch,
                one.difference.part,
                one.difference.id,
                f"{one.difference.table} {one.difference.key}" if one.difference.table else None,
                one.difference.fact,
                one.difference.recorded,
                one.difference.replayed,
            )
            for one in found.differences[:SHOWN]
        ),
    )
    if found.count.total() > SHOWN:
        write_line(f"{SHOWN} of {found.count.total()} differences; --json lists more")


def _show_what_if(found: "ReplayAnswer", config: Config) -> None:
    from streaming.replay.report.answer import HELD  # noqa: PLC0415  # it imports Spark

    recorded, then = found.tally.totals()
    write_sentence(
        f"with {', '.join(found.what_if.texts())} in {_span_text(found)}: {then.in_conflict} of"
        f" {as_count(then.judged, 'change')} would have been in conflict, {recorded.in_conflict}"
        f" were; {as_count(found.verdict_count, 'verdict')} would be another, and"
        f" {as_count(found.row_count, 'row')} would stand otherwise"
    )
    write_sentence(f"{HELD}")
    write_line()
    write_table(
        ("table", "app", "changes", "in conflict", "then", "rejected", "then "),
        (
            (
                table,
                app,
                found.tally.recorded[table, app].judged,
                found.tally.recorded[table, app].in_conflict,
                found.tally.replayed[table, app].in_conflict,
                found.tally.recorded[table, app].rejected,
                found.tally.replayed[table, app].rejected,
            )
            for table, app in found.tally.groups()
        ),
    )
    if found.verdicts:
        write_line()
        _show_verdicts(found, config)
    if found.rows:
        write_line()
        _show_rows(found)


def _show_verdicts(found: "ReplayAnswer", config: Config) -> None:
    names = names_of(config)
    write_table(
        ("hub epoch", "change", "of", "app", "row", "was", "would be"),
        (
            (
                one.hub_epoch,
                one.csn,
                names.get(one.rid, one.rid),
                one.app,
                f"{one.table} {one.key}",
                one.recorded,
                one.then,
            )
            for one in found.verdicts[:SHOWN]
        ),
    )
    if found.verdict_count > SHOWN:
        write_line(f"{SHOWN} of {found.verdict_count} changed verdicts; --json lists more")


def _show_rows(found: "ReplayAnswer") -> None:
    write_table(
        ("row", "app", "column", "stands as", "would stand as"),
        (
            (f"{one.table} {one.key}", one.app, name, mine, theirs)
            for one in found.rows[:SHOWN]
            for name, (mine, theirs) in one.columns.items()
        ),
    )
    if found.row_count > SHOWN:
        write_line(f"{SHOWN} of {as_count(found.row_count, 'row')}; --json lists more")


def _resend(
    config: Config,
    agreement: str,
    begin: Moment,
    end: Moment | None,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Send the records of these hub epochs to an agreement again, with the ids that they had."""
    from checkpoints.maintenance.leases import leased  # noqa: PLC0415  # they import Spark
    from connectors.kafka.sink import UpdatesSink  # noqa: PLC0415
    from streaming.facts.history.past_rows import past  # noqa: PLC0415
    from streaming.replay.configured import ConfigsThen  # noqa: PLC0415
    from streaming.replay.report.answer import choose  # noqa: PLC0415
    from streaming.replay.resend import NotLogged, sent_again  # noqa: PLC0415

    agreement_named(config, agreement)
    topic, records, items, left_out = config.updates_topic(agreement), 0, 0, list[int]()
    kafka = config.kafka
    sink = None if dry_run else UpdatesSink(kafka.bootstrap_servers, kafka.options)
    try:
        with past(config) as store, leased(store.root, "replay"):
            marks = choose(store, begin, end).marks
            for one in sent_again(store, ConfigsThen(store), marks, agreement):
                if isinstance(one, NotLogged):
                    left_out.append(one.hub_epoch)
                    continue
                records, items = records + 1, items + one.items
                if sink is not None:
                    sink.send(topic, one.id.encode(), one.value)
        if sink is not None:
            sink.flush()
    finally:
        if sink is not None:
            sink.close()
    if as_json:
        found = {"agreement": agreement, "records": records, "items": items}
        write_json({**found, "sent": not dry_run, "not_logged": left_out})
        return
    done = "would be sent" if dry_run else "were sent"
    write_line(f"{as_count(records, 'record')} with {as_count(items, 'item')} {done} to {topic}")
    if left_out:
        epochs = ", ".join(map(str, left_out))
        write_line(
            f"left out: hub epochs {epochs}, ranges of a resync, whose rows are in no log;"
            f" `slackwater resync {agreement}` sends rows as they stand"
        )
