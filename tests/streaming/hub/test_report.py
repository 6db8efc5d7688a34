"""Claims about the hub's log at info."""

import logging
from dataclasses import replace

import pytest

from streaming.core.batch.counters import FUNCTION, REFRESH
from streaming.core.counts.counter_keys import CountKey, ReplicaKey
from streaming.core.model.statuses import AgreementStatus, ReplicaStatus, Stop, StopReason
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.hub_state import HubState
from streaming.core.state.replica_state import ReplicaState
from streaming.hub.observe.report import HubReport, ready_text, state_changes, summary_text

NAMES = {1: "a", 2: "b"}
LIVE = HubState(
    1,
    "655d1c80000000010000",
    hub_epoch=7,
    replicas={rid: ReplicaState(rid, ReplicaStatus.LIVE) for rid in NAMES},
    agreements={
        "to-a": AgreementState("to-a", 1, AgreementStatus.IN_SYNC, acked_covers=7),
        "to-b": AgreementState("to-b", 2, AgreementStatus.IN_SYNC, acked_covers=4),
    },
)


class Clock:
    """A clock that a test moves."""

    now_s = 100.0

    def __call__(self) -> float:
        """The time."""
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    """A clock at 100 s."""
    return Clock()


@pytest.fixture
def report(clock: Clock, caplog: pytest.LogCaptureFixture) -> HubReport:
    """The report of a hub that is ready."""
    caplog.set_level(logging.INFO, "slackwater")
    made = HubReport(NAMES, clock)
    made.ready(LIVE, "broker:9092")
    caplog.clear()
    return made


def test_ready_says_what_is_served() -> None:
    """The first thing to compare with what was meant."""
    assert ready_text(LIVE, NAMES, "broker:9092") == (
        "ready at hub epoch 7, Kafka at broker:9092; reads a (live), b (live);"
        " sends to to-a (in_sync), to-b (in_sync)"
    )


def test_a_retired_agreement_is_not_served_and_does_not_lag() -> None:
    """Its position is kept, and falls behind for ever."""
    retired = replace(LIVE.agreements["to-b"], status=AgreementStatus.RETIRED)
    state = replace(LIVE, agreements={**LIVE.agreements, "to-b": retired})

    assert "to-b" not in ready_text(state, NAMES, "broker:9092")
    assert "lag: none" in summary_text(1, {}, state, 0)


def test_every_change_of_state_is_said_once(
    report: HubReport, caplog: pytest.LogCaptureFixture
) -> None:
    """A stop needs a person, so it is a warning."""
    stop = Stop(StopReason.UNSUPPORTED, "snapshot")
    stopped = replace(
        LIVE,
        replicas={**LIVE.replicas, 2: LIVE.replicas[2].stopped(stop, 9)},
        agreements={**LIVE.agreements, "to-b": LIVE.agreements["to-b"].stopped(stop)},
    )

    report.batch(LIVE, stopped, {})
    report.batch(stopped, stopped, {})

    assert [(one.levelname, one.message) for one in caplog.records] == [
        ("WARNING", "replica b: live -> unsupported: snapshot"),
        ("WARNING", "agreement to-b: in_sync -> unsupported: snapshot"),
    ]


def test_a_replica_that_the_state_did_not_know_was_silent() -> None:
    """Its first hello is a change of state."""
    before = replace(LIVE, replicas={}, agreements={})

    assert [one.text for one in state_changes(before, LIVE, NAMES)] == [
        "replica a: silent -> live",
        "replica b: silent -> live",
        "agreement to-a: waiting_for_hello -> in_sync",
        "agreement to-b: waiting_for_hello -> in_sync",
    ]


def test_a_minute_is_one_line(
    report: HubReport, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """Ten batches a second are no news; what they came to is, and that the hub runs."""
    conflicts: dict[CountKey, int] = {
        ReplicaKey(FUNCTION + "epoch", 1, "t"): 2,
        ReplicaKey(REFRESH, 1, "t"): 2,
    }
    for _ in range(600):
        report.batch(LIVE, LIVE, {"judged": 2})
        report.tick(LIVE, 0)
    report.batch(LIVE, LIVE, {"judged": 1, **conflicts})
    clock.now_s += 60

    report.tick(LIVE, 3)
    report.tick(LIVE, 0)
    clock.now_s += 60
    report.tick(replace(LIVE, agreements={}), 0)

    rest = (
        "0 quarantined; lag: to-b 3 hub epochs; 3 records unread",
        "0 quarantined; lag: none; 0 records unread",
    )
    assert [one.message for one in caplog.records] == [
        f"last minute: 601 batches, 1201 changes, 2 conflicts, {rest[0]}",
        f"last minute: 0 batches, 0 changes, 0 conflicts, {rest[1]}",
    ]


def test_a_flood_of_bad_records_is_a_line_in_ten_seconds(
    report: HubReport, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """The first is said at once, and none is left out of the count."""
    for _ in range(50):
        report.batch(LIVE, LIVE, {"quarantined": 1})
        report.tick(LIVE, 0)
        clock.now_s += 0.3

    assert [one.message.split(",")[0] for one in caplog.records] == [
        "1 record quarantined",
        "34 records quarantined",
    ]
    assert {one.levelname for one in caplog.records} == {"WARNING"}
