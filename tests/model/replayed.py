"""A history of the model, judged again from what its hub kept of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from streaming.core.records.record import ReceivedRecord
from streaming.core.replay.states import different_states
from tests.model.hub import DecidedBatch, PureHub
from tests.reference.records import Place, records_of


@dataclass(slots=True)
class ReplayedHistory:
    """A second hub that takes the batches of the first one, from its decisions alone.

    What was sent is held as it is recorded: what replicas reflected answers to that.
    """

    first: PureHub
    again: PureHub = field(init=False)

    def __post_init__(self) -> None:
        """Start where the first hub started."""
        self.again = PureHub(self.first.topology)

    def batches(self) -> Iterator[tuple[DecidedBatch, DecidedBatch]]:
        """Each committed batch, with the one that comes out."""
        originals = originals_of(self.first)
        for recorded in self.first.decided:
            received = records_of(recorded.decision, recorded.before, originals)
            yield recorded, self.take(recorded, received)

    def take(self, recorded: DecidedBatch, received: Sequence[ReceivedRecord]) -> DecidedBatch:
        """Decide a batch of these records by the plan of a recorded one."""
        then = recorded.before
        self.again.state = replace(
            self.again.state,
            agreements=then.agreements,
            to_send=then.to_send,
            away_since=then.away_since,
            held_back=then.held_back,
            paused_tables=then.paused_tables,
            lacking=then.lacking,
        )
        decision = self.again.decision_of(received, recorded.plan)
        self.again.log[decision.state.batch] = decision.entries
        self.again.commit(decision, recorded.plan)
        return self.again.decided[-1]


def originals_of(hub: PureHub) -> dict[Place, ReceivedRecord]:
    """The records that went to quarantine, as the quarantine keeps their bytes."""
    return {(one.rid, one.offset): hub.topics[one.rid][one.offset] for one in hub.kept}


def kept_records(hub: PureHub) -> list[ReceivedRecord]:
    """All records of a history, batch by batch, from what the hub kept of them."""
    originals = originals_of(hub)
    return [
        record for one in hub.decided for record in records_of(one.decision, one.before, originals)
    ]


def check_replay_is_equal(hub: PureHub) -> None:
    """Judged again from what was kept, every batch comes out as it is recorded."""
    for recorded, again in ReplayedHistory(hub).batches():
        mine, theirs = recorded.decision, again.decision
        assert theirs.entries == mine.entries
        assert theirs.rows == mine.rows
        assert theirs.intake.quarantined == mine.intake.quarantined
        assert theirs.intake.ended == mine.intake.ended
        assert list(different_states(mine.state, theirs.state)) == []
