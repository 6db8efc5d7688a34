"""Claims about what is missing between packets and their reader."""

from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from connectors.packets.arrived import Arrival, ArrivedPacket
from connectors.packets.header import Content, UpdatesHeader
from connectors.packets.missing import (
    MissingEpochs,
    MissingParts,
    MissingPlaces,
    OtherOutbox,
    missing_changes,
    missing_updates,
)
from streaming.core.delivery.consumer import Position
from streaming.core.matrix.packets import Place
from streaming.core.model.ruv import Ruv
from tests.harness.packet_headers import CHANGES, OUTBOX

HERE = Position("s1", last=4, covers=4, ruv=Ruv("g"), generation=1, reached=4, answered=True)
FIRST = UpdatesHeader("g", 9, "a", 1, 1, "s1", 1, {}, {}, 4, 6, None, content=Content(2))


def packet(prev: int, last: int, parts: int = 1, there: int = 1) -> ArrivedPacket:
    """A packet behind one hub epoch up to another; `there`: so many of its parts."""
    header = replace(FIRST, number=last, first_prev=prev, last_hub_epoch=last, parts=parts)
    return ArrivedPacket(header, {n: Path(str(n)) for n in range(1, there + 1)})


def test_each_hole_is_named_once() -> None:
    """What is behind a hole counts as there."""
    packets = [packet(8, 9), packet(14, 20), packet(9, 11), packet(2, 3)]

    assert [*missing_updates(packets, HERE)] == [
        MissingEpochs("a", 5, 8),
        MissingEpochs("a", 12, 14),
    ]
    assert [*missing_updates([packet(4, 6), packet(6, 9)], HERE)] == []
    assert [*missing_updates([packet(4, 6, parts=3, there=2)], HERE)] == [
        MissingParts("a", 6, (3,))
    ]


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(1, 6)), max_size=6))
def test_nothing_is_missing_exactly_if_all_can_be_applied(spans: list[tuple[int, int]]) -> None:
    """By the rule of the agent itself, one behind the other."""
    packets = [packet(prev, prev + count) for prev, count in spans]
    position, left = HERE, packets
    while ready := [one for one in left if one.at(position) is Arrival.NEXT]:
        position = replace(position, last=max(one.header.last_hub_epoch or 0 for one in ready))
        left = [one for one in left if one.at(position) is not Arrival.APPLIED]
    waits = any(one.at(position) is Arrival.WAITS for one in left)

    assert bool([*missing_updates(packets, HERE)]) == waits


def test_what_the_hub_lacks_of_an_outbox() -> None:
    """Up to where it is read, and what the packets that are there bring."""
    headers = [replace(CHANGES, base=b, end=e) for b, e in ((20, 25), (12, 17), (30, 31))]

    assert [*missing_changes(headers, Place(OUTBOX, 14))] == [
        MissingPlaces("lisbon", OUTBOX, 18, 20),
        MissingPlaces("lisbon", OUTBOX, 26, 30),
    ]
    assert [*missing_changes(headers[1:2], None)] == [MissingPlaces("lisbon", OUTBOX, 1, 12)]
    assert [*missing_changes([], None)] == []
    other = replace(CHANGES, outbox="over", base=3, end=4)
    assert [*missing_changes([other], Place(OUTBOX, 14))] == [
        OtherOutbox("lisbon", "over", other.name)
    ]
