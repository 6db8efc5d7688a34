"""Claims about a consumer that acknowledges nothing: when the wait begins, and when it ends."""

from dataclasses import replace

from streaming.core.intake.sessions import after_applied
from streaming.core.model.ruv import NOTHING_KNOWN
from streaming.core.model.statuses import AgreementStatus, AwayReason
from streaming.core.records.record import Applied, ReceivedRecord
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.hub_state import HubState
from streaming.core.tracking.resync import CoveredPosition, Resync, UnackedPage

TIMEOUT_MS = 3_000
SENT_MS = 10_000
SENT = AgreementState(
    "a1",
    1,
    AgreementStatus.IN_SYNC,
    session="1-1",
    sent_covers=5,
    sent_epoch=5,
    sent_ms=SENT_MS,
    acked_covers=3,
)
"""A consumer that was sent hub epoch 5 and has acknowledged hub epoch 3."""


def later(one: AgreementState, ms: int) -> AgreementState:
    """The agreement after a batch so long after the one that sent something."""
    return one.unless_silent(SENT_MS + ms, TIMEOUT_MS)


def applied(covers: int) -> tuple[ReceivedRecord, Applied]:
    """An `applied` of this position, as a record."""
    record = Applied(1, covers, 1, NOTHING_KNOWN, covers)
    return ReceivedRecord(1, 0, 1, "1-1", record), record


def test_the_wait_begins_with_the_batch_behind() -> None:
    """A batch may take longer than the timeout: before it was published nobody could answer."""
    waited_for = later(SENT, 60_000)
    silent = later(waited_for, 63_000)

    assert waited_for.status_text == "in_sync"
    assert later(waited_for, 62_999).status_text == "in_sync"
    assert (silent.status_text, silent.away_ms) == ("change_tracking: silent", SENT_MS + 63_000)


def test_whatever_is_acknowledged_shows_that_the_consumer_goes_on() -> None:
    """A slow one is no silent one, however far it is behind."""
    waited_for = later(SENT, 1_000)
    slow, done = after_applied(waited_for, *applied(4)), after_applied(waited_for, *applied(5))

    assert later(later(slow, 3_900), 6_800).status_text == "in_sync"
    assert later(later(slow, 3_900), 6_900).detail == AwayReason.SILENT
    assert later(later(done, 3_900), 90_000).status_text == "in_sync"


def test_a_page_of_a_resync_is_waited_for_too() -> None:
    """It moves no position until the last one, so `covers` does not show that it is on its way."""
    level = replace(SENT, acked_covers=5, status=AgreementStatus.RESYNC)
    resync = Resync(5, CoveredPosition(5, NOTHING_KNOWN), SENT_MS, unacked=(UnackedPage(6, ()),))

    assert later(later(level, 1), 9_000).status_text == "resync"
    sent = replace(level, resync=resync)
    assert later(later(sent, 1), 9_000).status_text == "change_tracking: silent"


def test_who_is_sent_nothing_is_not_waited_for() -> None:
    """A paused consumer that stays silent is still paused."""
    paused = SENT.away(AwayReason.PAUSED, SENT_MS)

    assert later(later(paused, 1), 9_000) == paused
    assert not paused.is_overdue(SENT_MS + 9_000, TIMEOUT_MS)


def test_a_hub_that_starts_waits_anew() -> None:
    """While no hub runs nobody is heard, and what was acknowledged meanwhile is not read yet."""
    waited_for = later(SENT, 1)
    state = HubState(1, "g", agreements={"a1": waited_for}).waiting_anew()

    restarted = later(state.agreements["a1"], 3_600_000)

    assert restarted.status_text == "in_sync"
    assert later(restarted, 3_603_000).detail == AwayReason.SILENT
