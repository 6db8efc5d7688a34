"""Claims about what a packet is to a replica at its position."""

from dataclasses import replace
from pathlib import Path

import pytest

from connectors.packets.arrived import Arrival, ArrivedPacket
from connectors.packets.header import Content, UpdatesHeader
from streaming.core.delivery.consumer import Position
from streaming.core.model.ruv import Ruv

HERE = Position("s1", last=4, covers=4, ruv=Ruv("g"), generation=1, reached=4, answered=True)
NEXT = UpdatesHeader("g", 9, "a", 1, 1, "s1", 3, {}, {}, 4, 6, None, content=Content(2))


def at(header: UpdatesHeader, position: Position = HERE) -> Arrival:
    """What a packet of one part is."""
    return ArrivedPacket(header, {1: Path("x")}).at(position)


@pytest.mark.parametrize(
    ("header", "arrival"),
    [
        (NEXT, Arrival.NEXT),
        (replace(NEXT, first_prev=2), Arrival.NEXT),
        (replace(NEXT, first_prev=5), Arrival.WAITS),
        (replace(NEXT, first_prev=2, last_hub_epoch=4), Arrival.APPLIED),
        (replace(NEXT, parts=2), Arrival.INCOMPLETE),
        (replace(NEXT, session="s0"), Arrival.OUTDATED),
        (replace(NEXT, last_hub_epoch=None, content=Content()), Arrival.APPLIED),
        (replace(NEXT, generation=2, first_prev=9), Arrival.NEXT),
        (replace(NEXT, generation=2, session="s0", first_prev=9), Arrival.NEXT),
    ],
)
def test_what_continues_the_position_is_next(header: UpdatesHeader, arrival: Arrival) -> None:
    """All else waits, is there already, or never will be applied.

    What a hub says that was put back leads to one hello, whatever it continues.
    """
    assert at(header) is arrival


def test_the_first_packet_of_a_session_may_be_of_any_generation() -> None:
    """It is adopted with it; one that does not continue the position waits as any other."""
    greeted = replace(HERE, answered=False)

    assert at(replace(NEXT, generation=2), greeted) is Arrival.NEXT
    assert at(replace(NEXT, generation=2, first_prev=5), greeted) is Arrival.WAITS
