"""Plans and commits: what each records, as values and as rows of `epochs`."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from checkpoints.commit.elsewhere import elsewhere_of, elsewhere_rows, with_elsewhere
from checkpoints.commit.feeds import feed_row, feeds_of, place_row, places_of
from checkpoints.commit.held_back import held_back_of, held_back_rows
from checkpoints.commit.purges import purge_in, purge_row, ruv_rows, ruvs_of
from checkpoints.commit.resyncs import realign_row, realigned_range, resync_of, resync_row
from checkpoints.format_number import FORMAT
from checkpoints.times import ms_of, time_of
from streaming.core.counts.counter_keys import Counts, key_text, parse_key
from streaming.core.intake.input_lost import TopicLoss
from streaming.core.matrix.packets import Place
from streaming.core.model.command import Command
from streaming.core.model.errors import StateError
from streaming.core.model.row import Floor
from streaming.core.model.ruv import NOTHING_KNOWN, parse_ruv
from streaming.core.model.statuses import AgreementStatus, ReplicaStatus, parse_status
from streaming.core.model.truncation import Truncation
from streaming.core.retention.purge import Purge
from streaming.core.state.agreement_state import AgreementState, SendRange
from streaming.core.state.hub_state import HubState
from streaming.core.state.reflection import Session
from streaming.core.state.replica_state import AgentEnd, ReplicaState
from streaming.core.tracking.ranges import KeyRange
from streaming.core.tracking.resync import CoveredPosition, PlannedPage

PLAN = "plan"
COMMIT = "commit"

_NOTHING = SendRange(0, 0, 0, NOTHING_KNOWN, CoveredPosition(0, NOTHING_KNOWN))
"""The send range of an agreement to which its batch publishes nothing."""

_OF_REPLICA = (
    *("rid", "epoch", "opno", "stop_offset", "last_conflict_epoch", "last_stable_epoch"),
    *("unpublished", "believed"),
)
"""What a row holds of a replica under the name and in the type that ReplicaState has it."""

_OF_AGREEMENT = (
    *("name", "consumer", "session", "own", "sent_epoch", "sent_covers", "scanned"),
    *("acked_covers", "published"),
)
"""The same of an agreement, and of AgreementState."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What batch `batch` reads and by which clock, fixed before any table is written.

    Offsets: topic -> first offset, and topic -> next offset behind the batch. `topic_ids`: topic ->
    the id of the topic that they are of. `lost`: topic -> what happened to it; its offsets and id
    are those of what there is now. `pages`: those of resyncs that the batch sends.
    `undelivered`: the agreements whose topics refused what the batch before sent them. `writable`:
    those that are away because of that, and whose topics may be written again. `places`: agreement
    whose consumer is sent packets -> up to where the batch reads that one's records. `purge`: what
    it purges. `throttled`: the agreements that have sent more than their bytes a second.
    """

    batch: int
    at_ms: int
    config_version: int
    offsets_from: Mapping[str, int]
    offsets_to: Mapping[str, int]
    commands: tuple[Command, ...] = ()
    versions: Mapping[str, int] = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    lost: Mapping[str, str] = field(default_factory=dict)
    pages: tuple[PlannedPage, ...] = ()
    undelivered: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    places: Mapping[str, Place] = field(default_factory=dict)
    purge: Purge | None = None
    throttled: tuple[str, ...] = ()

    @property
    def named(self) -> dict[str, tuple[int, int]]:
        """Topic -> [first, end) of the offsets that the batch reads, where there are any."""
        ends, first = self.offsets_to.items(), self.offsets_from
        return {topic: (first[topic], end) for topic, end in ends if end > first[topic]}

    @property
    def records(self) -> int:
        """How many offsets it reads."""
        return sum(end - first for first, end in self.named.values())

    def without(self, losses: Mapping[str, TopicLoss]) -> "Plan":
        """The plan that reads nothing of these topics and goes on at what there is of them."""
        firsts = {t: one.now.first for t, one in losses.items() if t in self.offsets_from}
        return replace(
            self,
            offsets_from={**self.offsets_from, **firsts},
            offsets_to={**self.offsets_to, **firsts},
            topic_ids={**self.topic_ids, **{t: one.now.id for t, one in losses.items()}},
            lost={**self.lost, **{t: one.detail for t, one in losses.items()}},
        )

    def leaving(self, topics: Collection[str]) -> "Plan":
        """The plan that reads nothing of these topics, and leaves what is there for later."""
        firsts = {topic: self.offsets_from[topic] for topic in topics}
        return replace(self, offsets_to={**self.offsets_to, **firsts})


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Everything that a commit row records: the hub's state and the positions around it.

    `recreated`: topic -> how often its name got another id, and its offsets began anew.
    """

    state: HubState
    offsets: Mapping[str, int]
    topic_ids: Mapping[str, str]
    config_version: int
    command_number: int = 0
    rows_epoch: int = 0
    at_ms: int = 0
    counts: Counts = field(default_factory=dict)
    totals: Counts = field(default_factory=dict)
    versions: Mapping[str, int] = field(default_factory=dict)
    recreated: Mapping[str, int] = field(default_factory=dict)


