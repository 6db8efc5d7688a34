"""In which order a batch sends to its agreements."""

from streaming.core.state.topology import Subscription, Topology


def test_the_highest_priority_comes_first_and_the_others_keep_their_order() -> None:
    """An agreement that is named later waits no longer for that."""
    priorities = {"a": 0, "b": 3, "c": 0, "d": 10}
    topology = Topology(
        {},
        {
            name: Subscription(name, rid, frozenset(), priority=priority)
            for rid, (name, priority) in enumerate(priorities.items(), 1)
        },
    )

    assert topology.in_priority(["c", "a", "b", "d"]) == ["d", "b", "c", "a"]
