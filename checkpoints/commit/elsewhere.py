"""Sessions of replicas that another hub serves, or served, as `epochs` holds them."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from streaming.core.model.ruv import parse_ruv
from streaming.core.state.reflection import Session
from streaming.core.state.replica_state import ReplicaState

Row = Mapping[str, Any]
Named = Mapping[tuple[int, str], Row]
"""(rid, session) -> its row."""


def elsewhere_rows(replicas: Iterable[ReplicaState]) -> list[dict[str, object]]:
    """What `epochs` holds of sessions beside what every session has; nothing of most."""
    return [
        {
            "rid": replica.rid,
            "session": one.id,
            "agreement": one.agreement,
            "hub_epoch": one.hub_epoch,
            "reflections": [{"epoch": epoch, "ruv": ruv.text()} for epoch, ruv in one.elsewhere],
            "judged": [{"hub_epoch": hub_epoch, "csn": csn} for hub_epoch, csn in one.judged],
        }
        for replica in replicas
        for one in replica.sessions
        if one.agreement or one.hub_epoch
    ]


def elsewhere_of(rows: Iterable[Row]) -> Named:
    """The rows by rid and session."""
    return {(row["rid"], row["session"]): row for row in rows}


def with_elsewhere(replica: ReplicaState, named: Named) -> ReplicaState:
    """The replica with what its sessions have beside what every session has."""
    if not named:
        return replica
    sessions = (_session(one, named.get((replica.rid, one.id))) for one in replica.sessions)
    return replace(replica, sessions=tuple(sessions))


def _session(session: Session, row: Row | None) -> Session:
    if row is None:
        return session
    return replace(
        session,
        agreement=row["agreement"],
        hub_epoch=row["hub_epoch"],
        elsewhere=tuple((one["epoch"], parse_ruv(one["ruv"])) for one in row["reflections"]),
        judged=tuple((one["hub_epoch"], one["csn"]) for one in row["judged"]),
    )
