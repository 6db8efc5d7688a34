"""Statuses: the texts under which they are stored and shown."""

import pytest

from streaming.core.model.errors import StateError
from streaming.core.model.statuses import (
    AgreementStatus,
    AwayReason,
    ReplicaStatus,
    StopReason,
    parse_status,
    remedy_of,
    status_text,
)


@pytest.mark.parametrize("kind", [ReplicaStatus, AgreementStatus])
@pytest.mark.parametrize("detail", ["", "refused", "a record of kind x", "a: b"])
def test_every_status_is_read_back_with_its_detail(
    kind: type[ReplicaStatus] | type[AgreementStatus], detail: str
) -> None:
    """A hub that starts continues from exactly what the last one committed."""
    for status in kind:
        assert parse_status(kind, status_text(status, detail)) == (status, detail)


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (ReplicaStatus, "silent", (ReplicaStatus.SILENT, "")),
        (ReplicaStatus, "live", (ReplicaStatus.LIVE, "")),
        (ReplicaStatus, "unsupported: snapshot", (ReplicaStatus.UNSUPPORTED, "snapshot")),
        (ReplicaStatus, "retired", (ReplicaStatus.RETIRED, "")),
        (AgreementStatus, "retired: hub_behind", (AgreementStatus.RETIRED, "hub_behind")),
        (AgreementStatus, "in_sync", (AgreementStatus.IN_SYNC, "")),
        (AgreementStatus, "catching_up", (AgreementStatus.CATCHING_UP, "")),
        (AgreementStatus, "waiting_for_hello", (AgreementStatus.WAITING_FOR_HELLO, "")),
        (AgreementStatus, "hub_behind", (AgreementStatus.HUB_BEHIND, "")),
        (
            AgreementStatus,
            "other_replicageneration",
            (AgreementStatus.OTHER_REPLICAGENERATION, ""),
        ),
        (
            AgreementStatus,
            "unsupported: a record of kind x",
            (AgreementStatus.UNSUPPORTED, "a record of kind x"),
        ),
    ],
)
def test_the_texts_that_states_hold_keep_their_meaning(
    kind: type[ReplicaStatus] | type[AgreementStatus],
    text: str,
    expected: tuple[ReplicaStatus | AgreementStatus, str],
) -> None:
    """A later version reads them as they were meant."""
    assert parse_status(kind, text) == expected


def test_a_status_of_another_version_is_refused() -> None:
    """It is not guessed at: it may mean that the replica must not be read."""
    with pytest.raises(StateError, match=r"'moved', which is no ReplicaStatus"):
        parse_status(ReplicaStatus, "moved")


@pytest.mark.parametrize("reason", StopReason)
def test_a_stop_stops_the_replica_and_its_agreement(reason: StopReason) -> None:
    """A replica that is not read is not sent anything either: its position is in doubt."""
    assert ReplicaStatus(reason.value).is_stopped
    assert AgreementStatus(reason.value).is_stopped


@pytest.mark.parametrize("reason", StopReason)
@pytest.mark.parametrize("detail", ["", "snapshot", "wire version 2; this hub speaks 1"])
def test_every_stop_says_what_to_do(reason: StopReason, detail: str) -> None:
    """A state without a way out is a riddle; a status that is no stop needs none."""
    remedy = remedy_of(ReplicaStatus(reason.value), detail)

    assert remedy == remedy_of(AgreementStatus(reason.value), detail)
    assert remedy is not None
    assert any(word in remedy for word in ("reinit", "upgrade", "start its agent"))
    assert remedy_of(ReplicaStatus.LIVE, "") is None


@pytest.mark.parametrize("kind", [ReplicaStatus, AgreementStatus])
def test_every_status_says_whether_there_is_something_to_do(
    kind: type[ReplicaStatus] | type[AgreementStatus],
) -> None:
    """A stop has a remedy; what is retired was removed by somebody who meant it."""
    for status in kind:
        is_away = status is AgreementStatus.CHANGE_TRACKING
        is_to_do = is_away or (status.is_stopped and status.value != "retired")
        detail = AwayReason.SILENT if is_away else "refused"
        assert (remedy_of(status, detail) is not None) == is_to_do


@pytest.mark.parametrize("reason", AwayReason)
def test_every_reason_to_be_away_says_what_brings_it_back(reason: AwayReason) -> None:
    """Each is another thing to do, and whose agreement it is about is named."""
    remedy = remedy_of(AgreementStatus.CHANGE_TRACKING, reason, "berlin", "to-berlin")

    assert remedy is not None
    by_itself = (AwayReason.SILENT, AwayReason.ELSEWHERE)
    assert ("start its agent" in remedy) == (reason is AwayReason.SILENT)
    assert ("another hub" in remedy) == (reason is AwayReason.ELSEWHERE)
    is_released = reason is AwayReason.DELAYED
    assert ("slackwater resume to-berlin --now" in remedy) == is_released
    is_resynced = reason not in by_itself and not is_released
    assert ("slackwater resync to-berlin" in remedy) == is_resynced
