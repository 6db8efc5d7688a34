"""Claims about the log of records that an agent cannot use."""

import pytest

from connectors.agent.own_topic import NAMED, IgnoredRecords


def test_a_flood_of_them_is_counted_and_not_listed(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever may write to the topic would fill the disk of its replica."""
    ignored = IgnoredRecords()

    for n in range(12_345):
        ignored.note("a record", ValueError(f"junk {n}"))

    named, counted = caplog.messages[:NAMED], caplog.messages[NAMED:]
    assert named == [f"a record is ignored: junk {n}" for n in range(NAMED)]
    assert [text.split()[0] for text in counted] == ["100", "1000", "10000"]
    assert counted[-1].endswith("junk 9999")
