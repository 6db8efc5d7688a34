"""Claims about `ruv` and `lacks`."""

from checkpoints.tables import TableName
from streaming.core.ruv import Ruv, parse_ruv
from tests.checkpoints.written_state import (
    WrittenState,
    agreement,
    change_row,
    csn,
    replica,
    ruv,
)
from tests.streaming.cli.conftest import Slackwater


def behind(state: WrittenState, acked: Ruv) -> None:
    """Commit three changes of a and one of b, of which b acknowledged `acked`."""
    known = ruv(r1=3, r2=1)
    state.append(TableName.CHANGELOG, *(change_row(n, n, 0, csn(1, n)) for n in (1, 2, 3)))
    state.append(TableName.CHANGELOG, change_row(3, 3, 1, csn(2, 1)))
    refresh = {"batch": 3, "hub_epoch": 3, "place": 2, "kind": "refresh", "rid": 1, "to": 2}
    state.append(TableName.CHANGELOG, refresh)
    agreements = [agreement("to-a", 1, 3, known), agreement("to-b", 2, 1, acked)]
    state.commit(3, 3, known, [replica(1), replica(2)], agreements)


def test_ruv_is_the_text_form_of_389(slackwater: Slackwater, state: WrittenState) -> None:
    """Tools for that server read it; so does the hub itself."""
    behind(state, ruv(r1=1))

    answer = slackwater("ruv")

    assert answer.out.splitlines()[0] == "{replicageneration} 655d1c80000000010000"
    assert parse_ruv(answer.out.splitlines()) == ruv(r1=3, r2=1)
    assert slackwater("ruv", "--json").facts["ruv"] == answer.out.splitlines()


def test_ruv_of_an_agreement_is_the_consumers_word(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """For comparison with what the consumer itself says."""
    behind(state, ruv(r1=1))

    facts = slackwater("ruv", "--agreement", "to-b", "--json").facts

    assert facts == {"covers": 1, "generation": 1, "ruv": ruv(r1=1).text()}


def test_lacks_tells_anchor_stop_and_how_many(slackwater: Slackwater, state: WrittenState) -> None:
    """Why does b lag, and what would mend it?"""
    behind(state, ruv(r1=1))

    facts = slackwater("lacks", "to-b", "--json").facts

    assert facts["supplier"] == {"covers": 3, "ruv": ruv(r1=3, r2=1).text()}
    assert facts["acked"] == {"covers": 1, "ruv": ruv(r1=1).text()}
    assert facts["anchor"] == {"csn": csn(1, 1), "start": "after"}
    assert facts["stop"] == ruv(r1=3, r2=1).text()
    assert facts["needs"] == {"a": "behind", "b": "level"}
    assert (facts["changes"], facts["refreshes"], facts["refused"]) == (2, 1, None)


def test_lacks_of_a_new_consumer_starts_at_the_first_change(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """It has nothing to start after."""
    behind(state, Ruv())

    answer = slackwater("lacks", "to-b")

    assert f"at {csn(1, 1)}" in answer.out
    assert "2 changes, 1 refreshes" in answer.out  # covers 1: the first one was applied


def test_a_level_consumer_lacks_nothing(slackwater: Slackwater, state: WrittenState) -> None:
    """And is told so."""
    behind(state, ruv(r1=1))

    facts = slackwater("lacks", "to-a", "--json").facts

    assert (facts["anchor"], facts["changes"], facts["refreshes"]) == (None, 0, 0)
    assert "no fresh change is lacking" in slackwater("lacks", "to-a").out


def test_a_start_that_is_not_in_the_changelog_is_told(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Nothing may be sent over a gap."""
    known = ruv(r1=3)
    state.append(TableName.CHANGELOG, change_row(3, 3, 0, csn(1, 3)))
    state.commit(3, 3, known, [replica(1)], [agreement("to-b", 2, 1, ruv(r1=1))])

    facts = slackwater("lacks", "to-b", "--json").facts

    assert "needs a resync" in facts["refused"]


def test_an_unknown_agreement_is_wrong_usage(slackwater: Slackwater, state: WrittenState) -> None:
    """The answer names those that there are."""
    behind(state, ruv())

    answer = slackwater("lacks", "to-c")

    assert answer.code == 2
    assert "use one of to-a, to-b" in answer.err


def test_before_the_first_commit_there_is_no_ruv(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """An empty RUV would be a statement."""
    state.plan(1)

    answer = slackwater("ruv")

    assert answer.code == 1
    assert "no batch is committed" in answer.err
