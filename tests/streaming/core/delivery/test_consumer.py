"""The consumer applies every batch once and in order, and sends a hello when one is missing."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from streaming.core.delivery.consumer import (
    ApplyBatch,
    BufferChunk,
    DropRecord,
    EndAgent,
    Position,
    ReceiveOutcome,
    SendHello,
    SkipRecord,
    receive,
)
from streaming.core.model.ruv import Ruv
from streaming.core.records.record import Item, ItemType, Stopped, Update

SESSION = "s1"
START = Position(covers=3, last=3, generation=1).in_session(SESSION)


def chunk(hub_epoch: int, prev: int, number: int = 0, count: int = 1) -> Update:
    """A chunk of a batch whose one item identifies its chunk."""
    item = Item(ItemType.CHANGE, "t", f'{{"id":"{hub_epoch}.{number}"}}', "delete", None, None, 2)
    ruv = Ruv().with_csn(f"{hub_epoch:08x}000000020000")
    return Update("a", 1, SESSION, hub_epoch, prev, hub_epoch, ruv, number, count, (item,))


def batches(sizes: list[int]) -> list[list[Update]]:
    """Batches of so many chunks, each behind the one before; the first behind START."""
    return [
        [chunk(hub_epoch, hub_epoch - 1, number, size) for number in range(size)]
        for hub_epoch, size in enumerate(sizes, START.last + 1)
    ]


def after(position: Position, outcome: ReceiveOutcome) -> Position:
    """The position with which a consumer goes on, as an agent does."""
    match outcome:
        case ApplyBatch() | BufferChunk():
            return outcome.position
        case SendHello():
            return outcome.position.in_session("s2")
        case SkipRecord() | DropRecord() | EndAgent():
            return position


def test_the_next_batch_is_applied() -> None:
    """Position, covers and RUV come from the batch."""
    update = chunk(5, prev=3)

    outcome = receive(START, update)

    assert isinstance(outcome, ApplyBatch)
    assert (outcome.hub_epoch, outcome.items) == (5, update.items)
    assert (outcome.position.last, outcome.position.covers) == (5, 5)
    assert outcome.position.ruv == update.ruv


def test_covers_may_stay_while_last_moves() -> None:
    """In a resync the hub sends batches that do not make the consumer complete."""
    update = replace(chunk(5, prev=3), covers=3, ruv=Ruv())

    outcome = receive(START, update)

    assert isinstance(outcome, ApplyBatch)
    assert (outcome.position.last, outcome.position.covers) == (5, 3)


def test_a_batch_that_was_applied_is_skipped() -> None:
    """The hub publishes again after a crash."""
    assert receive(START, chunk(3, prev=2)) == SkipRecord()


def test_a_missing_batch_asks_for_a_hello() -> None:
    """Never apply over a gap."""
    outcome = receive(START, chunk(6, prev=5))

    assert isinstance(outcome, SendHello)
    assert "batch 6 follows 5, but 3 came last" in outcome.why


def test_a_record_of_another_session_is_dropped() -> None:
    """After a restore the topic still holds what answered the session before."""
    update = replace(chunk(4, prev=3), session="s0")

    assert isinstance(receive(START, update), DropRecord)


def test_a_hello_puts_last_back_to_covers() -> None:
    """What was applied beyond covers is sent again."""
    position = replace(START, last=9, covers=4)

    assert position.in_session("s2").last == 4


def test_an_agent_ends_when_a_session_that_started_later_is_answered() -> None:
    """Nothing that it published since would ever be taken, and nothing would be sent to it."""
    answered = receive(START, chunk(4, prev=3))
    assert isinstance(answered, ApplyBatch)

    outcome = receive(answered.position, replace(chunk(5, prev=4), session="later"))

    assert isinstance(outcome, EndAgent)
    assert "another agent runs under the name of this replica" in outcome.why


def test_an_earlier_session_is_not_taken_for_a_later_one() -> None:
    """A hub that died publishes its last batch again, of whatever session."""
    answered = receive(START, chunk(4, prev=3))
    assert isinstance(answered, ApplyBatch)
    buffered = receive(START, replace(chunk(4, prev=3), chunks=2))
    assert isinstance(buffered, BufferChunk)

    for position in (answered.position, buffered.position):
        outcome = receive(position, replace(chunk(4, prev=3), session="earlier"))
        assert isinstance(outcome, DropRecord)


def test_a_lower_generation_is_dropped() -> None:
    """A hub that was overtaken may still be sending."""
    assert isinstance(receive(START, replace(chunk(4, prev=3), generation=0)), DropRecord)


def test_a_higher_generation_asks_for_one_hello_and_is_taken_over_from_its_answer() -> None:
    """A restored hub must learn the true position before it sends; once is enough."""
    restored = replace(chunk(4, prev=3), generation=2)
    running = replace(START, answered=True)

    first = receive(running, restored)
    position = after(running, first)
    second = receive(position, restored)
    answer = receive(position, replace(restored, session="s2"))

    assert isinstance(first, SendHello)
    assert position.generation == 1
    assert isinstance(second, DropRecord)
    assert isinstance(answer, ApplyBatch)
    assert answer.position.generation == 2


def test_a_higher_generation_of_another_session_asks_for_a_hello() -> None:
    """The restored hub may know only a session of long ago."""
    update = replace(chunk(4, prev=3), generation=2, session="s0")

    assert isinstance(receive(START, update), SendHello)


def test_the_first_generation_ever_is_taken_over_without_another_hello() -> None:
    """A new replica knows no generation."""
    position = Position().in_session(SESSION)

    outcome = receive(position, chunk(1, prev=0))

    assert isinstance(outcome, ApplyBatch)
    assert outcome.position.generation == 1


def test_a_batch_counts_after_its_last_chunk() -> None:
    """Half a batch is never applied."""
    first = receive(START, chunk(4, 3, 0, 2))

    assert isinstance(first, BufferChunk)
    assert first.position.last == 3
    second = receive(first.position, chunk(4, 3, 1, 2))
    assert isinstance(second, ApplyBatch)
    assert len(second.items) == 2
    assert second.position.chunks == ()


def test_a_new_chunk_0_starts_the_batch_afresh() -> None:
    """A hub that was started again may cut the batch otherwise."""
    buffered = after(START, receive(START, chunk(4, 3, 0, 3)))

    outcome = receive(buffered, chunk(4, 3, 0, 1))

    assert isinstance(outcome, ApplyBatch)
    assert len(outcome.items) == 1


def test_a_chunk_without_those_before_it_asks_for_a_hello() -> None:
    """A hole inside a batch is a gap like any other."""
    buffered = after(START, receive(START, chunk(4, 3, 0, 3)))

    assert isinstance(receive(START, chunk(4, 3, 1, 3)), SendHello)
    assert isinstance(receive(buffered, chunk(4, 3, 2, 3)), SendHello)
    assert isinstance(receive(buffered, chunk(4, 3, 1, 2)), SendHello)


@given(st.lists(st.integers(1, 4), max_size=5), st.data())
def test_every_batch_is_applied_once_and_in_order(sizes: list[int], data: st.DataObject) -> None:
    """However often the hub stops and publishes again from an earlier chunk or batch."""
    stream = [update for batch in batches(sizes) for update in batch]
    starts = [0] + [i for i, update in enumerate(stream) if update.chunk == 0]
    sent, reached = list[Update](), 0
    for stop in [*data.draw(st.lists(st.integers(0, len(stream)), max_size=4)), len(stream)]:
        again = data.draw(st.sampled_from([i for i in starts if i <= reached]))
        sent += stream[again:stop]
        reached = max(reached, stop if again < stop else 0)
    position, applied = START, list[Item]()

    for update in sent:
        outcome = receive(position, update)
        assert not isinstance(outcome, SendHello | DropRecord)
        applied += outcome.rows if isinstance(outcome, ApplyBatch) else ()
        position = after(position, outcome)

    assert applied == [item for update in stream for item in update.items]


@given(st.lists(st.integers(1, 3), min_size=1, max_size=5), st.data())
def test_nothing_is_ever_applied_over_a_gap(sizes: list[int], data: st.DataObject) -> None:
    """Whatever part of the topic is missing, what was applied is a beginning of it."""
    stream = [update for batch in batches(sizes) for update in batch]
    kept = [update for update in stream if data.draw(st.booleans())]
    position, applied = START, list[Item]()

    for update in kept:
        outcome = receive(position, update)
        applied += outcome.rows if isinstance(outcome, ApplyBatch) else ()
        position = after(position, outcome)

    whole = [item for update in stream for item in update.items]
    assert applied == whole[: len(applied)]


def test_an_agent_ends_when_the_hub_stopped_its_session() -> None:
    """An answer to an earlier session is old: that of this one is on its way."""
    stopped = Stopped("a", 1, SESSION, "hub_behind", "put back a newer state")

    outcome = receive(START, stopped)

    assert outcome == EndAgent("the hub stopped this replica (hub_behind): put back a newer state")
    assert isinstance(receive(START, replace(stopped, session="old")), DropRecord)
