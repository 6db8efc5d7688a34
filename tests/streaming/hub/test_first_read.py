"""A batch that is read by its offsets is no first one."""

import threading
from collections.abc import Iterator

import pytest

from streaming.hub.topics import first_read
from streaming.hub.topics.first_read import RECORDS, FirstRead, Offsets
from tests.harness.hub_process import TIMEOUT_S


class Reads:
    """What was read."""

    def __init__(self) -> None:
        self.found = list[Offsets]()
        self.done = threading.Event()

    def __call__(self, offsets: Offsets) -> None:
        """Read."""
        self.found.append(offsets)
        self.done.set()


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Reads, FirstRead]]:
    """One that has begun, of a hub that has run for long enough."""
    monkeypatch.setattr(first_read, "AFTER_S", 0.0)
    found = Reads()
    made = FirstRead(found)
    made.start()
    yield found, made
    made.close()


def test_the_last_of_what_was_read_first_is_read_once_more(
    reads: tuple[Reads, FirstRead],
) -> None:
    """Only that: a topic may hold what no JVM can, and a hub would end of it at each start."""
    found, made = reads

    made.can_read({})
    made.can_read({"a": (0, 5_000), "b": (7, 9)})
    assert found.done.wait(TIMEOUT_S)
    made.can_read({"a": (5_000, 6_000)})
    made.close()

    assert found.found == [{"a": (5_000 - RECORDS, 5_000), "b": (7, 9)}]


def test_a_hub_that_ends_before_it_has_read_anything_reads_nothing(
    reads: tuple[Reads, FirstRead],
) -> None:
    """It was started for a moment, or its topics are empty."""
    found, made = reads

    made.close()

    assert found.found == []
    assert not any(one.name == "first read" for one in threading.enumerate())
