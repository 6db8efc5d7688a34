"""The replicas of which nothing is heard: nobody knows what was written there since."""

from dataclasses import dataclass
from datetime import datetime

from checkpoints.commit.last_poll import LastPoll, read_poll
from checkpoints.reading.reader import Reader
from checkpoints.times import time_of
from streaming.config.config import Config
from streaming.core.intake.liveness import TopicMove, UnheardReason, unheard
from streaming.core.state.replica_state import ReplicaState
from streaming.core.text.wording import as_count


@dataclass(frozen=True, slots=True)
class UnheardReplica:
    """A replica of which nothing is heard, since when; None: it was never heard.

    `unpublished`: about how many entries of its journal its agent left unpublished when it ended.
    """

    replica: str
    why: UnheardReason
    since: datetime | None
    unpublished: int | None

    @property
    def text(self) -> str:
        """What is known, in one clause, for people."""
        since = f"{self.since:%Y-%m-%d %H:%M:%S} UTC" if self.since else ""
        match self.why:
            case UnheardReason.NEVER:
                return f"{self.replica} has never said hello: what its database holds is unknown"
            case UnheardReason.ENDED:
                left = as_count(self.unpublished or 0, "entry", "entries")
                kept = f" and left {left} of its journal unpublished" if self.unpublished else ""
                return (
                    f"the agent of {self.replica} ended at {since}{kept}: what was written there"
                    " since is unknown until it is started"
                )
            case UnheardReason.SILENT:
                return (
                    f"nothing received from {self.replica} since {since}: what was written there"
                    " since is unknown"
                )


def unheard_replicas(config: Config, reader: Reader, at_s: float) -> tuple[UnheardReplica, ...]:
    """The configured replicas of which nothing is heard; `at_s`: the time of the facts.

    `reader`: with what the hub has read behind its commit (`as_read`). A replica that sends packets
    is heard when they come, and its silence says nothing.
    """
    if reader.commit is None:
        return ()
    known, read_to = reader.commit.state.replicas, reader.commit.offsets
    poll = read_poll(reader.root)
    timeout_ms = config.hub.heartbeat_timeout_s * 1000
    found = list[UnheardReplica]()
    for one in config.replicas:
        state = known.get(one.rid, ReplicaState(one.rid))
        topic = config.changes_topic(one.name)
        move = _last_move(poll, topic, read_to.get(topic, 0)) if poll else None
        silence = unheard(state, move, round(at_s * 1000), timeout_ms)
        is_by_packets = one.name in config.by_packets
        if silence is not None and (not is_by_packets or silence.why is UnheardReason.NEVER):
            since = None if silence.since_ms is None else time_of(silence.since_ms)
            found.append(UnheardReplica(one.name, silence.why, since, silence.unpublished))
    return tuple(found)


def _last_move(poll: LastPoll, topic: str, read_to: int) -> TopicMove | None:
    """Between which two moments the last record came to a topic; None: no poll saw it.

    Whether a record that is not read yet came early or late between two polls nobody knows, so it
    counts as come when the later one saw it. Otherwise a hub that was down, or had lost its broker,
    would find everybody silent since then, until it has read what they wrote meanwhile.
    """
    move = poll.moves.get(topic)
    if move is None or poll.ends.get(topic, 0) <= read_to:
        return move
    return TopicMove(move.by_ms, move.by_ms)
