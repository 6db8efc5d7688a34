"""Claims about pins: which stand, and how long they make `rows` keep its versions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.core.model.command import Command, CommandName
from streaming.core.model.errors import QuestionError
from streaming.core.replay.pins import Pin, check_pin_name, kept_hours, pins_of

HOUR_MS = 3_600_000


def test_the_last_command_of_a_name_counts() -> None:
    """What is unpinned and pinned again stands; other commands pin nothing."""
    first, second, other = Pin("a", 3, 1), Pin("a", 5, 2), Pin("b", 4, 2)

    found = pins_of(
        [
            Command(1, CommandName.PIN, first.text()),
            Command(1, CommandName.PIN, other.text()),
            Command(1, CommandName.UNPIN, "a"),
            Command(1, CommandName.LEVEL, None),
            Command(1, CommandName.UNPIN, "never there"),
            Command(1, CommandName.PIN, second.text()),
            Command(1, CommandName.UNPIN, "b"),
        ]
    )

    assert found == {"a": second}


@given(
    window=st.integers(1, 10_000),
    ages_h=st.lists(st.integers(-100, 100_000), max_size=4),
    later_h=st.integers(0, 167),
)
def test_what_is_kept_covers_the_window_and_every_pin(
    window: int, ages_h: list[int], later_h: int
) -> None:
    """Also for a week after it was looked at."""
    now_ms = 10**12
    pins = [Pin(str(n), n, now_ms - age * HOUR_MS) for n, age in enumerate(ages_h)]

    kept = kept_hours(window, pins, now_ms)

    assert kept >= window
    assert all(kept >= age + later_h for age in ages_h)
    assert pins or kept == window
    assert kept <= max(window, max([0, *ages_h]) + 2 * 168)


@pytest.mark.parametrize("name", ["", "-a", "a b", "a/b", "ä", "a" * 65, "a\n"])
def test_a_name_that_no_shell_or_page_shows_well_is_refused(name: str) -> None:
    """The message says what a name may be."""
    with pytest.raises(QuestionError, match="letters, digits"):
        check_pin_name(name)
