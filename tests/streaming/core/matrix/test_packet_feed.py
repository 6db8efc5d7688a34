"""When a packet is exported, and which packets of a replica are taken."""

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.core.matrix.importing import (
    AlreadyThere,
    BroughtRecords,
    RefusePacket,
    TakeRecords,
    TopicRecords,
    WaitForOthers,
    decide_import,
)
from streaming.core.matrix.packets import RETRY_MS, PacketFeed, Place

EVERY_MS = 60_000
HERE = Place("box", 7)
"""Up to where the hub has the replica's records."""
TOLD = PacketFeed(3, 20, 100_000, got=HERE)
"""A feed whose last packet told all that there is."""


@pytest.mark.parametrize(
    ("feed", "at_ms", "place", "lacks", "wanted"),
    [
        pytest.param(TOLD, 159_999, HERE, True, False, id="not yet"),
        pytest.param(TOLD, 160_000, HERE, True, True, id="by the clock"),
        pytest.param(TOLD, 160_000, HERE, False, False, id="nothing to say"),
        pytest.param(TOLD, 160_000, Place("box", 8), False, True, id="another place"),
        pytest.param(TOLD, 160_000, None, False, False, id="a place that is not known"),
        pytest.param(TOLD.ordered(), 100_001, HERE, False, True, id="on order"),
        pytest.param(PacketFeed(), EVERY_MS, None, False, True, id="the first one"),
        pytest.param(TOLD.not_again(), 100_001, HERE, True, True, id="the rest of the last one"),
        pytest.param(TOLD.not_again(), 100_001, Place("box", 8), False, False, id="no rest"),
        pytest.param(TOLD.not_written(), 100_001, HERE, True, False, id="a full disk"),
        pytest.param(TOLD.not_written(), 100_000 + RETRY_MS, HERE, False, True, id="tried again"),
    ],
)
def test_when_a_packet_is_exported(
    feed: PacketFeed, at_ms: int, place: Place | None, *, lacks: bool, wanted: bool
) -> None:
    """One for each batch would be thousands of files; one too few leaves a replica behind."""
    assert feed.wants_packet(at_ms, EVERY_MS, place, lacks=lacks) is wanted


def test_without_a_clock_only_an_order_exports() -> None:
    """Who carries a stick wants one packet, and the newest."""
    assert not TOLD.wants_packet(10**12, 0, HERE, lacks=True)
    assert TOLD.ordered().wants_packet(10**12, 0, HERE, lacks=True)


def test_a_packet_that_knows_no_place_repeats_the_last_one() -> None:
    """A hub that starts does not know it yet, and the replica must not think that it is lost."""
    after = TOLD.exported(21, 170_000, None, "", is_open=False)

    assert (after.number, after.got, after.csn) == (4, TOLD.got, TOLD.csn)
    assert not after.is_ordered


# -- import -----------------------------------------------------------------------------------


def digest(outbox: str, place: int) -> str:
    """That of the record at a place of an outbox."""
    return sha256(f"{outbox}:{place}".encode()).hexdigest()


def packet(
    base: int, end: int, outbox: str = "box", content: str | None = None, session: str | None = "s"
) -> BroughtRecords:
    """A packet; `content`: the outbox whose records it holds."""
    held = content or outbox

    def digest_at(place: int) -> str | None:
        assert base <= place <= end
        return digest(held, place) if place else None

    return BroughtRecords(outbox, base, end, digest_at, session)


def topic(place: int, outbox: str = "box", gone: int = 0) -> TopicRecords:
    """A topic up to a place; `gone`: up to there its records are deleted."""
    last = Place(outbox, place) if place else None
    known = {outbox} if place else set()
    return TopicRecords(
        last, known, lambda at: digest(outbox, at) if at > gone else None, {"known"}
    )


@pytest.mark.parametrize(
    ("brought", "there", "expected"),
    [
        pytest.param(packet(0, 3), topic(0), TakeRecords(0), id="the first"),
        pytest.param(packet(3, 5), topic(3), TakeRecords(0), id="the next"),
        pytest.param(packet(1, 5), topic(3), TakeRecords(2), id="known in part"),
        pytest.param(packet(0, 3), topic(3), AlreadyThere(), id="twice"),
        pytest.param(packet(1, 2), topic(3), AlreadyThere(), id="older"),
        pytest.param(packet(1, 2), topic(3, gone=3), AlreadyThere(), id="older than the topic"),
        pytest.param(packet(5, 6), topic(3), WaitForOthers(4, 5), id="behind a hole"),
        pytest.param(packet(2, 6), topic(0), WaitForOthers(1, 2), id="before the first"),
        pytest.param(packet(0, 2, "new"), topic(3), TakeRecords(0), id="a new outbox"),
        pytest.param(packet(2, 4, "new"), topic(3), WaitForOthers(1, 2), id="its second packet"),
    ],
)
def test_which_packets_are_taken(
    brought: BroughtRecords, there: TopicRecords, expected: object
) -> None:
    """Each place once, in order, from one outbox."""
    assert decide_import(brought, there) == expected


OTHERS = {
    "the record before it is another": (packet(3, 5, content="other"), topic(3)),
    "an overlap of other records": (packet(1, 5, content="other"), topic(3)),
    "older places with other records": (packet(1, 2, content="other"), topic(3)),
    "an outbox that was replaced": (
        packet(0, 2, "old"),
        topic(3)._replace(outboxes={"old", "box"}),
    ),
    "a new outbox without a hello": (packet(0, 2, "new", session=None), topic(3)),
    "a new outbox with a known session": (packet(0, 2, "new", session="known"), topic(3)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_packets_of_another_history_are_refused(name: str) -> None:
    """Taken, their records would be judged as what they are not, or be dropped in silence."""
    decision = decide_import(*OTHERS[name])

    assert isinstance(decision, RefusePacket)
    assert len(decision.why) > len("because")


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4)), max_size=40),
    st.permutations(range(10)),
)
def test_in_any_order_each_place_is_taken_once(
    some: list[tuple[int, int]], last: list[int]
) -> None:
    """Packets of any cut, again and again: the topic is the outbox."""
    taken = list[int]()
    waiting = [(base, base + length) for base, length in some] + [(n, n + 1) for n in last]
    while waiting:
        left = list[tuple[int, int]]()
        for base, end in waiting:
            match decide_import(packet(base, end), topic(len(taken))):
                case TakeRecords(known):
                    taken += range(base + known + 1, end + 1)
                case WaitForOthers():
                    left.append((base, end))
                case other:
                    assert other == AlreadyThere()
        assert len(left) < len(waiting)
        waiting = left

    assert taken == list(range(1, len(taken) + 1))
    assert len(taken) >= len(last)
