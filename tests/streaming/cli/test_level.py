"""Claims about `level`."""

import threading

from checkpoints.reader import open_state
from streaming.core.model.ruv import Ruv
from streaming.core.model.statuses import Stop, StopReason
from tests.checkpoints.written_state import WrittenState, agreement, replica, ruv
from tests.streaming.cli.conftest import Slackwater


def commit(state: WrittenState, batch: int, a: tuple[int, Ruv], b: tuple[int, Ruv]) -> None:
    """Commit hub epoch 3 with what a and b have acknowledged."""
    agreements = [agreement("to-a", 1, *a), agreement("to-b", 2, *b)]
    state.commit(
        batch, 3, ruv(r1=2, r2=2), [replica(1, covers=3), replica(2, covers=3)], agreements
    )


def test_level_is_the_same_covers_and_the_same_ruv(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Then nobody lacks anything: exit 0."""
    commit(state, 1, (3, ruv(r1=2, r2=2)), (3, ruv(r1=2, r2=2)))

    answer = slackwater("level")

    assert answer.code == 0
    assert answer.out.startswith("level: 2 agreements at hub epoch 3")
    assert open_state(state.root).commands() == []


def test_own_changes_count_as_known_to_their_replica(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """A consumer's last word may be older than its own last write."""
    commit(state, 1, (3, ruv(r1=1, r2=2)), (3, ruv(r1=2)))

    assert slackwater("level").code == 0


def test_a_consumer_behind_is_named_with_its_lag(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Exit 1, and the operator knows where to look."""
    commit(state, 1, (3, ruv(r1=2, r2=2)), (1, ruv(r1=1, r2=2)))

    answer = slackwater("level", "--json")

    assert answer.code == 1
    assert answer.facts["level"] is False
    assert [(a["name"], a["lag_epochs"], a["lacking"]) for a in answer.facts["agreements"]] == [
        ("to-a", 0, []),
        ("to-b", 2, ["a"]),
    ]
    assert "to-b" in slackwater("level").out


def test_the_same_covers_with_a_smaller_ruv_is_not_level(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Refreshes alone do not make a consumer complete, nor does a number."""
    commit(state, 1, (3, ruv(r1=2, r2=1)), (3, ruv(r1=2, r2=2)))

    assert slackwater("level").code == 1


def test_a_consumer_that_never_spoke_is_not_level(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """An empty hub and an unknown consumer agree on nothing."""
    state.commit(1, 0, Ruv(), agreements=[agreement("to-a", 1, 0, Ruv())])

    answer = slackwater("level", "--json")

    assert answer.code == 1
    assert [(a["state"], a["level"]) for a in answer.facts["agreements"]] == [
        ("in_sync", True),
        ("waiting_for_hello", False),
    ]


def test_a_stopped_agreement_is_not_level(slackwater: Slackwater, state: WrittenState) -> None:
    """It has what it was sent, and gets nothing more."""
    known = ruv(r1=2, r2=2)
    stopped = agreement("to-b", 2, 3, known).stopped(Stop(StopReason.UNSUPPORTED, "refused"))
    state.commit(1, 3, known, [replica(1)], [agreement("to-a", 1, 3, known), stopped])

    answer = slackwater("level")

    assert answer.code == 1
    assert "unsupported: refused" in answer.out


def test_before_the_first_commit_nobody_is_level(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Nothing is known of anybody."""
    state.plan(1)

    answer = slackwater("level")

    assert answer.code == 1
    assert "no batch is committed yet" in answer.out


def test_asking_tells_the_hub_once(slackwater: Slackwater, state: WrittenState) -> None:
    """The hub moves lagging covers at once; asking often must not fill the table."""
    commit(state, 1, (3, ruv(r1=2, r2=2)), (1, ruv()))

    slackwater("level")
    slackwater("level")

    commands = open_state(state.root).commands()
    assert [(c["number"], c["command"], c["argument"]) for c in commands] == [(1, "level", None)]


def test_a_command_that_was_taken_is_given_again(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Covers may lag again later."""
    lagging = [agreement("to-a", 1, 0, ruv())]
    state.commit(1, 1, ruv(r1=1, r2=1), [replica(1)], lagging)
    slackwater("level")
    state.commit(2, 1, ruv(r1=1, r2=1), [replica(1)], lagging, command_number=1)

    slackwater("level")

    assert [c["number"] for c in open_state(state.root).commands()] == [1, 2]


def test_waiting_ends_when_all_are_level(slackwater: Slackwater, state: WrittenState) -> None:
    """A script goes on as soon as it may."""
    known = ruv(r1=2, r2=2)
    commit(state, 1, (3, known), (1, ruv()))

    def hub() -> None:
        while not open_state(state.root).commands():
            pass
        commit(state, 2, (3, known), (3, known))

    at_work = threading.Thread(target=hub)
    at_work.start()
    answer = slackwater("level", "--wait", "60")
    at_work.join()

    assert answer.code == 0
    assert "level: 2 agreements" in answer.out


def test_waiting_has_an_end(slackwater: Slackwater, state: WrittenState) -> None:
    """A hub that is down never gets level."""
    commit(state, 1, (3, ruv(r1=2, r2=2)), (1, ruv()))

    assert slackwater("level", "--wait", "0.3").code == 1
