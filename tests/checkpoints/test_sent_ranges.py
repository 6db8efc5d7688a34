"""Claims about records in quarantine whose rows a scan has overwritten at their origin."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from checkpoints.reading.quarantined_rows import quarantined_rows, unnamed_records
from checkpoints.reading.reader import open_state
from checkpoints.tables import TableName
from streaming.core.model.table import ColumnType, Table
from streaming.core.records.record import Reason
from tests.checkpoints.written_state import WrittenState, replica, ruv

TABLES = {name: Table(name, ("id",), {"id": ColumnType.INT64}) for name in "tu"}
RECEIVES = {1: ("t", "u"), 2: ("t", "u")}
KEPT = {"batch": 2, "id": "1-4", "action": "kept", "rid": 1, "offset": 4, "reason": "session"}
ROW = {"table": "t", "key": '{"id":"10"}'}
UNREAD = {"table": None, "key": None, "value": b"{"}


def sent(
    table: str, after: int | None, to: int | None, *, rid: int = 1, batch: int = 2
) -> dict[str, object]:
    """A range of keys that a consumer was sent, as the changelog has it."""
    ends = [None if end is None else f'{{"id":"{end}"}}' for end in (after, to)]
    where = {"batch": batch, "hub_epoch": batch, "kind": "range", "to": rid, "table": table}
    return {**where, "key_after": ends[0], "key": ends[1]}


def left(
    folder: Path, kept: Mapping[str, Any], ranges: Sequence[Mapping[str, object]]
) -> list[str]:
    """The ids of what may still differ."""
    state = WrittenState(folder / "state").create()
    state.commit(3, 3, ruv(r1=3), [replica(1, covers=3)])
    state.append(TableName.QUARANTINE, {**KEPT, **kept})
    state.append(
        TableName.CHANGELOG, *({"place": place, **row} for place, row in enumerate(ranges))
    )
    reader = open_state(state.root)
    found = quarantined_rows(reader, RECEIVES, TABLES)
    unnamed = unnamed_records(reader, RECEIVES, TABLES)
    return [row["id"] for row in (*found, *unnamed)]


@pytest.mark.parametrize(
    "ranges",
    [
        [sent("t", None, None)],
        [sent("t", 9, 10)],
        [sent("t", None, 5), sent("t", 5, None, batch=3)],
    ],
    ids=["all rows", "its end", "a later page"],
)
def test_a_row_in_a_range_is_set_right(
    tmp_path: Path, ranges: Sequence[Mapping[str, object]]
) -> None:
    """Keys are compared as numbers: 9 < 10."""
    assert left(tmp_path, ROW, ranges) == []


@pytest.mark.parametrize(
    "one",
    [
        sent("t", 10, None),
        sent("t", None, 9),
        sent("u", None, None),
        sent("t", None, None, rid=2),
        sent("t", None, None, batch=1),
    ],
    ids=["behind it", "before it", "another table", "another consumer", "an earlier batch"],
)
def test_another_range_sets_nothing_right(tmp_path: Path, one: Mapping[str, object]) -> None:
    """Then the row may differ, and `level` must say so."""
    assert left(tmp_path, ROW, [one]) == ["1-4"]


@pytest.mark.parametrize("reason", [one for one in Reason if one.is_uncarried])
def test_no_range_sets_an_uncarried_row_right(tmp_path: Path, reason: Reason) -> None:
    """It leaves the row alone, so the row still differs."""
    kept = {**ROW, "reason": reason.value, "csn": "1"}

    assert left(tmp_path, kept, [sent("t", None, None)]) == ["1-4"]


def test_a_record_that_nobody_can_read_needs_whole_copies_of_all_tables(tmp_path: Path) -> None:
    """Whichever row it wrote, it is overwritten."""
    of_t = [sent("t", None, 5), sent("t", 5, None)]

    assert left(tmp_path / "one", UNREAD, of_t) == ["1-4"]
    assert left(tmp_path / "gap", UNREAD, [of_t[0], sent("t", 6, None), sent("u", None, None)]) == [
        "1-4"
    ]
    assert left(tmp_path / "all", UNREAD, [*of_t, sent("u", None, None)]) == []