def plan_row(plan: Plan, last: Checkpoint, hub: str) -> dict[str, object]:
    """The plan as a row of `epochs`."""
    return {
        "kind": PLAN,
        "batch": plan.batch,
        "hub_epoch": last.state.hub_epoch,
        "format": FORMAT,
        "generation": last.state.generation,
        "replicageneration": last.state.replicageneration,
        "hub": hub,
        "at": time_of(plan.at_ms),
        "config_version": plan.config_version,
        "commands": [c.number for c in plan.commands],
        "command_number": last.command_number,
        "offsets_from": list(plan.offsets_from.items()),
        "offsets": list(plan.offsets_to.items()),
        "topic_ids": list(plan.topic_ids.items()),
        "input_lost": list(plan.lost.items()),
        "rows_epoch": last.rows_epoch,
        "versions": list(plan.versions.items()),
        "pages": [
            {"agreement": page.agreement, "parts": [part._asdict() for part in page.parts]}
            for page in plan.pages
        ],
        "undelivered": list(plan.undelivered),
        "writable": list(plan.writable),
        "places": [place_row(name, place) for name, place in plan.places.items()],
        "throttled": list(plan.throttled),
        **purge_row(plan.purge),
    }


def plan_of(row: Mapping[str, Any], commands: Mapping[int, Command]) -> Plan:
    """The plan that a row holds; StateError if it takes a command that is not among `commands`."""
    taken: list[int] = row["commands"]
    unknown = [number for number in taken if number not in commands]
    if unknown:
        raise StateError(
            f"the plan of batch {row['batch']} takes command {unknown[0]}, which this version does"
            " not know: finish the batch with the version that planned it"
        )
    return Plan(
        row["batch"],
        ms_of(row["at"]),
        row["config_version"],
        dict(row["offsets_from"]),
        dict(row["offsets"]),
        tuple(commands[number] for number in taken),
        dict(row["versions"]),
        dict(row["topic_ids"]),
        dict(row["input_lost"]),
        tuple(
            PlannedPage(page["agreement"], tuple(KeyRange(**part) for part in page["parts"]))
            for page in row["pages"]
        ),
        tuple(row["undelivered"]),
        tuple(row["writable"]),
        places_of(row["places"] or ()),
        purge_in(row),
        tuple(row["throttled"] or ()),
    )


