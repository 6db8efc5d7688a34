"""The budget of a replica in quarantine: beyond it heads are kept, and nothing else changes."""

import hashlib

from streaming.core.counts.tallies import kept_records, kept_sums
from streaming.core.records.kept_bytes import HEAD_BYTES, SHORT_HEAD_BYTES, KeptBytes, kept_bytes
from streaming.core.records.quarantine_budget import (
    KeptSum,
    QuarantineBudget,
    QuarantineLimits,
)

LARGE = bytes(range(256)) * 400
LIMITS = QuarantineLimits(bytes=150_000, records=3)


def test_beyond_the_bytes_a_head_is_kept_with_the_hash_of_the_whole() -> None:
    """A replica that sends large records for ever fills no disk with them."""
    budget = QuarantineBudget(LIMITS)

    first, second, third = (budget.keep(1, kept_bytes(LARGE, 1_000_000)) for _ in range(3))

    assert first == second == KeptBytes(LARGE, len(LARGE))
    digest = hashlib.sha256(LARGE).hexdigest()
    assert third == KeptBytes(LARGE[:SHORT_HEAD_BYTES], len(LARGE), digest)
    assert budget.of(1) == KeptSum(3, 2 * len(LARGE) + SHORT_HEAD_BYTES)


def test_beyond_the_records_it_is_the_same() -> None:
    """Many small ones come before a large one."""
    budget = QuarantineBudget(LIMITS)
    for _ in range(3):
        budget.keep(1, kept_bytes(b"{", 1_000_000))

    assert budget.keep(1, kept_bytes(LARGE, 1_000_000)).is_short


def test_a_record_that_is_no_longer_than_a_head_stays_whole() -> None:
    """Nothing is won by less, and a release need not read the topic."""
    budget = QuarantineBudget(LIMITS, {1: KeptSum(9, 999_999)})

    assert budget.keep(1, KeptBytes(b"{", 1)) == KeptBytes(b"{", 1)
    assert budget.keep(1, KeptBytes()) == KeptBytes()


def test_the_head_of_a_large_record_becomes_a_shorter_one() -> None:
    """Its hash is that of the whole, not that of the longer head."""
    cut = kept_bytes(LARGE, 1)
    assert cut.value is not None
    assert len(cut.value) == HEAD_BYTES

    short = QuarantineBudget(LIMITS, {1: KeptSum(3, 0)}).keep(1, cut)

    assert short == KeptBytes(LARGE[:SHORT_HEAD_BYTES], len(LARGE), cut.sha256)


def test_a_replica_pays_for_itself_only() -> None:
    """The flood of one costs no other the bytes of its records."""
    budget = QuarantineBudget(LIMITS, {1: KeptSum(3, 150_000)})

    assert budget.keep(2, kept_bytes(LARGE, 1_000_000)).whole == LARGE
    assert LIMITS.used(budget.of(1)) == 1.0


def test_what_is_given_back_can_be_used_again() -> None:
    """Who drops the junk sees whole records again."""
    budget = QuarantineBudget(LIMITS, {1: KeptSum(3, 150_000)})
    budget.give_back(1, KeptSum(2, 140_000))

    assert budget.keep(1, kept_bytes(LARGE, 1_000_000)).whole == LARGE
    assert budget.changes() == {1: KeptSum(-1, len(LARGE) - 140_000)}


def test_the_sums_stand_among_the_totals() -> None:
    """They go on when a hub starts again."""
    sums = {1: KeptSum(2, 30), 7: KeptSum(1, 0)}

    assert kept_sums({"judged": 3, **kept_records(sums)}) == sums
