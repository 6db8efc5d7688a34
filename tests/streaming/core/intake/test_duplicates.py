"""What is known of a CSN: from the state, from history, and from this batch."""

from streaming.core.intake.duplicates import KnownCsns
from streaming.core.model.row import Arrived
from streaming.core.state.open_transactions import EndedTransaction, OpenTransactions
from tests.harness.builders import change, csn


def known(opened: OpenTransactions | None = None, largest: int = 10) -> KnownCsns:
    """What a batch knows at its start; `largest`: the number of replica 1's largest CSN."""
    return KnownCsns(opened or OpenTransactions(), {}, {1: csn(largest), 2: csn(99, 2)})


def test_a_csn_keeps_every_content_under_which_it_was_quarantined() -> None:
    """A repeat of any of them is a duplicate, not another reuse of the CSN."""
    csns = known()

    csns.quarantine(csn(12), "one")
    csns.quarantine(csn(12), "other")

    assert csns.contents(csn(12)) == {"one", "other"}


def test_an_eligible_change_below_the_largest_does_not_lower_it() -> None:
    """A transaction that comes with another may have the smaller CSNs."""
    csns = known()

    for number in (13, 12):
        csns.make_eligible(csn(number), 1, "content")

    assert csns.largest[1] == csn(13)


def test_a_run_is_clear_only_above_the_largest_csn() -> None:
    """At or below it a CSN may be known to history alone, or to `pending` alone."""
    assert known(largest=10).is_clear(1, csn(11), None)
    assert not known(largest=11).is_clear(1, csn(11), None)

    on_disk = OpenTransactions(on_disk={1: csn(11)})

    assert not known(on_disk).is_clear(1, csn(11), None)
    assert known(on_disk).is_clear(1, csn(12), None)


def test_a_run_with_a_csn_that_was_quarantined_or_ended_is_not_clear() -> None:
    """Before this batch or in it: the content decides whether it is a repeat."""
    ended = EndedTransaction("aborted", ())
    from_before = (
        OpenTransactions(quarantined={csn(13): ("content",)}),
        OpenTransactions(ended_csns={csn(13): "content"}),
        OpenTransactions(ended={(csn(13), 1): ended}),
    )
    now_quarantined, now_ended = known(), known()
    now_quarantined.quarantine(csn(13), "content")
    now_ended.end((csn(13), 1), [Arrived(change(14), "content", "s", 1, 0, 0, 0)])

    for csns in (*map(known, from_before), now_quarantined, now_ended):
        assert not csns.is_clear(1, csn(11), csn(13))
        assert not csns.is_clear(1, csn(13), csn(20))
        assert not csns.is_clear(1, csn(11), None)
        assert csns.is_clear(1, csn(11), csn(12))
        assert csns.is_clear(1, csn(15), csn(20))
    assert not now_ended.is_clear(1, csn(14), None)