def commit_row(checkpoint: Checkpoint, hub: str) -> dict[str, object]:
    """The checkpoint as a row of `epochs`."""
    state = checkpoint.state
    return {
        "kind": COMMIT,
        "batch": state.batch,
        "hub_epoch": state.hub_epoch,
        "format": FORMAT,
        "generation": state.generation,
        "replicageneration": state.replicageneration,
        "hub": hub,
        "at": time_of(checkpoint.at_ms),
        "config_version": checkpoint.config_version,
        "command_number": checkpoint.command_number,
        "offsets": list(checkpoint.offsets.items()),
        "topic_ids": list(checkpoint.topic_ids.items()),
        "recreated": list(checkpoint.recreated.items()),
        "ruv": ruv_rows(state.ruvs),
        "purge_ruv": ruv_rows(state.purge_ruvs),
        "purge_epoch": state.purge_epoch,
        "rows_epoch": checkpoint.rows_epoch,
        "replicas": [_replica_row(r) for r in state.replicas.values()],
        "agreements": [
            _agreement_row(a, state.to_send.get(name)) for name, a in state.agreements.items()
        ],
        "counts": _count_rows(checkpoint.counts),
        "totals": _count_rows(checkpoint.totals),
        "versions": list(checkpoint.versions.items()),
        "ranges": [realign_row(one) for one in state.ranges],
        "truncates": [{"table": t, **one._asdict()} for t, one in state.truncations.items()],
        "numbers": sorted(state.numbers.items()),
        "feeds": [feed_row(n, a.feed) for n, a in state.agreements.items() if a.feed is not None],
        "elsewhere": elsewhere_rows(state.replicas.values()),
        "purge_batch": state.purge_batch,
        "away_since": [(name, time_of(ms)) for name, ms in sorted(state.away_since.items())],
        "held_back": held_back_rows(state.held_back),
        "paused_tables": [(n, sorted(tables)) for n, tables in state.paused_tables.items()],
        "leaving": sorted(state.leaving.items()),
        "left_epoch": state.left_epoch,
        "lacking": [(rid, sorted(names)) for rid, names in sorted(state.lacking.items())],
        "tombstone_epoch": state.tombstone_epoch,
    }


def checkpoint_of(row: Mapping[str, Any]) -> Checkpoint:
    """The checkpoint that a row holds, the open transactions apart (table `pending`)."""
    check_format(row["format"])
    elsewhere = elsewhere_of(row["elsewhere"] or ())
    replicas = [with_elsewhere(_replica(r), elsewhere) for r in row["replicas"]]
    feeds = feeds_of(row["feeds"] or ())
    agreements = [replace(_agreement(a), feed=feeds.get(a["name"])) for a in row["agreements"]]
    state = HubState(
        row["generation"],
        row["replicageneration"],
        row["batch"],
        row["hub_epoch"],
        ruvs_of(row["ruv"]),
        ruvs_of(row["purge_ruv"]),
        row["purge_epoch"],
        {r.rid: r for r in replicas},
        {a.name: a for a in agreements},
        _to_send(row["agreements"]),
        ranges=tuple(realigned_range(one) for one in row["ranges"]),
        truncations=dict(_truncation(one) for one in row["truncates"]),
        numbers=numbers_of(row),
        purge_batch=row["purge_batch"] or 0,
        away_since={name: ms_of(at) for name, at in row["away_since"] or ()},
        held_back=held_back_of(row["held_back"] or ()),
        paused_tables={name: frozenset(t) for name, t in row["paused_tables"] or ()},
        leaving=dict(row["leaving"] or ()),
        left_epoch=row["left_epoch"] or 0,
        lacking={rid: frozenset(names) for rid, names in row["lacking"] or ()},
        tombstone_epoch=row["tombstone_epoch"] or 0,
    )
    return Checkpoint(
        state,
        dict(row["offsets"]),
        dict(row["topic_ids"]),
        row["config_version"],
        row["command_number"],
        row["rows_epoch"],
        ms_of(row["at"]),
        {parse_key(text): count for text, count in row["counts"]},
        {parse_key(text): count for text, count in row["totals"]},
        dict(row["versions"]),
        dict(row["recreated"]),
    )


def check_format(written: int) -> None:
    """StateError, with what to do, if this version does not work on a state of this format."""
    if written != FORMAT:
        raise StateError(
            f"the state was written in format {written}, this hub knows {FORMAT}:"
            " run the version that wrote it, or a newer one"
        )


def _truncation(row: Mapping[str, Any]) -> tuple[str, Truncation]:
    fields = {name: row[name] for name in Truncation._fields}
    return row["table"], Truncation(**fields)


def numbers_of(row: Mapping[str, Any]) -> dict[int, int]:
    """The hub's own row of the matrix, rid -> number, as a commit row holds it.

    A row of before there was a matrix has none: what its replicas' opnos tell stands for it.
    """
    if row["numbers"] is not None:
        return dict(row["numbers"])
    return {one["rid"]: one["opno"] for one in row["replicas"] or () if one["opno"]}


def _count_rows(counts: Counts) -> list[tuple[str, int]]:
    return sorted((key_text(key), count) for key, count in counts.items())


