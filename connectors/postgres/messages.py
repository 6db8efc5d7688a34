"""The agent's own messages in the log, by which its records come through it at their place.

Each is the content of a transactional logical message of the prefix `slackwater`, in JSON. Anybody
may emit one, so a message counts only in a transaction of the agent's replication origin.
"""

from dataclasses import asdict, dataclass

import orjson

from connectors.postgres.sql import Session
from streaming.core.model.errors import RuvError, StateError
from streaming.core.model.ruv import parse_ruv
from streaming.core.model.values import json_text
from streaming.core.records.record import Applied, Refused, Snapshot

PREFIX = "slackwater"
"""The prefix of the messages."""


@dataclass(frozen=True, slots=True)
class AppliedMessage:
    """A batch was applied in this transaction, which raises the epoch to that of `applied` + 1.

    `session`: in which it was applied. `seen`: (time_s, sequence) past which the CSN generator
    moves; the applier works it out, because the log must give it without a clock.
    """

    applied: Applied
    session: str
    seen: tuple[int, int]


@dataclass(frozen=True, slots=True)
class SnapshotRows:
    """Rows of a snapshot, each its key and its image as on the wire; `id`: of the snapshot."""

    id: str
    table: str
    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class EpochMessage:
    """From this transaction on the epoch is this one, which the own topic has passed."""

    epoch: int


OwnMessage = AppliedMessage | Refused | Snapshot | SnapshotRows | EpochMessage


def encode(message: OwnMessage) -> str:
    """Return the content of a message."""
    match message:
        case AppliedMessage(applied, session, seen):
            ruv = list(applied.ruv.text())
            members = {**asdict(applied), "ruv": ruv, "session": session, "seen": list(seen)}
            return json_text({"kind": "applied", **members})
        case Refused():
            return json_text({"kind": "refused", **asdict(message)})
        case Snapshot():
            return json_text({"kind": "snapshot", **asdict(message)})
        case SnapshotRows(id_, table, rows):
            members = {"id": id_, "table": table, "rows": [list(row) for row in rows]}
            return json_text({"kind": "snapshot", "phase": "rows", **members})
        case EpochMessage(epoch):
            return json_text({"kind": "epoch", "epoch": epoch})


def emit(session: Session, message: OwnMessage) -> None:
    """Emit a message in the transaction that is open, in a session of the agent's origin."""
    query = "SELECT pg_logical_emit_message(true, %s, %s)"
    session.execute(query, (PREFIX, encode(message)))


def stamp(session: Session) -> None:
    """Give the open transaction the server's time, which one with an origin has not by itself."""
    session.execute(
        "SELECT pg_replication_origin_xact_setup(pg_current_wal_lsn(), clock_timestamp())"
    )


def decode(content: bytes | str) -> OwnMessage:
    """Return the message of this content; StateError: another version of the agent wrote it."""
    try:
        members = orjson.loads(content)
        return _decoded(members.pop("kind"), members)
    except (ValueError, TypeError, KeyError, AttributeError, RuvError) as error:
        raise StateError(
            f"a message of the agent in the log cannot be read ({error}): go on with the version of"
            f" the agent that wrote it; it begins {content[:100]!r}"
        ) from error


def _decoded(kind: str, members: dict[str, object]) -> OwnMessage:
    """TypeError: a member is missing, or there is one more."""
    match kind, members:
        case "applied", {"ruv": list(ruv), "session": str(session), "seen": [int(), int()] as seen}:
            del members["session"], members["seen"]
            known = {**members, "ruv": parse_ruv(ruv)}
            return AppliedMessage(Applied(**known), session, (seen[0], seen[1]))  # type: ignore[arg-type]
        case "refused", _:
            return Refused(**members)  # type: ignore[arg-type]
        case "snapshot", {"phase": "rows", "id": str(id_), "table": str(table), "rows": list(rows)}:
            return SnapshotRows(id_, table, tuple((key, after) for key, after in rows))
        case "snapshot", _:
            return Snapshot(**members)  # type: ignore[arg-type]
        case "epoch", _:
            return EpochMessage(**members)  # type: ignore[arg-type]
        case _:
            raise ValueError(f"unknown kind {kind!r}")
