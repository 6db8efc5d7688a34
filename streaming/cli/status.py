"""`status`: what the hub's last commit says of replicas, agreements, quarantine and conflicts."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from checkpoints.epochs import time_of
from checkpoints.reader import NONE_OPEN, OpenChanges, Reader
from streaming.cli import counters, flight
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, names_of, now, opened
from streaming.cli.level import lags
from streaming.cli.output import as_age, as_counts, write_json, write_line, write_pairs, write_table
from streaming.cli.positions import ruv_facts
from streaming.config.config import Config
from streaming.core.model.state import AgreementState, ReplicaState

SILENT_AFTER_S = 60
"""Live replicas send a heartbeat at least every 10 s, and each makes a commit."""


OfReplica = Annotated[
    str | None,
    typer.Option(
        "--replica", metavar="REPLICA", help="The hub epochs on the way to this one and back."
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
    found = facts(configured, reader, now().timestamp())
    if as_json:
        write_json(found)
    else:
        _show(found)


def facts(config: Config, reader: Reader, now_s: float) -> dict[str, Any]:
    """What `status --json` says; ages are in seconds."""
    commit = reader.commit
    state = commit.state if commit else None
    quarantine, conflicts = reader.quarantine_counts(), reader.conflict_counts()
    replicas = _replicas(config, reader, now_s)
    counts, totals = (commit.counts, commit.totals) if commit else ({}, {})
    return {
        "hub": config.hub.name,
        "state": config.hub.state,
        "process": reader.hub,
        "committed_at": time_of(commit.at_ms) if commit else None,
        "age_s": round(now_s - commit.at_ms / 1000, 3) if commit else None,
        "batch": reader.batch,
        "planned_batch": reader.planned,
        "hub_epoch": state.hub_epoch if state else 0,
        "generation": state.generation if state else None,
        "config_version": commit.config_version if commit else None,
        **ruv_facts(state.ruvs if state else {}),
        "replicas": replicas,
        "pending": _pending(replicas),
        "agreements": _agreements(config, reader),
        "quarantine": {"kept": sum(quarantine.values()), "by_reason": quarantine},
        "conflicts": {"total": sum(conflicts.values()), "by_kind": conflicts},
        "counters": counters.counter_facts(totals, names_of(config)),
        "counts": counters.plain(counts),
        "totals": counters.plain(totals),
    }


def _replicas(config: Config, reader: Reader, now_s: float) -> list[dict[str, Any]]:
    state = reader.commit.state if reader.commit else None
    names, opened = names_of(config), reader.open_changes()
    known, largest = (state.replicas, state.largest) if state else ({}, {})
    rids = dict.fromkeys([*(r.rid for r in config.replicas), *known])
    most = config.limits.pending_changes
    return [
        _replica(known.get(rid, ReplicaState(rid)), names.get(rid), now_s)
        | {"max_csn": largest.get(rid)}
        | _open_changes(
            opened.get((rid, "pending"), NONE_OPEN), opened.get((rid, "waiting"), NONE_OPEN), most
        )
        | _oldest(opened.get((rid, "pending"), NONE_OPEN), now_s)
        for rid in rids
    ]


def _open_changes(pending: OpenChanges, waiting: OpenChanges, most: int) -> dict[str, Any]:
    """How many there are; from the most that there may be on, the topic is not read on."""
    return {
        "pending": pending.count,
        "waiting": waiting.count,
        "paused": pending.count + waiting.count >= most,
    }


def _replica(replica: ReplicaState, name: str | None, now_s: float) -> dict[str, Any]:
    session = replica.session
    seen = replica.seen_ms > 0
    return {
        "rid": replica.rid,
        "name": name,
        "state": replica.status_text,
        "session": session.id if session else None,
        "epoch": replica.epoch,
        **counters.conflict_facts(replica),
        "seen_at": time_of(replica.seen_ms) if seen else None,
        "seen_age_s": round(now_s - replica.seen_ms / 1000, 3) if seen else None,
    }


def _oldest(pending: OpenChanges, now_s: float) -> dict[str, Any]:
    """How long the oldest uncommitted change waits for its commit, and of which transaction."""
    oldest = pending.oldest
    age_s = None if oldest is None else round(now_s - oldest.timestamp(), 3)
    return {"oldest_pending_age_s": age_s, "oldest_pending": pending.transaction}


def _pending(replicas: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The same over all replicas."""
    aged = [one for one in replicas if one["oldest_pending_age_s"] is not None]
    oldest = max(aged, key=lambda one: one["oldest_pending_age_s"], default=None)
    return {
        "pending": sum(one["pending"] for one in replicas),
        "waiting": sum(one["waiting"] for one in replicas),
        "oldest_age_s": oldest and oldest["oldest_pending_age_s"],
        "oldest": oldest and oldest["oldest_pending"],
    }


