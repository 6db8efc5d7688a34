"""Claims about what a poll tells of records that the hub has not read."""

from pathlib import Path
from typing import cast

from streaming.core.intake.input_lost import TopicFacts
from streaming.hub.poll import TopicPoll
from streaming.hub.topic_look import TopicLook

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
