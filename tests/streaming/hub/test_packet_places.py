"""The places of records in a topic that packets are brought into."""

from hypothesis import given
from hypothesis import strategies as st

from connectors.kafka.placed_records import PlacedRecord
from streaming.core.matrix.packets import Place
from streaming.hub.packets.places import TopicPlaces


def record(offset: int, place: int, outbox: str = "box") -> PlacedRecord:
    """A record of an outbox."""
    return PlacedRecord(offset, Place(outbox, place), f"{outbox}:{place}")


@given(st.lists(st.integers(1, 4), max_size=8), st.integers(0, 3))
def test_a_place_is_that_of_the_record_before_an_offset(parts: list[int], first: int) -> None:
    """A replica that is told a place too large forgets what nobody has."""
    places, offset = TopicPlaces(), first
    for length in parts:
        places.note([record(offset + n, offset + n - first + 1) for n in range(length)], offset)
        offset += length

    assert places.at(first) is None
    for at in range(first + 1, offset + 3):
        expected = min(at, offset) - first
        assert places.at(at) == (Place("box", expected) if parts else None)


def test_what_comes_again_moves_no_place_back() -> None:
    """A producer that was given up may deliver its last records once more."""
    places = TopicPlaces()
    places.note([record(n, n + 1) for n in range(3)], 3)
    places.note([record(3, 2), record(4, 3), record(5, 4)], 6)
    places.note([record(6, 3)], 7)

    assert places.last == record(5, 4)
    assert places.at(4) == Place("box", 2)
    assert places.at(6) == Place("box", 4)


def test_another_outbox_begins_anew() -> None:
    """Its first place is 1, and it is what the topic ends with."""
    places = TopicPlaces()
    places.note([record(0, 1), record(1, 2), record(2, 1, "new")], 3)

    assert places.last == record(2, 1, "new")
    assert places.outboxes == {"box", "new"}
    assert places.at(2) == Place("box", 2)
    assert places.offset_of(Place("new", 1)) == 2
    assert places.offset_of(Place("box", 1)) is None
