"""When a hub looks for what may go on: seldom, and never without something in quarantine."""

from collections.abc import Mapping

from checkpoints.commit.epochs import Checkpoint
from streaming.core.counts.counter_keys import Counts
from streaming.core.state.hub_state import HubState
from streaming.hub.column_waits import ColumnWaits

QUIET_MS = 10_000


class Looks:
    """Notes when it was looked; `left`: how many changes each look orders."""

    def __init__(self, *left: int) -> None:
        """Order so many, and then none."""
        self.left, self.at_s = list(left), list[int]()

    def order(self, at_ms: int) -> int:
        """Order the next ones."""
        self.at_s.append(at_ms // 1_000)
        return self.left.pop(0) if self.left else 0

    def in_seconds(self, count: int, totals: Mapping[int, Counts]) -> list[int]:
        """When a hub looks in so many seconds; `totals`: from which second on the last commit."""
        waits, last = ColumnWaits(self.order, QUIET_MS), Checkpoint(HubState(1, "g"), {}, {}, 1)
        for second in range(count):
            known = [one for since, one in totals.items() if since <= second]
            commit = Checkpoint(last.state, {}, {}, 1, totals=known[-1]) if known else last
            waits.follow(commit, second * 1_000)
        return self.at_s


def test_without_quarantine_nothing_is_looked_for() -> None:
    """An idle hub reads nothing."""
    assert Looks().in_seconds(100, {}) == []


def test_it_looks_once_after_it_came_up() -> None:
    """All that waits then was read under another configuration."""
    assert Looks().in_seconds(100, {0: {"quarantined": 1}}) == [10]


def test_it_looks_again_while_there_is_more() -> None:
    """Only so many go on at once."""
    assert Looks(1_000, 5).in_seconds(100, {0: {"quarantined": 1}}) == [10, 20, 30]


def test_what_is_quarantined_later_is_looked_at_later() -> None:
    """It may be the rest of a transaction; so may a commit be that came behind it."""
    totals: dict[int, Counts] = {0: {"quarantined": 1}, 50: {"quarantined": 2}}
    totals |= {80: {"quarantined": 2, "unknown_commits": 1}}

    assert Looks().in_seconds(100, totals) == [10, 60, 90]


def test_a_flood_puts_no_look_off() -> None:
    """Otherwise a replica with a broken agent could keep what waits of the others."""
    flood: dict[int, Counts] = {second: {"quarantined": second} for second in range(1, 40)}

    assert Looks().in_seconds(40, flood) == [10, 21, 32]
