"""Who is brought back because its updates topic may be written again."""

from dataclasses import replace

from streaming.core.intake.input_lost import GONE, HIDDEN, TopicFacts
from streaming.hub.topics.usable import Unwritable

OPEN = TopicFacts("id")
REFUSED = replace(OPEN, is_writable=False)


def known() -> Unwritable:
    """What a hub knows after its first look, which found that all may be written."""
    one = Unwritable({"updates.a": "a", "updates.b": "b"})
    one.note({"updates.a": OPEN, "updates.b": OPEN, "changes.a": REFUSED})
    return one


def test_a_topic_that_may_be_written_again_is_named_once() -> None:
    """One that still refuses something, such as a size, would be tried with every look."""
    one = known()

    refused = one.note({"updates.a": OPEN, "updates.b": REFUSED})
    again = one.note({"updates.a": OPEN, "updates.b": OPEN})
    later = one.note({"updates.a": OPEN, "updates.b": OPEN})

    assert [refused, again, later] == [set(), {"b"}, set()]


def test_a_hub_that_starts_tries_all_that_may_be_written() -> None:
    """What the last one had found died with it."""
    one = Unwritable({"updates.a": "a", "updates.b": "b"})

    assert one.note({"updates.a": OPEN, "updates.b": REFUSED}) == {"a"}


def test_a_look_that_found_nothing_changes_nothing() -> None:
    """Kafka did not answer yet, or another topic is gone and made anew by others."""
    one = Unwritable({"updates.a": "a"})

    assert one.note({}) == frozenset()
    assert one.note({"updates.a": HIDDEN}) == frozenset()
    assert one.note({"updates.a": GONE}) == {"a"}
