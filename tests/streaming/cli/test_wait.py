"""Claims about `wait`: until a change is acknowledged everywhere, and who is waited for."""

import time

import pytest

from checkpoints.reading.reader import open_state
from checkpoints.tables import TableName
from streaming.facts.consumers.level import TopicEnds
from tests.checkpoints.written_state import WrittenState, agreement, change_row, replica, ruv
from tests.harness.builders import csn
from tests.streaming.cli.conftest import Slackwater


def commit(state: WrittenState, acked_by_b: int) -> None:
    """Commit two changes of a, of which b acknowledged so many hub epochs."""
    state.append(TableName.CHANGELOG, *(change_row(n, n, 0, csn(n, 1)) for n in (1, 2)))
    agreements = [
        agreement("to-a", 1, 2, ruv(r1=2)),
        agreement("to-b", 2, acked_by_b, ruv(r1=acked_by_b)),
    ]
    known = [replica(1), replica(2)]
    state.commit(2, 2, ruv(r1=2), known, agreements, at_ms=round(time.time() * 1000))


def test_what_all_have_is_over_at_once(slackwater: Slackwater, state: WrittenState) -> None:
    """A script goes on behind it."""
    commit(state, 2)

    assert slackwater("wait", csn(2, 1)).code == 0
    assert open_state(state.root).commands() == []


def test_who_lacks_it_is_named_when_the_time_is_over(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """And the hub is asked once to report what is complete."""
    commit(state, 1)

    answer = slackwater("wait", csn(2, 1), "--timeout", "0.3")

    assert answer.code == 1
    assert "not acknowledged by b, in_sync" in answer.out
    assert [one["command"] for one in open_state(state.root).commands()] == ["level"]
    assert slackwater("wait", csn(1, 1), "--timeout", "0.3").code == 0


def test_what_the_hub_has_not_judged_is_waited_for(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """It may be on its way, or misspelt: the time ends it."""
    commit(state, 2)

    answer = slackwater("wait", csn(9, 1), "--timeout", "0")

    assert answer.code == 1
    assert f"the hub has not judged {csn(9, 1)}" in answer.out


def test_now_is_what_the_topics_hold(
    slackwater: Slackwater, state: WrittenState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First the hub must have read it."""
    commit(state, 1)
    ends = {"slackwater.changes.a": 7}
    monkeypatch.setattr(TopicEnds, "ask", lambda *_: ends)

    behind = slackwater("wait", "--now", "--timeout", "0")
    ends["slackwater.changes.a"] = 8
    unread = slackwater("wait", "--now", "--timeout", "0")

    assert (behind.code, unread.code) == (1, 1)
    assert "not acknowledged by b" in behind.out
    assert "the hub has not read slackwater.changes.a" in unread.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give either a CSN or --now"),
        (["00", "--now"], "give either a CSN or --now"),
        (["00"], "'00' is no CSN"),
    ],
)
def test_what_cannot_be_asked(
    slackwater: Slackwater, state: WrittenState, arguments: list[str], said: str
) -> None:
    """Exit 2: a misspelt CSN is never an answer."""
    commit(state, 2)

    answer = slackwater("wait", *arguments)

    assert answer.code == 2
    assert said in answer.err
