"""A position that another agreement brought: of it the RUV counts, and nothing else."""

from dataclasses import replace

from streaming.core.delivery.consumer import ApplyBatch, Position, SkipRecord, receive
from streaming.core.model.ruv import Ruv
from streaming.core.records.record import Update
from tests.harness.builders import csn

KNOWN = Ruv("g").with_csn(csn(4, 2))
THERE = Position("s", 900, 900, 7, KNOWN, 3, reached=910, agreement="berlin", answered=True)


def test_it_keeps_its_ruv_and_says_whose_it_is() -> None:
    """Hub epochs and generation are the other hub's, and may be above all that this one has."""
    moved = THERE.moved("b-berlin").in_session("t")

    hello = moved.hello(None, lost=False, agreement="b-berlin")

    assert (hello.covers, hello.reached, hello.generation) == (0, 0, 0)
    assert (hello.epoch, hello.ruv) == (7, KNOWN)
    assert (hello.agreement, hello.ruv_of) == ("b-berlin", "berlin")


def test_a_batch_of_a_smaller_number_is_applied() -> None:
    """It would be skipped if the last one of the other hub counted."""
    moved = THERE.moved("b-berlin").in_session("t")
    update = Update("b-berlin", 1, "t", 12, 0, 12, KNOWN, 0, 1, ())

    outcome = receive(moved, update)

    assert isinstance(outcome, ApplyBatch)
    assert outcome.position.agreement == "b-berlin"
    assert isinstance(
        receive(replace(THERE, session="t"), replace(update, generation=3)), SkipRecord
    )


def test_it_moves_once() -> None:
    """An agent that is started twice before it got anything says the same."""
    moved = THERE.moved("b-berlin")

    assert moved.moved("b-berlin") == moved
    assert moved.moved(None) == moved
    assert THERE.moved("berlin") == THERE


def test_a_position_of_an_agent_of_before_is_that_of_the_agreement_it_reads() -> None:
    """It named none; who upgrades his agent does not move it."""
    assert replace(THERE, agreement="").moved("berlin") == THERE
