"""Claims about `chepoch` at the hub: from where a consumer is sent to after its row was set."""

from dataclasses import replace

import pytest

from streaming.core.intake.intake import Intake
from streaming.core.intake.orders import change_row
from streaming.core.model.command import RowOrder
from streaming.core.model.statuses import AgreementStatus, AwayReason
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.hub_state import HubState
from streaming.core.state.replica_state import ReplicaState
from streaming.core.state.topology import Subscription, Topology
from streaming.core.tracking.resync import CoveredPosition
from tests.checkpoints.written_state import agreement, ruv

RULES = Topology({}, {"to-b": Subscription("to-b", 2, frozenset())})
SENT = replace(agreement("to-b", 2, 9, ruv(r1=9)), acked_covers=4, acked_ruv=ruv(r1=4))


def after(known: AgreementState, hub_epoch: int) -> tuple[AgreementState, Intake]:
    """The agreement once its row is set to that of a hub epoch; the hub is at 12."""
    replicas = {rid: ReplicaState(rid) for rid in (1, 2)}
    state = HubState(1, "g", hub_epoch=12, replicas=replicas, agreements={"to-b": known})
    intake = Intake(state, RULES, at_ms=77)
    change_row(intake, RowOrder("to-b", hub_epoch, tuple(ruv(r1=hub_epoch).text())))
    return intake.agreements["to-b"], intake


@pytest.mark.parametrize(("asked", "becomes"), [(6, 6), (4, 4), (2, 4), (11, 11)])
def test_sending_goes_on_behind_the_row_and_never_below_the_own_word(
    asked: int, becomes: int
) -> None:
    """Below it is nothing to gain, and it may be purged."""
    found, intake = after(SENT, asked)

    assert (found.sent_epoch, found.scanned, found.estimated) == (becomes, becomes, becomes)
    assert found.sent_ruv == ruv(r1=becomes)
    assert found.status is AgreementStatus.CATCHING_UP
    assert intake.counts["rows_set"] == 1


def test_what_was_sent_is_not_forgotten() -> None:
    """A late word of the consumer would look like a hub that was put back."""
    found, _ = after(SENT, 4)

    assert (found.sent_covers, found.largest_published, found.acked_covers) == (9, 9, 4)


def test_a_resync_begins_again_from_the_own_word() -> None:
    """Its pages have no numbers; the first names a hub epoch that the consumer surely has."""
    held = CoveredPosition(4, ruv(r1=4))
    found, _ = after(SENT.resyncing(held, 5).begun(9), 6)

    assert found.begins_resync
    assert found.resync is not None
    assert found.resync.held == held
    assert found.sent_epoch == 4


@pytest.mark.parametrize(
    "known",
    [
        SENT.away(AwayReason.PAUSED, 1),
        AgreementState("to-b", 2),
        SENT.refused("t"),
        SENT.retired_for_good(),
    ],
)
def test_to_whom_nothing_is_sent_has_no_row_to_set(known: AgreementState) -> None:
    """What it lacks is found anew when something is."""
    found, intake = after(known, 6)

    assert found == known
    assert intake.counts["unknown_rows"] == 1


def test_a_hub_epoch_that_is_not_there_is_no_row() -> None:
    """An order that a state of before a restore was given."""
    found, intake = after(SENT, 13)

    assert found == SENT
    assert intake.counts["unknown_rows"] == 1
