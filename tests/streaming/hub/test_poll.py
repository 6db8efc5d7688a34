"""Claims about what a poll tells of records that the hub has not read."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import pytest

from checkpoints.commit.last_poll import LastPoll, ReadAtRest, moves_since, read_poll, write_poll
from streaming.core.intake.input_lost import TopicFacts
from streaming.core.intake.liveness import TopicMove
from streaming.hub.topics.poll import TopicPoll
from streaming.hub.topics.topic_look import TopicLook
from tests.harness.hub_process import wait_until

READ = {"a": 7, "b": 7}


def poll(**ends: int) -> TopicPoll:
    """The poll of two topics; `ends`: where they ended when Kafka last answered."""
    facts = {topic: TopicFacts("id", 0, end) for topic, end in ends.items()}
    return TopicPoll(Path(), "hub", cast("TopicLook", None), ["a", "b"], [], facts)


def test_a_topic_that_ends_above_what_is_read_holds_more() -> None:
    """Silence is proved by a topic that is read to its end, and by nothing else."""
    assert poll(a=7, b=8).with_more(READ) == {"b"}


def test_as_long_as_kafka_does_not_answer_any_topic_may_hold_more() -> None:
    """During an outage of the broker nobody is heard, and nobody is away for that."""
    failing = poll(a=7, b=7)
    failing.failing_since_s = 1.0

    assert poll().with_more(READ) == failing.with_more(READ) == {"a", "b"}


def test_a_topic_that_grew_got_its_record_between_two_polls() -> None:
    """By the hub's clock, whatever the clock of the agent says."""
    before = LastPoll("hub", 1_000, {"a": 7, "b": 7, "c": 7}, moves={"b": TopicMove(400, 600)})

    moves = moves_since(before, {"a": 8, "b": 7, "c": 7, "d": 1}, 3_000)

    assert moves == {
        "a": TopicMove(1_000, 3_000),
        "b": TopicMove(400, 600),
        "c": TopicMove(0, 1_000),
        "d": TopicMove(0, 3_000),
    }


def test_moves_outlive_the_hub_that_saw_them(tmp_path: Path) -> None:
    """A hub that starts does not take the silence of an hour for its own first second."""
    at_rest = ReadAtRest(3, {"a": 7}, {1: 500})
    moves = {"a": TopicMove(400, 600)}
    written = LastPoll("hub", 1_000, {"a": 7}, ended=True, moves=moves, at_rest=at_rest)
    written = replace(written, unknown=("p.changes.x",))

    write_poll(tmp_path, written)

    assert read_poll(tmp_path) == written


@dataclass(frozen=True, slots=True)
class ListedTopics:
    """What a broker shows."""

    names: tuple[str, ...]

    def look_once(self, names: Collection[str]) -> Mapping[str, TopicFacts]:
        """All are there and empty."""
        return {name: TopicFacts("id", 0, 0) for name in names}

    def beginning_with(self, prefix: str) -> list[str]:
        """Those with this prefix."""
        return [name for name in self.names if name.startswith(prefix)]

    def close(self) -> None:
        """There is nothing to close."""


def test_a_topic_of_no_replica_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Somebody writes there, and nobody reads it; that of a retired replica is known."""
    names = ("p.changes.a", "p.changes.old", "p.changes.x", "p.updates.x", "q.changes.x")
    look = cast("TopicLook", ListedTopics(names))
    others = {"prefix": "p.changes.", "no_others": ["p.changes.old"]}
    polled = TopicPoll(tmp_path, "hub", look, ["p.changes.a"], [], **others)  # type: ignore[arg-type]

    polled.start()
    wait_until(lambda: read_poll(tmp_path) is not None, lambda: "it has polled")
    polled.stop()

    found = read_poll(tmp_path)
    assert found is not None
    assert found.unknown == ("p.changes.x",)
    assert caplog.text.count("p.changes.x is the topic of no configured replica") == 1
