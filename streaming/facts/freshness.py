"""How old the facts are: the hub's last commit, and its last poll of Kafka."""

from dataclasses import dataclass, replace

from checkpoints.last_poll import read_poll
from checkpoints.reader import Reader
from streaming.core.model.wording import as_age
from streaming.facts.names import age_s

MAX_AGE_S = 10.0
"""Above this age facts are stale; a running hub polls Kafka every two seconds."""


@dataclass(frozen=True, slots=True)
class Freshness:
    """The ages of the last commit and of the last poll, in seconds; None: there is none.

    `age_s`: the age of the facts. A hub that has polled counts by its polls alone, because it can
    commit an operator's command while Kafka does not answer. `ended`: the last hub ended in order.
    `away`: the broker for which a running hub waits, `away_s`: for how long.
    """

    committed_age_s: float | None
    polled_age_s: float | None
    age_s: float | None
    ended: bool = False
    away: str = ""
    away_s: float = 0.0

    def is_stale(self, max_age_s: float = MAX_AGE_S) -> bool:
        """Return whether the facts may no longer hold."""
        return self.age_s is None or self.age_s > max_age_s


def freshness(reader: Reader, now_s: float) -> Freshness:
    """How old the facts of this reader are."""
    age, poll = _ages(reader, now_s), read_poll(reader.root)
    if poll is None or not poll.away or now_s - poll.away_at_ms / 1000 > MAX_AGE_S:
        return age
    return replace(age, away=poll.away, away_s=now_s - poll.away_since_ms / 1000)


def _ages(reader: Reader, now_s: float) -> Freshness:
    poll, committed = read_poll(reader.root), age_s(reader, now_s)
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
    """Why the facts may no longer hold, for people; None: a hub is running and reaches Kafka."""
    if age.ended and age.polled_age_s is not None:
        return f"no hub is running: it ended {as_age(age.polled_age_s)}"
    if age.away:
        return away_text(age)
    if age.is_stale():
        return f"no hub is running, or it does not reach Kafka ({stale_text(age)})"
    return None


def away_text(age: Freshness) -> str:
    """Say for which broker a running hub waits, for people."""
    return f"the hub waits for Kafka at {age.away}, which last answered {as_age(age.away_s)}"


def stale_text(age: Freshness) -> str:
    """Say which of the facts is too old, for people."""
    if age.away:
        return away_text(age)
    if age.committed_age_s is None:
        return "no batch is committed yet"
    committed = f"last commit {as_age(age.committed_age_s)}"
    if age.polled_age_s is None or age.age_s == age.committed_age_s:
        return f"{committed}"
    polled = f"the hub last reached Kafka {as_age(age.polled_age_s)}"
    return f"{polled} ({committed})"
