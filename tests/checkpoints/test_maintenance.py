"""Small files become large ones once; a hub that holds the table open does not notice."""

import json
import os
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError
from pyspark.sql import SparkSession

from checkpoints import query
from checkpoints.maintenance import background as maintenance
from checkpoints.maintenance.background import Maintenance, compact
from checkpoints.reading import lookup
from checkpoints.spark_threads import SparkThreads
from checkpoints.store import KEPT_HOURS, StateStore, rows_of
from checkpoints.tables import TableName
from streaming.core.model.errors import StateError
from tests.checkpoints.written_state import WrittenState
from tests.harness.builders import csn


def add(table: DeltaTable, number: int) -> None:
    """Append as a ledger does: a commit that is refused when another one came between."""
    mark = CommitProperties(app_transactions=[Transaction("epochs", number)])
    write_deltalake(table, pa.table({"n": [number]}), mode="append", commit_properties=mark)


def numbers(root: Path) -> list[int]:
    """What the table holds."""
    return sorted(DeltaTable(root / "t").to_pyarrow_table()["n"].to_pylist())


def accepted(epoch: int, number: int, place: int = 0) -> dict[str, object]:
    """The changelog's row of an accepted change of row `number`."""
    return {
        "hub_epoch": epoch,
        "place": place,
        "kind": "change",
        "verdict": "accepted",
        "rid": 1,
        "csn": csn(epoch, 1),
        "table": "t",
        "key": f'{{"k":"{number}"}}',
        "image": f'{{"k":"{number}","v":"{epoch}"}}',
    }


@pytest.fixture
def held(tmp_path: Path) -> DeltaTable:
    """A table as a hub holds it."""
    return DeltaTable.create(tmp_path / "t", schema=pa.schema([("n", pa.int64())]))