def _replica_row(replica: ReplicaState) -> dict[str, object]:
    ended = replica.ended
    return {
        **{name: getattr(replica, name) for name in _OF_REPLICA},
        "state": replica.status_text,
        "sessions": [
            {
                "id": s.id,
                "hello_epoch": s.hello_epoch,
                "reflections": [
                    {"epoch": e, "covers": c} for e, c in zip(s.epochs, s.covers, strict=True)
                ],
            }
            for s in replica.sessions
        ],
        "known_sessions": list(replica.known_sessions),
        "seen_at": time_of(replica.seen_ms),
        "opno_above": sorted(replica.opno_above),
        "floors": [asdict(floor) for floor in replica.floors],
        "snapshot": replica.snapshot or "",
        "ended": ended and {"at": time_of(ended.at_ms), "unpublished": ended.unpublished},
    }


def _replica(row: Mapping[str, Any]) -> ReplicaState:
    sessions = tuple(
        Session(
            s["id"],
            s["hello_epoch"],
            tuple(r["epoch"] for r in s["reflections"]),
            tuple(r["covers"] for r in s["reflections"]),
        )
        for s in row["sessions"]
    )
    status, detail = parse_status(ReplicaStatus, row["state"])
    ended = row["ended"]
    return ReplicaState(
        **{name: row[name] for name in _OF_REPLICA},
        status=status,
        detail=detail,
        sessions=sessions,
        known_sessions=tuple(row["known_sessions"]),
        seen_ms=ms_of(row["seen_at"]),
        opno_above=frozenset(row["opno_above"]),
        floors=tuple(Floor(**floor) for floor in row["floors"]),
        snapshot=row["snapshot"] or None,
        ended=AgentEnd(ms_of(ended["at"]), ended["unpublished"]) if ended else None,
    )


def _agreement_row(agreement: AgreementState, to_send: SendRange | None) -> dict[str, object]:
    sends = to_send or _NOTHING
    return {
        **{name: getattr(agreement, name) for name in _OF_AGREEMENT},
        "state": agreement.status_text,
        "sent_ruv": agreement.sent_ruv.text(),
        "sent_at": time_of(agreement.sent_ms),
        "acked_ruv": agreement.acked_ruv.text(),
        "acked_at": time_of(agreement.acked_ms),
        "send_after": sends.after,
        "send_to": sends.to,
        "send_prev": sends.prev,
        "send_ruv": sends.known.text(),
        "send_covers": sends.position.covers,
        "send_covers_ruv": sends.position.ruv.text(),
        "send_ranges": [one._asdict() for one in sends.ranges],
        "behind_at": time_of(agreement.behind_ms) if agreement.behind_ms else None,
        "away_at": time_of(agreement.away_ms) if agreement.away_ms else None,
        "full": agreement.is_full,
        "scans": sorted(agreement.scans),
        "resync": resync_row(agreement.resync) if agreement.resync else None,
    }


def _agreement(row: Mapping[str, Any]) -> AgreementState:
    status, detail = parse_status(AgreementStatus, row["state"])
    return AgreementState(
        **{name: row[name] for name in _OF_AGREEMENT},
        status=status,
        detail=detail,
        sent_ruv=parse_ruv(row["sent_ruv"]),
        sent_ms=ms_of(row["sent_at"]),
        acked_ruv=parse_ruv(row["acked_ruv"]),
        acked_ms=ms_of(row["acked_at"]),
        behind_ms=ms_of(row["behind_at"]) if row["behind_at"] else 0,
        away_ms=ms_of(row["away_at"]) if row["away_at"] else 0,
        is_full=row["full"],
        scans=frozenset(row["scans"]),
        resync=resync_of(row["resync"]) if row["resync"] else None,
    )


def _to_send(rows: Iterable[Mapping[str, Any]]) -> dict[str, SendRange]:
    """Agreement -> what the batch publishes to it, of those to which it publishes something."""
    return {
        row["name"]: SendRange(
            row["send_after"],
            row["send_to"],
            row["send_prev"],
            parse_ruv(row["send_ruv"]),
            CoveredPosition(row["send_covers"], parse_ruv(row["send_covers_ruv"])),
            tuple(KeyRange(**one) for one in row["send_ranges"]),
        )
        for row in rows
        if row["send_to"] != _NOTHING.to
    }
