"""`verify`: audit the state from the changelog alone; exit 0 if it is sound."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from streaming.cli.exit_codes import ExitCode, cannot_say
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath
from streaming.cli.past.replay import SHOWN, From, To
from streaming.config.config import Config
from streaming.config.sources.load import load
from streaming.core.replay.span import Moment, parse_moment
from streaming.core.text.wording import as_count, as_numbered
from streaming.terminal.output import write_json, write_line, write_sentence, write_table

if TYPE_CHECKING:
    from streaming.replay.verify import Audit

Continuous = Annotated[
    bool, typer.Option("--continuous", help="Go on with what is new, until something is found.")
]
Every = Annotated[
    float, typer.Option("--every", min=0.1, metavar="SECONDS", help="With --continuous: how often.")
]
MetricsPort = Annotated[
    int | None,
    typer.Option(
        "--metrics-port",
        metavar="PORT",
        help="With --continuous: serve Prometheus the proven hub epoch and the age of the proof.",
    ),
]


def verify(
    *,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
    begin: From = None,
    end: To = None,
    continuous: Continuous = False,
    every: Every = 10.0,
    metrics_port: MetricsPort = None,
) -> None:
    """Audit what the hub recorded; a running hub is not disturbed.

    Everything is judged again; of every record that was read some table must have a trace, no CSN
    may be judged twice, every RUV must end where the changelog does, and the full state must follow
    from the changelog. Exit 0 if all that holds, 1 if not, 2 if that cannot be said.
    """
    with cannot_say(), ExitStack() as opened:
        configured = load(config)
        first, last = (None if text is None else parse_moment(text) for text in (begin, end))
        if continuous:
            from streaming.cli.past.proof import Proof  # noqa: PLC0415  # others need no metrics

            proof = Proof()
            if metrics_port is not None:
                opened.enter_context(proof.served(metrics_port))
            audits = audits_of_what_is_new(configured, first, lambda: time.sleep(every), proof.note)
        else:
            audits = iter([_audited(configured, first, last)])
        for audit in audits:
            _show(audit, as_json=as_json)
            if not audit.is_sound:
                raise typer.Exit(ExitCode.NO)


def _audited(config: Config, begin: Moment | None, end: Moment | None) -> "Audit":
    from checkpoints.maintenance.leases import leased  # noqa: PLC0415  # they import Spark
    from streaming.facts.history.past_rows import past  # noqa: PLC0415
    from streaming.replay.report.answer import choose  # noqa: PLC0415
    from streaming.replay.session import reading  # noqa: PLC0415
    from streaming.replay.verify import verify as audited  # noqa: PLC0415

    with past(config) as store, leased(store.root, "verify"):
        chosen = choose(store, begin, end)
        with reading(config, store, chosen.marks) as read:
            return audited(store, chosen, read)


def audits_of_what_is_new(
    config: Config, begin: Moment | None, wait: Callable[[], None], note: Callable[["Audit"], None]
) -> Iterator["Audit"]:
    """Audits, each of the hub epochs behind the last one; while there are none it waits.

    A hub epoch is complete once the next has begun: more batches may belong to the last one.
    """
    from checkpoints.commit.recorded import batch_marks  # noqa: PLC0415  # it imports Spark
    from checkpoints.store import StateStore  # noqa: PLC0415

    proven = 0
    while True:
        marks = batch_marks(StateStore(config.hub.state))
        newest = marks[-1].hub_epoch - 1 if marks else 0
        if newest > proven:
            first = begin if not proven else Moment(str(proven + 1), hub_epoch=proven + 1)
            audit = _audited(config, first, Moment(str(newest), hub_epoch=newest))
            proven = audit.to_epoch
            note(audit)
            yield audit
        wait()


def _show(audit: "Audit", *, as_json: bool) -> None:
    if as_json:
        write_json(audit.document())
        return
    what = f"{as_count(audit.records, 'record')}, {as_count(audit.changes, 'change')} and"
    what += f" {as_count(audit.rows, 'row')}"
    epochs = as_numbered("hub epoch", audit.from_epoch, audit.to_epoch)
    how = "sound" if audit.is_sound else f"not sound, {as_count(audit.count, 'finding')}"
    write_sentence(f"{how}: {what} of {epochs}, audited in {audit.seconds:.1f} s")
    for undo in audit.unasked:
        write_sentence(f"not asked: {undo.text}")
    if audit.findings:
        shown = audit.findings[:SHOWN]
        write_line()
        write_table(
            ("check", "hub epoch", "where", "what is wrong"),
            ((one.check, one.hub_epoch, one.where, one.detail) for one in shown),
        )
