"""Which conflicts a shorter lag or a judgement by column would have spared."""

import pytest

from streaming.core.replay.avoidable import is_avoided_by_column, is_avoided_by_half_the_lag


@pytest.mark.parametrize(
    ("change_ms", "reflected_ms", "is_avoided"),
    [(149, 200, False), (150, 200, True), (190, 200, True), (300, None, False), (90, 95, False)],
)
def test_half_the_lag_spares_who_wrote_in_its_second_half(
    change_ms: int, reflected_ms: int | None, *, is_avoided: bool
) -> None:
    """The row was written at 100; at half the lag its reflection would have come half way."""
    assert is_avoided_by_half_the_lag(change_ms, 100, reflected_ms) is is_avoided


OLD = '{"id":"1","a":"1","b":"1"}'


@pytest.mark.parametrize(
    ("change", "met", "is_avoided"),
    [
        ((OLD, '{"id":"1","a":"2","b":"1"}'), (OLD, '{"id":"1","a":"1","b":"2"}'), True),
        ((OLD, '{"id":"1","a":"2","b":"1"}'), (OLD, '{"id":"1","a":"3","b":"1"}'), False),
        ((None, OLD), (OLD, '{"id":"1","a":"3","b":"1"}'), None),
        ((OLD, None), (OLD, '{"id":"1","a":"3","b":"1"}'), None),
    ],
)
def test_updates_of_different_columns_need_not_meet(
    change: tuple[str | None, str | None],
    met: tuple[str | None, str | None],
    *,
    is_avoided: bool | None,
) -> None:
    """Of an insert, a delete, or a change without a before-image nobody can tell."""
    assert is_avoided_by_column(change, met) is is_avoided
