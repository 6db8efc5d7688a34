"""A change that no replica can take is said at once, again every minute, and until corrected."""

import logging

import pytest

from connectors.agent.contract import JournalEntry, KeptRows, UncarriedRow
from connectors.agent.losses import LINES_MAX, REMINDER_S, UncarriedLog
from streaming.core.model.change import Change, Op

CSN = "65e0f1c0000000070000"


class Clock:
    """A clock that a test sets."""

    now_s = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now_s


def entry(id_: int, fault: str | None = None, op: Op = Op.UPDATE) -> JournalEntry:
    """A change of row `id_`."""
    change = Change(CSN, 7, 1, "t", f'{{"id":"{id_}"}}', op, "{}")
    return JournalEntry(id_, change, None, (fault,) if fault else ())


KEPT = KeptRows(1, 0, UncarriedRow("t", '{"id":"1"}', CSN, 0, "n: the text 'abc' is no int64"))


def test_a_row_is_reported_until_it_is_corrected(caplog: pytest.LogCaptureFixture) -> None:
    """With table, key, column, value and what to do: somebody has to do it."""
    clock = Clock()
    said = UncarriedLog(clock)

    said.add_published([entry(1, "n: the text 'abc' is no int64: write an integer"), entry(2)])
    said.remind(KEPT)
    (message,) = caplog.messages
    assert message.startswith('table t row {"id":"1"} is written here and not replicated until')
    assert "n: the text 'abc' is no int64: write an integer" in message
    assert f"`slackwater quarantine list` has the change {CSN}" in message
    clock.now_s += REMINDER_S
    said.remind(KEPT)
    said.remind(KEPT)
    assert [record.levelno for record in caplog.records] == [logging.ERROR] * 2
    assert caplog.messages[1].startswith("not replicated until corrected: 1 row, for example ")

    clock.now_s += REMINDER_S
    said.remind(KeptRows())
    assert len(caplog.messages) == 2


def test_what_an_earlier_run_published_is_said_at_once(caplog: pytest.LogCaptureFixture) -> None:
    """An agent that was started again would be silent of it for ever."""
    UncarriedLog(Clock()).remind(KEPT)

    assert caplog.messages[0].startswith("not replicated until corrected: 1 row, for example ")


def test_a_deleted_row_needs_no_correction(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody else has it."""
    UncarriedLog().add_published([entry(1, "bad", Op.DELETE)])

    assert caplog.messages == []


def test_many_bad_rows_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """A column that never fits would write a line for each of the application's statements."""
    UncarriedLog().add_published(entry(id_, "bad") for id_ in range(10 * LINES_MAX))

    assert len(caplog.messages) == LINES_MAX
