"""The running hub's last successful poll of its topics: one small file beside the tables.

An idle hub commits nothing, so the age of the last commit does not tell an idle hub from one that
is down. The file is scratch: no batch depends on it, and it may be removed at any time.
"""

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from checkpoints.root import read_file, replace_file
from streaming.core.access.root import StateRoot
from streaming.core.intake.liveness import TopicMove

FILE = "last_poll.json"


@dataclass(frozen=True, slots=True)
class ReadAtRest:
    """What a running hub has read behind its last commit: heartbeats that say nothing new.

    `batch`: the batch of that commit; behind another one it holds no more. `offsets`: topic -> the
    first offset that is not read. `seen_ms`: rid -> when its last record was written.
    """

    batch: int
    offsets: Mapping[str, int]
    seen_ms: Mapping[int, int]


READ_NOTHING = ReadAtRest(0, {}, {})
"""The last commit is of all that the hub has read."""


@dataclass(frozen=True, slots=True)
class LastPoll:
    """When a hub last reached Kafka, and where its topics ended.

    `hub`: the process, as in `epochs`. `ends`: topic -> the offset that its next record gets.
    `ended`: the hub ended in order at `at_ms`; one that was killed cannot say so. `moves`: topic ->
    when its last record came. `away`: the broker that does not answer, since `away_since_ms`, as of
    `away_at_ms`, with what it refuses in `away_why`. `at_rest`: what the hub has read and not
    committed. `unreadable`: changes topic -> why it may not be read. `packets`: what does not come
    through by packets -> what to do. `unknown`: topics under the prefix that are of no replica.
    """

    hub: str
    at_ms: int
    ends: Mapping[str, int]
    ended: bool = False
    moves: Mapping[str, TopicMove] = field(default_factory=dict)
    away: str = ""
    away_since_ms: int = 0
    away_at_ms: int = 0
    away_why: str = ""
    at_rest: ReadAtRest = READ_NOTHING
    unreadable: Mapping[str, str] = field(default_factory=dict)
    packets: Mapping[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()


def moves_since(
    before: LastPoll | None, ends: Mapping[str, int], at_ms: int
) -> dict[str, TopicMove]:
    """Topic -> when its last record came, by what the poll before saw and this one sees."""
    return {topic: _move(before, topic, end, at_ms) for topic, end in ends.items()}


def _move(before: LastPoll | None, topic: str, end: int, at_ms: int) -> TopicMove:
    if before is None or topic not in before.ends:
        return TopicMove(0, at_ms)
    if before.ends[topic] != end:
        return TopicMove(before.at_ms, at_ms)
    return before.moves.get(topic, TopicMove(0, before.at_ms))


def write_poll(root: StateRoot, poll: LastPoll) -> None:
    """Replace the file of this state root; a reader sees the old or the new one."""
    document = asdict(poll)
    replace_file(root, FILE, json.dumps(document).encode())


def read_poll(root: StateRoot) -> LastPoll | None:
    """The last poll; None if no hub of this version has polled yet, or the file is damaged."""
    try:
        found = json.loads(read_file(root, FILE))
        hub, at_ms, ends = str(found["hub"]), int(found["at_ms"]), dict(found["ends"])
        moves = {t: TopicMove(**move) for t, move in found.get("moves", {}).items()}
        away, why = (str(found.get(name) or "") for name in ("away", "away_why"))
        since_ms, seen_ms = (int(found.get(n) or 0) for n in ("away_since_ms", "away_at_ms"))
        is_ended, at_rest = found.get("ended") is True, _read_at_rest(found.get("at_rest"))
        refused, packets = (_texts(found.get(name)) for name in ("unreadable", "packets"))
        return LastPoll(
            hub,
            at_ms,
            ends,
            is_ended,
            moves,
            away,
            since_ms,
            seen_ms,
            why,
            at_rest,
            refused,
            packets,
            tuple(map(str, found.get("unknown") or ())),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _texts(found: Mapping[str, Any] | None) -> dict[str, str]:
    return {str(name): str(text) for name, text in (found or {}).items()}


def _read_at_rest(found: Mapping[str, Any] | None) -> ReadAtRest:
    if found is None:
        return READ_NOTHING
    seen_ms = {int(rid): int(at_ms) for rid, at_ms in found["seen_ms"].items()}
    return ReadAtRest(int(found["batch"]), dict(found["offsets"]), seen_ms)


def note_away(root: StateRoot, since_s: float, broker: str, why: str = "") -> None:
    """Note that a running hub waits for this broker, and why; what the last poll found stays.

    Of a state that was never polled nothing is noted: there are no facts yet that could be old.
    """
    found = read_poll(root)
    if found is not None:
        now_ms = time.time_ns() // 1_000_000
        since_ms = int(since_s * 1_000)
        away = replace(
            found, ended=False, away=broker, away_since_ms=since_ms, away_at_ms=now_ms, away_why=why
        )
        with suppress(OSError):
            write_poll(root, away)
