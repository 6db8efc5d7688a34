"""How old the facts are: the hub's last commit, and its last poll of Kafka; whether it runs."""

from dataclasses import dataclass, replace
from enum import StrEnum

from checkpoints.commit.last_poll import LastPoll, read_poll
from checkpoints.commit.lock import StateLock, read_lock
from checkpoints.reading.reader import Reader
from streaming.core.text.wording import as_age
from streaming.facts.names import age_s

MAX_AGE_S = 10.0
"""Above this age facts are stale; a running hub polls Kafka every two seconds."""


class HubPresence(StrEnum):
    """Whether a hub works on the state, by its lock."""

    RUNNING = "running"
    """it holds the lock and has polled Kafka"""
    HANGS = "hangs"
    """it holds the lock and has polled Kafka, and says nothing any more"""
    STARTING = "starting"
    """it holds the lock, and has not polled Kafka since it took it"""
    ABSENT = "absent"
    """none on this machine, where the last one ran"""
    UNKNOWN = "unknown"
    """the last one ran on another machine, or there is no lock to look at"""


@dataclass(frozen=True, slots=True)
class Freshness:
    """The ages of the last commit and of the last poll, in seconds; None: there is none.

    `age_s`: the age of the facts. A hub that has polled counts by its polls alone, because it can
    commit an operator's command while Kafka does not answer. `ended`: the last hub ended in order.
    `away`: the broker for which a running hub waits, `away_s`: for how long, `away_why`: what it
    refuses. `owner`: the hub that is running or starting.
    """

    committed_age_s: float | None
    polled_age_s: float | None
    age_s: float | None
    ended: bool = False
    away: str = ""
    away_s: float = 0.0
    away_why: str = ""
    presence: HubPresence = HubPresence.UNKNOWN
    owner: str = ""

    def is_stale(self, max_age_s: float = MAX_AGE_S) -> bool:
        """Return whether the facts may no longer hold."""
        return self.age_s is None or self.age_s > max_age_s

    def as_of_s(self, now_s: float) -> float:
        """Return the time of the facts."""
        return now_s - (self.age_s or 0)


def freshness(reader: Reader, now_s: float) -> Freshness:
    """How old the facts of this reader are."""
    poll, lock = read_poll(reader.root), read_lock(reader.root)
    presence = _presence(lock, poll, now_s)
    age = replace(_ages(reader, poll, now_s), presence=presence, owner=lock.owner)
    if poll is None or not poll.away or now_s - poll.away_at_ms / 1000 > MAX_AGE_S:
        return age
    away_s = now_s - poll.away_since_ms / 1000
    return replace(age, away=poll.away, away_s=away_s, away_why=poll.away_why)


def _presence(lock: StateLock, poll: LastPoll | None, now_s: float) -> HubPresence:
    """What the lock says; the hub that has it polls once it has started.

    One that does not reach Kafka notes that, beside its batches, as often as it polls.
    """
    if not lock.is_held:
        return HubPresence.UNKNOWN if lock.is_held is None else HubPresence.ABSENT
    if poll is None or poll.at_ms < lock.since_ms:
        return HubPresence.STARTING
    silent_s = now_s - max(poll.at_ms, poll.away_at_ms) / 1000
    return HubPresence.HANGS if silent_s > MAX_AGE_S else HubPresence.RUNNING


def _ages(reader: Reader, poll: LastPoll | None, now_s: float) -> Freshness:
    committed = age_s(reader, now_s)
    if poll is None:
        return Freshness(committed, None, committed)
    polled = round(now_s - poll.at_ms / 1000, 3)
    if committed is None:
        return Freshness(None, polled, None, poll.ended)
    ended = poll.ended and polled <= committed
    if poll.hub == reader.hub:
        return Freshness(committed, polled, polled, ended)
    return Freshness(committed, polled, min(committed, polled), ended)


def doubt_of(age: Freshness) -> str | None:
    """Why the facts may no longer hold, for people; None: a hub is running and reaches Kafka.

    The last commit before a hub starts may be young, and of one that was killed.
    """
    is_starting = age.presence is HubPresence.STARTING
    if age.ended and age.polled_age_s is not None and not is_starting:
        return f"no hub is running: it ended {as_age(age.polled_age_s)}"
    return late_text(age) if age.away or age.ended or is_starting or age.is_stale() else None


def late_text(age: Freshness) -> str:
    """Say why the facts are too old, for people: by the lock, as far as it can be seen."""
    if age.away:
        waits = f"the hub waits for Kafka at {age.away}, which last answered {as_age(age.away_s)}"
        return f"{waits}: {age.away_why}" if age.away_why else waits
    return f"{_hub_text(age)} ({_stale_text(age)})"


def _hub_text(age: Freshness) -> str:
    """Say of a hub that is not heard whether it is there, for people."""
    match age.presence:
        case HubPresence.RUNNING:
            return f"{age.owner} is running"
        case HubPresence.HANGS:
            return f"{age.owner} does not answer: it is stopped or hangs"
        case HubPresence.STARTING:
            return f"{age.owner} is starting"
        case HubPresence.ABSENT:
            return "no hub is running"
        case HubPresence.UNKNOWN:
            return "no hub is running, or it does not reach Kafka"


def _stale_text(age: Freshness) -> str:
    """Say which of the facts is too old, for people."""
    if age.committed_age_s is None:
        return "no batch is committed yet"
    committed = f"last commit {as_age(age.committed_age_s)}"
    if age.polled_age_s is None or age.age_s == age.committed_age_s:
        return committed
    polled = f"the hub last reached Kafka {as_age(age.polled_age_s)}"
    return f"{polled}, {committed}"


def as_read(reader: Reader) -> Reader:
    """The reader with the positions and the times of what its hub has read behind its commit.

    That is heartbeats that say nothing new, so all else is as committed. They are of one commit:
    behind another one the next poll says what is read.
    """
    commit, poll = reader.commit, read_poll(reader.root)
    if commit is None or poll is None or poll.at_rest.batch != reader.batch:
        return reader
    found, known = poll.at_rest, commit.state.replicas
    newer = {
        rid: replace(known[rid], seen_ms=seen_ms)
        for rid, seen_ms in found.seen_ms.items()
        if rid in known
    }
    state = replace(commit.state, replicas={**known, **newer})
    offsets = {**commit.offsets, **found.offsets}
    return replace(reader, commit=replace(commit, state=state, offsets=offsets))
