"""CSNs and their generator."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.core.model.csn import (
    MAX_SEQUENCE,
    MAX_SKEW_S,
    CsnParts,
    Generator,
    format_csn,
    parse,
    rid_of,
    time_of,
)
from streaming.core.model.errors import CsnError
from tests.streaming.core.delivery.logs import csns, parts

clocks = st.integers(0, 3 * MAX_SKEW_S)


def test_the_rid_is_hexadecimal_in_a_csn() -> None:
    """A RUV writes it in decimal; mixing the two is the classic mistake."""
    csn = "6b00632f000a01020000"

    fields = parse(csn)

    assert fields == CsnParts(0x6B00632F, sequence=10, rid=258, subsequence=0)
    assert (rid_of(csn), time_of(csn)) == (258, 0x6B00632F)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "6b00632f000a0102000",
        "6b00632f000a010200000",
        "6B00632F000A01020000",
        "6b00632g000a01020000",
        "6b00632f000a01020000\n",
        "6b00632f 00a01020000",
        "٦b00632f000a01020000",
    ],
)
def test_what_is_not_twenty_lower_case_hex_digits_is_refused(text: str) -> None:
    """Text order is CSN order only for this one form."""
    with pytest.raises(CsnError, match="20 lower-case hex digits"):
        parse(text)


@pytest.mark.parametrize(
    "fields",
    [
        CsnParts(1 << 32, 0, 1, 0),
        CsnParts(-1, 0, 1, 0),
        CsnParts(0, 1 << 16, 1, 0),
        CsnParts(0, 0, 1 << 16, 0),
        CsnParts(0, 0, 1, -1),
    ],
)
def test_a_field_that_does_not_fit_is_refused(fields: CsnParts) -> None:
    """A field that ran over would change its neighbour."""
    with pytest.raises(CsnError, match="does not fit"):
        format_csn(fields)


@given(parts)
def test_fields_come_back_from_text(fields: CsnParts) -> None:
    """Round trip."""
    assert parse(format_csn(fields)) == fields


@given(parts, parts)
def test_text_order_is_the_order_of_the_fields(one: CsnParts, two: CsnParts) -> None:
    """Why Delta's statistics and plain string comparison may be used everywhere."""
    assert (format_csn(one) < format_csn(two)) == (one < two)


@given(st.lists(st.one_of(clocks, csns), max_size=30))
def test_a_generator_never_goes_back_whatever_the_clock_and_the_peers_do(
    events: list[int | str],
) -> None:
    """For one row of one replica CSN order is commit order, on any clock."""
    generator, last, clock_s = Generator(rid=7), "", 0
    for event in events:
        if isinstance(event, str):
            generator = _seen_if_near(generator, event, clock_s)
            continue
        clock_s = event
        csn, generator = generator.next(clock_s)

        assert csn > last
        assert rid_of(csn) == 7

        last = csn


def _seen_if_near(generator: Generator, csn: str, clock_s: int) -> Generator:
    try:
        return generator.seen(csn, clock_s)
    except CsnError:
        return generator


@given(st.lists(st.tuples(st.integers(0, MAX_SKEW_S), st.integers(0, 9)), min_size=1), clocks)
def test_a_generator_is_past_everything_that_it_saw(
    peers: list[tuple[int, int]], clock_s: int
) -> None:
    """A change that was made after another was applied must sort behind it."""
    generator = Generator(rid=1)
    seen = [format_csn(CsnParts(clock_s + ahead, seq, 65_533, 9)) for ahead, seq in peers]
    for csn in seen:
        generator = generator.seen(csn, clock_s)

    next_csn, _ = generator.next(clock_s)

    assert next_csn > max(seen)


def test_a_clock_that_was_wrong_is_forgotten_once_it_is_passed() -> None:
    """Its own that was behind while it applied, or a peer's that was ahead: neither is for good.

    Otherwise each replica would hand on to the others how wrong one clock once was.
    """
    generator = Generator(rid=1).seen(format_csn(CsnParts(1_500, 3, 2, 0)), clock_s=1_000)

    csn, generator = generator.next(clock_s=1_001)
    later, _ = generator.next(clock_s=2_000)

    assert parse(csn) == CsnParts(1_500, 4, 1, 0)
    assert time_of(later) == 2_000


def test_a_csn_more_than_a_day_ahead_is_refused() -> None:
    """One wrong clock must not carry every replica into the future."""
    generator = Generator(rid=1)
    far = format_csn(CsnParts(1_000 + MAX_SKEW_S + 1, 0, 2, 0))

    with pytest.raises(CsnError, match="correct the clock of the replica that made it"):
        generator.seen(far, clock_s=1_000)

    assert generator.seen(far, clock_s=1_001).time_s == 1_001 + MAX_SKEW_S


def test_a_csn_that_the_generator_is_past_is_never_refused() -> None:
    """A clock that was set back by days does not stop a replica from applying."""
    generator = Generator(rid=1, time_s=10 * MAX_SKEW_S, sequence=5)

    assert generator.seen(format_csn(CsnParts(9 * MAX_SKEW_S, 0, 2, 0)), clock_s=0) == generator


def test_a_second_with_more_changes_than_sequence_numbers_borrows_the_next() -> None:
    """65,536 changes in one second go on, ahead of the clock."""
    generator = Generator(rid=1, time_s=1_000, sequence=MAX_SEQUENCE)

    csn, _ = generator.next(clock_s=1_000)

    assert parse(csn) == CsnParts(1_001, 0, 1, 0)
