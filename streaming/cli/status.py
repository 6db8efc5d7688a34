"""`status`: the hub as of its last commit, with its replicas, agreements and conflicts."""

from collections.abc import Sequence
from dataclasses import astuple
from typing import Annotated

import typer

from streaming.cli import counters, flight
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, now, opened
from streaming.cli.output import (
    as_age,
    as_count,
    as_counts,
    write_json,
    write_line,
    write_pairs,
    write_table,
)
from streaming.facts.status import HubStatus, PendingSummary, ReplicaSummary, hub_status

SILENT_AFTER_S = 60
"""Live replicas send a heartbeat at least every 10 s, and each makes a commit."""


OfReplica = Annotated[
    str | None,
    typer.Option(
        "--replica", metavar="REPLICA", help="The hub epochs in flight to this replica and back."
    ),
]


def status(
    *, config: ConfigPath = DEFAULT_CONFIG, as_json: AsJson = False, replica: OfReplica = None
) -> None:
    """Show the state of the hub as of its last commit, and how old that is."""
    configured, reader = opened(config)
    if replica is not None:
        flight.answer(configured, reader, replica, as_json=as_json)
        return
    found = hub_status(configured, reader, now().timestamp())
    if as_json:
        write_json(found.document())
    else:
        _show(found)


def _show(found: HubStatus) -> None:
    write_pairs(_head(found))
    write_line()
    for one in found.replicas:
        if one.remedy is not None:
            write_line(f"{one.name or one.rid} is stopped: {one.remedy}")
            write_line()
    replicas = ("rid", "replica", "state", "session", "epoch", "last seen", "max CSN")
    write_table(
        (*replicas, "pending", "waiting", "oldest pending"),
        (
            (
                one.rid,
                one.name,
                f"{one.state}, paused" if one.paused else one.state,
                one.session and one.session[:8],
                one.epoch,
                None if one.seen_age_s is None else as_age(one.seen_age_s),
                one.max_csn,
                one.pending,
                one.waiting,
                None if one.oldest_pending_age_s is None else as_age(one.oldest_pending_age_s),
            )
            for one in found.replicas
        ),
    )
    write_line()
    write_table(
        ("agreement", "consumer", "state", "sent", "acked", "lag", "level"),
        (astuple(agreement) for agreement in found.agreements),
    )
    write_line()
    counters.show(found.replicas, found.counters)


def _head(found: HubStatus) -> list[tuple[str, object]]:
    kept, conflicts = found.quarantine, found.conflicts
    handling = counters.handling(found.replicas)
    return [
        ("hub", f"{found.hub}, state in {found.state}"),
        ("last commit", _last_commit(found)),
        ("position", _position(found)),
        ("pending", _open(found.pending) + _paused(found.replicas)),
        ("quarantine", f"{kept.kept} kept ({as_counts(kept.by_reason)})"),
        ("conflicts", f"{conflicts.total} ({as_counts(conflicts.by_kind)})\n{handling}"),
        ("last batch", as_counts(found.counts)),
        ("totals", as_counts(found.totals)),
    ]


def _open(pending: PendingSummary) -> str:
    counts = f"{as_count(pending.pending, 'change')}, and {pending.waiting} committed and waiting"
    if pending.oldest is None or pending.oldest_age_s is None:
        return counts
    age = as_age(pending.oldest_age_s)
    return f"{counts}; the oldest was received {age}, in transaction {pending.oldest}"


def _paused(replicas: Sequence[ReplicaSummary]) -> str:
    names = ", ".join(str(one.name or one.rid) for one in replicas if one.paused)
    if not names:
        return ""
    return f"\npaused at limits.open_transactions: {names}; abort one or raise the limit"


def _last_commit(found: HubStatus) -> str:
    planned = found.planned_batch
    unfinished = f"; batch {planned} is planned and not committed" if planned else ""
    if found.age_s is None:
        return f"none yet{unfinished}"
    old = found.age_s > SILENT_AFTER_S
    doubt = "\nno heartbeat for that long: no hub is running, or no agent is" if old else ""
    return f"{as_age(found.age_s)}, by {found.process}{unfinished}{doubt}"


def _position(found: HubStatus) -> str:
    return f"hub epoch {found.hub_epoch}, batch {found.batch}, generation {found.generation or '-'}"
