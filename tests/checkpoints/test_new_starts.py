"""Claims about new starts: which of them a database has behind it."""

import pytest

from checkpoints.reading.new_starts import TakenHello, last_starts


@pytest.mark.parametrize(
    ("hellos", "expected"),
    [
        ([(3, False), (5, False)], None),
        ([(3, False), (5, True)], 2),
        ([(5, True), (5, False), (9, False)], 1),
        ([(5, True), (3, False)], None),
        ([(5, True), (3, False), (9, False)], None),
        ([(5, True), (9, True), (6, False)], 1),
        ([(5, True), (3, False), (9, True)], 3),
    ],
    ids=[
        "no new start",
        "a new start",
        "it goes on behind that",
        "a backup from before was put back",
        "it goes on behind the backup",
        "a backup from between two new starts was put back",
        "a backup was put back and emptied",
    ],
)
def test_a_backup_from_before_a_new_start_takes_it_back(
    hellos: list[tuple[int, bool]], expected: int | None
) -> None:
    """What stood in the emptied database stands in the one that is put back."""
    heard = [
        TakenHello(1, 1, offset, epoch, is_new_start)
        for offset, (epoch, is_new_start) in enumerate(hellos, start=1)
    ]
    others = [TakenHello(2, 1, 1, 1, is_new_start=True), TakenHello(2, 2, 1, 1, is_new_start=False)]

    found = last_starts([*others, *heard])

    assert found.pop(2) == (1, 1)
    assert found == ({} if expected is None else {1: (1, expected)})
