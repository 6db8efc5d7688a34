"""Table `rows` is the same however often it was brought up to date."""

from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from checkpoints import query
from checkpoints.rows import delete_tombstones, materialize
from checkpoints.store import StateStore
from checkpoints.tables import TableName
from streaming.core.batch.sending import WHOLE
from streaming.core.model.refusal import Refusal
from streaming.core.state.hub_state import HubState
from streaming.core.state.reflection import Session
from streaming.core.state.replica_state import ReplicaState
from tests.checkpoints.written_state import WrittenState, change_row
from tests.harness.builders import csn

Entry = dict[str, object]

LAST = 6
ENTRIES = 20
"""Of each hub epoch."""


def some_entries(random: Random, epoch: int, rows: dict[str, Entry]) -> list[Entry]:
    """Accepted writes of a few rows, and refreshes of how they stand to some of three replicas."""
    entries = list[Entry]()
    for place in range(ENTRIES):
        key = f'{{"k":"{random.randint(1, 5)}"}}'
        rid, number = random.randint(1, 3), ENTRIES * epoch + place
        entry = change_row(epoch, epoch, place, csn(number, rid))
        entry |= {"rid": rid, "table": "t", "key": key, "op": "update"}
        if key not in rows or random.random() < 0.3:
            rows[key] = {"csn": csn(number, rid), "image": f'{{"v":"{number}"}}'}
            rows[key] |= {"row_author": rid, "row_epoch": epoch}
            entries.append(entry | rows[key])
        else:
            sent: Entry = {"kind": "refresh", "verdict": None, "to": rid}
            sent |= {"offset": random.choice([-1, 3, 7]), "cause": random.choice(["author", WHOLE])}
            entries.append(entry | rows[key] | sent)
    return entries


def rows_of(folder: Path, spark: SparkSession, merged_at: list[int]) -> list[Entry]:
    """What `rows` holds of the same entries, merged after these hub epochs."""
    state, random, rows = WrittenState(folder).create(), Random(7), dict[str, Entry]()
    for epoch in range(1, LAST + 1):
        state.append(TableName.CHANGELOG, *some_entries(random, epoch, rows))
    store = StateStore(folder)
    for after, to in pairwise([0, *merged_at]):
        materialize(spark, store, after, to)
    held = query.select(store.table(TableName.ROWS), TableName.ROWS).to_pylist()
    return sorted(held, key=lambda row: str(row["key"]))


@pytest.mark.more
def test_rows_do_not_tell_how_many_merges_made_them(tmp_path: Path, spark: SparkSession) -> None:
    """When a hub merges depends on how fast it is; hubs that read the same agree on each row."""
    once = rows_of(tmp_path / "once", spark, [LAST])

    assert once == rows_of(tmp_path / "often", spark, [2, 3, LAST])
    assert [len(row["realign"]) > 2 for row in once] == [True] * 5  # type: ignore[arg-type]


@pytest.mark.more
def test_tombstones_that_are_purged_go(tmp_path: Path, spark: SparkSession) -> None:
    """Not what is newer, what a replica refused, or what blocks one that has not reflected it."""
    state, epochs = WrittenState(tmp_path).create(), dict(zip("abcdef", range(1, 7), strict=True))
    for name, epoch in epochs.items():
        key = f'{{"k":"{name}"}}'
        entry = change_row(epoch, epoch, 0, csn(epoch)) | {"table": "t", "key": key}
        image = '{"v":"1"}' if name == "a" else None
        entry |= {"op": "update" if image else "delete", "image": image}
        sent: Entry = {"kind": "refresh", "verdict": None, "to": 2, "offset": -1, "place": 1}
        sent |= {"row_author": 1, "row_epoch": epoch, "cause": "author"}
        state.append(TableName.CHANGELOG, entry, *([entry | sent] if name == "d" else []))
    store = StateStore(tmp_path)
    materialize(spark, store, 0, LAST)
    refusal = Refusal("r", 2, ("t", '{"k":"c"}'), 3, csn(3), "", "", 0, 0)
    replicas = {2: ReplicaState(2, sessions=(Session("s", 0, (0,), (3,)),))}
    refusals = {2: {refusal.row: refusal}}
    purged = HubState(1, "g", replicas=replicas, refusals=refusals, tombstone_epoch=5)

    delete_tombstones(spark, store, purged)

    left = query.select(store.refreshed(TableName.ROWS), TableName.ROWS)["key"].to_pylist()
    assert sorted(left) == [f'{{"k":"{name}"}}' for name in "acdf"]