def _agreements(config: Config, reader: Reader) -> list[dict[str, Any]]:
    known = reader.commit.state.agreements if reader.commit else {}
    return [
        {
            "name": lag.agreement,
            "consumer": lag.consumer,
            "state": lag.state,
            "sent_covers": known.get(lag.agreement, AgreementState(lag.agreement, 0)).sent_covers,
            "acked_covers": lag.acked_covers,
            "lag_epochs": lag.epochs,
            "level": lag.is_level,
        }
        for lag in lags(config, reader)
    ]


def _show(found: dict[str, Any]) -> None:
    write_pairs(_head(found))
    write_line()
    replicas = ("rid", "replica", "state", "session", "epoch", "last seen", "max CSN")
    write_table(
        (*replicas, "pending", "waiting", "oldest pending"),
        (
            (
                r["rid"],
                r["name"],
                f"{r['state']}, paused" if r["paused"] else r["state"],
                r["session"] and r["session"][:8],
                r["epoch"],
                None if r["seen_age_s"] is None else as_age(r["seen_age_s"]),
                r["max_csn"],
                r["pending"],
                r["waiting"],
                None if r["oldest_pending_age_s"] is None else as_age(r["oldest_pending_age_s"]),
            )
            for r in found["replicas"]
        ),
    )
    write_line()
    write_table(
        ("agreement", "consumer", "state", "sent", "acked", "lag", "level"),
        (tuple(agreement.values()) for agreement in found["agreements"]),
    )
    write_line()
    counters.show(found["replicas"], found["counters"])


def _head(found: dict[str, Any]) -> list[tuple[str, object]]:
    kept, conflicts = found["quarantine"], found["conflicts"]
    handling = counters.handling(found["replicas"])
    return [
        ("hub", f"{found['hub']}, state in {found['state']}"),
        ("last commit", _last_commit(found)),
        ("position", _position(found)),
        ("pending", _open(found["pending"]) + _paused(found["replicas"])),
        ("quarantine", f"{kept['kept']} kept ({as_counts(kept['by_reason'])})"),
        ("conflicts", f"{conflicts['total']} ({as_counts(conflicts['by_kind'])})\n{handling}"),
        ("last batch", as_counts(found["counts"])),
        ("totals", as_counts(found["totals"])),
    ]


def _open(pending: dict[str, Any]) -> str:
    counts = f"{pending['pending']} changes, and {pending['waiting']} committed ones that wait"
    if pending["oldest"] is None:
        return counts
    age = as_age(pending["oldest_age_s"])
    return f"{counts}; the oldest came {age}, of transaction {pending['oldest']}"


def _paused(replicas: Sequence[Mapping[str, Any]]) -> str:
    names = ", ".join(str(one["name"] or one["rid"]) for one in replicas if one["paused"])
    if not names:
        return ""
    return f"\nnot read on, for limits.pending_changes: {names}; abort one, or raise the limit"


def _last_commit(found: dict[str, Any]) -> str:
    planned = found["planned_batch"]
    behind = f"; batch {planned} is planned and not committed" if planned else ""
    if found["age_s"] is None:
        return f"none yet{behind}"
    old = found["age_s"] > SILENT_AFTER_S
    doubt = "\nso long without a heartbeat: no hub runs, or no replica lives" if old else ""
    return f"{as_age(found['age_s'])}, by {found['process']}{behind}{doubt}"


def _position(found: dict[str, Any]) -> str:
    return (
        f"hub epoch {found['hub_epoch']}, batch {found['batch']},"
        f" generation {found['generation'] or '-'}"
    )
