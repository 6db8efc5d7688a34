"""A clock that is wrong is named, by the CSNs that it made."""

from connectors.agent.clock import ClockWatch
from streaming.core.model.csn import MAX_SKEW_S, CsnParts, format_csn

NOW_S = 1_700_000_000


def csn(ahead_s: int, rid: int) -> str:
    """A CSN that is so far ahead of the clock."""
    return format_csn(CsnParts(NOW_S + ahead_s, 0, rid, 0))


def look(watch: ClockWatch, *csns: str | None) -> list[str]:
    """What the watch says now."""
    return watch.look(csns, NOW_S * 1000 + 999)


def test_a_clock_of_another_replica_is_named() -> None:
    """Only the one that is ahead; a row that nobody wrote has no clock."""
    found = look(ClockWatch(7), csn(300, 2), csn(10, 2), csn(10, 3), None)

    assert len(found) == 1
    assert "the clock of replica 2 is 5 min ahead" in found[0]


def test_a_replica_says_that_the_hub_will_refuse_its_changes() -> None:
    """Before it sends them: the hub's own word comes later, and elsewhere."""
    watch = ClockWatch(7)

    (ahead,) = look(watch, csn(7_200, 7))
    (refused,) = look(watch, csn(MAX_SKEW_S + 60, 7))

    assert "2 h ahead" in ahead
    assert "quarantine" not in ahead
    assert "quarantine as `skew`" in refused


def test_a_finding_is_said_once_until_it_is_over() -> None:
    """Every change would say it again otherwise."""
    watch = ClockWatch(7, skew_s=500)

    said = [len(look(watch, csn(ahead_s, 2))) for ahead_s in (60, 61, 300, 0, 300)]

    assert said == [0, 1, 0, 0, 1]
