"""When a purge that takes nothing of the changelog is worth a batch of its own."""

import pytest

from streaming.core.retention.worth import BATCHES_MIN, is_worth_batch


@pytest.mark.parametrize(
    ("batches", "at_rest", "notes_rows", "is_worth"),
    [
        (BATCHES_MIN, False, False, True),
        (BATCHES_MIN - 1, False, True, False),
        (2, True, False, True),
        (1, True, False, False),
        (0, True, False, False),
        (1, True, True, True),
        (0, True, True, True),
    ],
)
def test_a_hub_at_rest_plans_no_batch_for_that_of_its_last_purge(
    batches: int, *, at_rest: bool, notes_rows: bool, is_worth: bool
) -> None:
    """One at work has another batch soon, and waits for many."""
    assert is_worth_batch(batches, at_rest=at_rest, notes_rows=notes_rows) is is_worth
