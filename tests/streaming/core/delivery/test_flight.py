"""The hub epochs in flight: the picture of NDB's document, and its law."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.core.batch.flight import EpochsInFlight, applied_in, flight
from streaming.core.model.ruv import NOTHING_KNOWN, Ruv
from streaming.core.records.record import Applied, Hello, Record
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.hub_state import HubState
from streaming.core.state.reflection import Session
from streaming.core.state.replica_state import ReplicaState
from tests.harness.builders import csn

epochs = st.integers(0, 60)

HUB = HubState(
    generation=2,
    replicageneration="g",
    hub_epoch=40,
    replicas={7: ReplicaState(7, sessions=(Session("s", 4, (4, 9), (0, 22)),))},
    agreements={"to-b": AgreementState("to-b", 7, sent_covers=36)},
)


def spans(found: EpochsInFlight) -> tuple[tuple[int, int] | None, ...]:
    """First and last of unsent, sent and unread; None where there is none."""
    ranges = (found.unsent, found.sent, found.unread)
    return tuple((one[0], one[-1]) if one else None for one in ranges)


def applied(covers: int, generation: int = 2) -> Applied:
    """What a replica sends when it has applied everything up to there."""
    return Applied(11, covers, generation, NOTHING_KNOWN)


def hello(covers: int, generation: int = 2, ruv: Ruv = NOTHING_KNOWN) -> Hello:
    """The start of another session."""
    return Hello(12, covers, generation, ruv, None, lost=False)


def believed(*received: tuple[str, Record]) -> int:
    """What the hub above will believe of these records of replica 7."""
    return applied_in(received, HUB, 7, "to-b", "default")


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        # NDB's own numbers: current 40, MRE 22, 39-37 on the wire out, 36-26 queued, 25-27 on the
        # wire back, 23-24 queued. The document draws 26 and 27 twice; here what came back is no
        # longer out. Its 40 is still filling, ours is committed as soon as it has a number.
        ((40, 22, 36, 27), ((37, 40), (28, 36), (23, 27))),
        ((40, 22, 36, 0), ((37, 40), (23, 36), None)),
        ((40, 22, 40, 40), (None, None, (23, 40))),
        ((40, 22, 22, 22), ((23, 40), None, None)),
        ((40, 40, 40, 40), (None, None, None)),
        ((0, 0, 0, 0), (None, None, None)),
        # a hello told of less than was reflected before; a position that nobody sent
        ((40, 22, 10, 10), ((23, 40), None, None)),
        ((40, 22, 30, 35), ((36, 40), None, (23, 35))),
        ((40, 22, 50, 50), (None, None, (23, 40))),
    ],
)
def test_the_picture(
    at: tuple[int, int, int, int], expected: tuple[tuple[int, int] | None, ...]
) -> None:
    """Where a write is that nobody has seen yet: out, at the replica, or on its way back."""
    assert spans(flight(*at)) == expected


@given(epochs, epochs, epochs, epochs)
def test_every_epoch_is_in_one_range(hub: int, mre: int, sent: int, back: int) -> None:
    """Whatever the positions are, no hub epoch above the MRE is left out or shown twice."""
    found = flight(hub, mre, sent, back)

    assert [*found.unread, *found.sent, *found.unsent] == list(range(mre + 1, hub + 1))


@given(epochs, epochs, epochs, epochs)
def test_positions_in_order_are_the_borders(a: int, b: int, c: int, d: int) -> None:
    """Where nothing contradicts, each range means exactly what its name states."""
    mre, back, sent, hub = sorted((a, b, c, d))

    found = flight(hub, mre, sent, back)

    assert found.unread == range(mre + 1, back + 1)
    assert found.sent == range(back + 1, sent + 1)
    assert found.unsent == range(sent + 1, hub + 1)


@pytest.mark.parametrize(
    ("received", "expected"),
    [
        ([], 0),
        ([("s", applied(25)), ("s", applied(27)), ("s", applied(26))], 27),
        ([("s", applied(37)), ("s", applied(27))], 0),  # above all that was ever sent: it stops
        (
            [("t", hello(26)), ("t", applied(30)), ("t", applied(25))],
            26,
        ),  # this session was sent 26
        ([("another", applied(27))], 0),  # of no session in force
        ([("s", applied(27, generation=1))], 0),  # of before the hub was restored
        ([("s", applied(27)), ("t", hello(26)), ("s", applied(28)), ("t", applied(26))], 26),
        ([("t", hello(41)), ("t", applied(41))], 0),  # the hub will stop there
        ([("t", hello(26)), ("t", hello(9)), ("t", applied(25))], 26),  # it comes twice
    ],
)
def test_what_is_believed_of_unread_records(
    received: list[tuple[str, Record]], expected: int
) -> None:
    """The picture must not promise what the hub will refuse when it reads it."""
    assert believed(*received) == expected


def test_a_hello_ahead_of_the_hub_ends_the_reading() -> None:
    """The hub was rolled back: nothing behind that record will be taken."""
    ahead = Ruv("g").with_csn(csn(9, 1))
    known = replace(HUB, ruvs={"default": Ruv("g").with_csn(csn(3, 1))})
    received: list[tuple[str, Record]] = [
        ("s", applied(25)),
        ("t", hello(30, ruv=ahead)),
        ("t", applied(30)),
    ]

    assert applied_in(received, known, 7, "to-b", "default") == 25


def test_a_replica_that_nobody_knows_yet() -> None:
    """Its first hello may stand in the topic already: it starts at 0."""
    assert applied_in([("t", hello(0)), ("t", applied(3))], HUB, 8, "to-c", "default") == 0


def test_a_replica_whose_agreement_is_of_another_name() -> None:
    """It may have been sent anything that the hub has, and nothing above it."""
    for covers, expected in ((40, 40), (41, 0)):
        assert applied_in([("t", hello(covers))], HUB, 7, "renamed", "default") == expected