def test_small_files_are_made_one_when_they_are_many(
    spark: SparkSession, tmp_path: Path, held: DeltaTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cost of a commit grows with the number of files."""
    monkeypatch.setattr(maintenance, "SMALL_FILES_MAX", 3)
    overtaken = DeltaTable(tmp_path / "t")
    for number in range(1, 4):
        add(held, number)
    compact(spark, DeltaTable(tmp_path / "t"), merged=False)
    assert len(DeltaTable(tmp_path / "t").file_uris()) == 3

    add(held, 4)
    compact(spark, DeltaTable(tmp_path / "t"), merged=False)
    assert len(DeltaTable(tmp_path / "t").file_uris()) == 1

    add(held, 5)
    with pytest.raises(CommitFailedError):
        add(overtaken, 1)
    assert numbers(tmp_path) == [1, 2, 3, 4, 5]


def test_a_large_file_is_not_touched_again(
    spark: SparkSession, tmp_path: Path, held: DeltaTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the hundredth day would rewrite ninety-nine."""
    monkeypatch.setattr(maintenance, "SMALL_FILES_MAX", 2)
    write_deltalake(held, pa.table({"n": list(range(100_000))}), mode="append")
    (large,) = held.file_uris()
    monkeypatch.setattr(maintenance, "SMALL_BYTES", 10_000)
    for number in range(1, 5):
        add(held, number)

    compact(spark, DeltaTable(tmp_path / "t"), merged=False)

    files = DeltaTable(tmp_path / "t").file_uris()
    assert len(files) == 2
    assert large in files


def with_files(root: Path, count: int) -> StateStore:
    """A state whose `events` are in so many files, a row in each."""
    WrittenState(root).create()
    store = StateStore(root)
    for number in range(1, count + 1):
        assert add_event(store, number)
    return store


def add_event(store: StateStore, number: int) -> bool:
    """Append one row to `events`, in a file of its own."""
    row = rows_of(TableName.EVENTS, [{"batch": number}])
    return store.append_once(TableName.EVENTS, row, "events", number)


def aged(table: Path) -> None:
    """Make the entries of its log an hour older than they are."""
    for entry in (table / "_delta_log").glob("*.json"):
        changed_s = entry.stat().st_mtime - 3600
        os.utime(entry, (changed_s, changed_s))


def test_two_hubs_that_compact_at_once_double_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One was overtaken and has not seen it yet: no row twice, and no reason to end."""
    monkeypatch.setattr(maintenance, "SMALL_FILES_MAX", 2)
    store = with_files(tmp_path, maintenance.CHECKPOINT_EVERY_COMMITS)

    hubs = [Maintenance(spark, StateStore(tmp_path)) for _ in range(4)]
    for work in [hub.maintain() for hub in hubs]:
        work.result()
    for hub in hubs:
        hub.close()

    events = store.refreshed(TableName.EVENTS)
    count = maintenance.CHECKPOINT_EVERY_COMMITS
    assert sorted(events.to_pyarrow_table()["batch"].to_pylist()) == list(range(1, count + 1))
    assert len(events.file_uris()) == 1


def test_deltalake_refuses_the_second_compaction_of_one_version(
    tmp_path: Path, held: DeltaTable
) -> None:
    """1.6.6 commits both, and every row is there twice: a new version must pass this first."""
    for number in range(1, 5):
        add(held, number)
    first, second = DeltaTable(tmp_path / "t"), DeltaTable(tmp_path / "t")

    first.optimize.compact()
    with pytest.raises(CommitFailedError, match="concurrent"):
        second.optimize.compact()

    assert numbers(tmp_path) == [1, 2, 3, 4]


def test_compaction_of_a_hub_that_was_overtaken_changes_nothing(
    spark: SparkSession, tmp_path: Path, held: DeltaTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a file system whose locks do not hold, two hubs may compact from one version."""
    monkeypatch.setattr(maintenance, "SMALL_FILES_MAX", 2)
    for number in range(1, 5):
        add(held, number)
    first, second = DeltaTable(tmp_path / "t"), DeltaTable(tmp_path / "t")

    compact(spark, first, merged=False)
    compact(spark, second, merged=False)

    assert numbers(tmp_path) == [1, 2, 3, 4]
    assert len(DeltaTable(tmp_path / "t").file_uris()) == 1


@pytest.mark.slow
def test_what_spark_compacts_is_doubled_by_no_second_hub(
    spark: SparkSession, tmp_path: Path, held: DeltaTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delta refuses the slower one."""
    monkeypatch.setattr(maintenance, "SMALL_FILES_MAX", 2)
    for number in range(1, 9):
        add(held, number)

    with ThreadPoolExecutor(4) as hubs:
        tables = [DeltaTable(tmp_path / "t") for _ in range(4)]
        for work in [hubs.submit(compact, spark, table, merged=True) for table in tables]:
            work.result()

    assert numbers(tmp_path) == list(range(1, 9))
    assert len(DeltaTable(tmp_path / "t").file_uris()) == 1


@pytest.mark.more
def test_two_hubs_that_materialize_at_once_make_the_same_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The one that was overtaken must not bring down the one that is right."""
    state = WrittenState(tmp_path).create()
    state.append(TableName.CHANGELOG, *(accepted(epoch, epoch % 3) for epoch in range(1, 7)))
    hubs = [Maintenance(spark, StateStore(tmp_path)) for _ in range(2)]

    works = [hub.materialize(0, to) for hub, to in zip(hubs, (6, 3), strict=True)]
    for work in works:
        work.result()
    for hub in hubs:
        hub.close()

    rows = query.select(query.open_table(tmp_path, TableName.ROWS), TableName.ROWS)
    assert sorted(rows["csn"].to_pylist()) == [csn(n, 1) for n in (4, 5, 6)]


def test_work_that_the_disk_refuses_is_told_in_one_sentence(
    spark: SparkSession, tmp_path: Path
) -> None:
    """What Java says of it fills pages."""
    state = WrittenState(tmp_path).create()
    state.append(TableName.CHANGELOG, {"hub_epoch": 1, "place": 0, "kind": "change"})
    (changes,) = DeltaTable(tmp_path / TableName.CHANGELOG).file_uris()
    Path(changes).unlink()
    hub = Maintenance(spark, StateStore(tmp_path))

    with pytest.raises(StateError, match="check its disk") as raised:
        hub.materialize(0, 1).result()

    hub.close()
    assert Path(changes).name in str(raised.value)
    assert "\n" not in str(raised.value)


def test_log_gets_its_checkpoints_beside_the_batches(spark: SparkSession, tmp_path: Path) -> None:
    """A hub that starts reads the log from the last one on; no append waits for it."""
    with_files(tmp_path, 101)
    hub = Maintenance(spark, StateStore(tmp_path))
    log = tmp_path / TableName.EVENTS / "_delta_log"
    assert not list(log.glob("*.checkpoint.parquet"))

    hub.maintain().result()
    hub.close()

    assert len(list(log.glob("*.checkpoint.parquet"))) == 1
    assert StateStore(tmp_path).read(TableName.EVENTS).num_rows == 101


def test_log_of_appended_rows_is_kept_for_minutes(spark: SparkSession, tmp_path: Path) -> None:
    """Every commit lists it; the rows themselves say what was when."""
    count = maintenance.CHECKPOINT_EVERY_COMMITS
    store = with_files(tmp_path, 0)
    hub = Maintenance(spark, StateStore(tmp_path))

    for number in range(1, 3 * count + 1):
        assert add_event(store, number)
        if number % count == 0:
            aged(tmp_path / TableName.EVENTS)
            hub.maintain().result()
        if number % count == 1:  # a batch later, as in life
            store.reopen()
    hub.close()

    entries = sorted((tmp_path / TableName.EVENTS / "_delta_log").glob("*.json"))
    assert entries[0].name >= f"{count:020}.json"
    assert StateStore(tmp_path).read(TableName.EVENTS).num_rows == 3 * count


@pytest.mark.parametrize(
    "table", [TableName.ROWS, pytest.param(TableName.CHANGELOG, marks=pytest.mark.slow)]
)
def test_files_that_nobody_needs_go_after_a_week(
    spark: SparkSession, tmp_path: Path, table: TableName
) -> None:
    """Else the disk fills with what was merged and compacted long ago."""
    WrittenState(tmp_path).create()
    old, new = (tmp_path / table / f"{name}.parquet" for name in ("old", "new"))
    for file in (old, new):
        file.write_bytes(b"of no version")
    week_ago_s = time.time() - 3600 * (KEPT_HOURS + 1)
    os.utime(old, (week_ago_s, week_ago_s))
    hub = Maintenance(spark, StateStore(tmp_path))

    hub.vacuum().result()
    hub.close()

    assert not old.exists()
    assert new.exists()


def test_merge_into_rows_leaves_the_files_that_it_touches(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A thousand changes of ten million rows must not write ten million anew."""
    state = WrittenState(tmp_path).create()
    hub = Maintenance(spark, StateStore(tmp_path))

    def merged(epoch: int, numbers: Iterable[int]) -> set[str]:
        changes = (accepted(epoch, number, place) for place, number in enumerate(numbers))
        state.append(TableName.CHANGELOG, *changes)
        hub.materialize(epoch - 1, epoch).result()
        return set(DeltaTable(tmp_path / TableName.ROWS).file_uris())

    before = merged(1, range(1_000))
    after = merged(2, [7])
    hub.close()

    assert before < after
    images = lookup.rows(StateStore(tmp_path), [("t", '{"k":"7"}'), ("t", '{"k":"8"}')])
    found = {key: json.loads(row.image or "")["v"] for (_, key), row in images.items()}
    assert found == {'{"k":"7"}': "2", '{"k":"8"}': "1"}


def test_a_merge_under_way_is_given_up_at_the_end(spark: SparkSession, tmp_path: Path) -> None:
    """Who stops a hub waits for no bulk work: the next one does it again."""
    state = WrittenState(tmp_path).create()
    state.append(TableName.CHANGELOG, *(accepted(1, n, n) for n in range(100)))
    hub = SparkThreads(spark, tmp_path, "test", 1)

    endless = hub.start(lambda: endlessly(spark))
    waiting = hub.start(lambda: None)
    while not spark.sparkContext.statusTracker().getActiveJobsIds():
        assert not endless.done()
    hub.close()

    assert "cancel" in str(endless.exception())
    assert waiting.cancelled()
    again = Maintenance(spark, StateStore(tmp_path))
    again.materialize(0, 1).result()
    again.close()
    rows = query.select(query.open_table(tmp_path, TableName.ROWS), TableName.ROWS)
    assert rows.num_rows == 100


def endlessly(spark: SparkSession) -> None:
    """Let Spark work for hours."""
    spark.range(10**15).selectExpr("sum(id % 7)").collect()
