"""What a resync sends is read from Delta in the order of keys, as core orders them."""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from checkpoints import query
from checkpoints.maintenance.background import Maintenance
from checkpoints.reading import resync_rows
from checkpoints.reading.resync_rows import SORTED, SortedRows, row_counts, sort_rows
from checkpoints.store import StateStore
from checkpoints.tables import TableName
from streaming.core.model.errors import StateError
from streaming.core.model.far_time import FarTime
from streaming.core.model.table import ColumnType, Table
from streaming.core.model.values import Value, json_text, to_json
from streaming.core.tracking.ranges import key_order
from tests.checkpoints.sorted_files import sorted_files
from tests.checkpoints.written_state import WrittenState
from tests.harness.builders import csn
from tests.harness.far_times import FAR

TRACKED = pa.schema([("key", pa.string()), ("tracked", pa.int64())])

SEED = 7
RANDOM = random.Random(SEED)


def decimals() -> list[str]:
    """Every spelling that may be a key: signs, zeros before and behind, sixty digits."""
    digits = "123456789" * 7
    whole = ["0", "1", "7", "9", "10", "99", "100", digits[:60], digits[:59]]
    rest = ["", ".0", ".00", ".5", ".50", ".05", ".55", f".{digits[:60]}", f".{'0' * 59}1"]
    finite = [f"{sign}{a}{b}" for sign, a, b in product(("", "-"), whole, rest)]
    return [*finite, "NaN", "Infinity", "-Infinity"]


def floats() -> list[object]:
    """Numbers as they may be written, and the three that JSON has no number for."""
    ends = [5e-324, -5e-324, 1.7976931348623157e308, -1.7976931348623157e308, 0.1, -0.1, 1.5, 1e-7]
    found = [*ends, 0.0, -0.0, 1, -1, 10**25, 123456789.25]
    found += [RANDOM.uniform(-1e9, 1e9) for _ in range(40)]
    return [*found, "NaN", "Infinity", "-Infinity"]


TEXTS = [
    "",
    " ",
    "a",
    "A",
    "ab",
    "b",
    "ß",
    "é",
    "e\u0301",
    "\uffff",
    "\U0001f600",
    "\U0010ffff",
    "\x00",
    "\x1f",
    "\x7f",
    "a\x00b",
    'a"b',
    "a'b",
    "a\\b",
    "\\",
    "\\u0041",
    "a\nb",
    "\t",
    "{}",
    '{"k":"a"}',
    "null",
    "`a`.b",
    "%_*",
    "\u2028",
    "日本",
]
TIMES: list[Value] = [
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(999, 12, 31, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(2024, 2, 29, 23, 59, 59, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    *map(FarTime, FAR),
]
VALUES: Mapping[ColumnType, Sequence[Value]] = {
    ColumnType.BOOL: [False, True],
    ColumnType.INT32: [-(2**31), 2**31 - 1, -1, 0, 1, 9, 10, -9, -10, 100],
    ColumnType.INT64: [-(2**63), 2**63 - 1, -(2**53) - 1, 2**53 + 1, -1, 0, 1, 9, 10, -9, -10],
    ColumnType.FLOAT64: [],  # see `floats`: a float keeps its spelling
    ColumnType.DECIMAL: [Decimal(text) for text in decimals()],
    ColumnType.TEXT: TEXTS,
    ColumnType.BYTES: [b"", b"\x00", b"\x7f", b"\x80", b"\xff", b"\xff\x00", b"a", b"ab", b"abc"],
    ColumnType.TIMESTAMP: TIMES,
}
LONG_FLOATS = [f'{{"k":{sign}0.{"0" * 20}{"1" * 1_200}}}' for sign in ("", "-")]
"""Numbers of more digits than Jackson reads by default: a float64 keeps its spelling."""

STRANGE = ("a b", "`", "a.b", "日本", "'\"", "k'`.[0]", "*")
"""Names of key columns that mean something to Spark."""


def texts_of(kind: ColumnType) -> list[object]:
    """Values of a key column as JSON has them."""
    if kind is ColumnType.FLOAT64:
        return floats()
    if kind is ColumnType.DECIMAL:
        return [*decimals()]
    return [to_json(value, kind) for value in VALUES[kind]]


def of_kind(kind: ColumnType) -> tuple[Table, list[str]]:
    """A table whose key is a column of this type, and its keys."""
    table = Table(f"of {kind}", ("k",), {"k": kind})
    as_written = LONG_FLOATS if kind is ColumnType.FLOAT64 else ()
    return table, [*(json_text({"k": value}) for value in texts_of(kind)), *as_written]


def of_two() -> tuple[Table, list[str]]:
    """A table with a key of two columns, which are in another order in the row."""
    kinds = {"v": ColumnType.TEXT, "n": ColumnType.DECIMAL, "a b": ColumnType.TEXT}
    first, second = ["a", "a\x00", "b", ""], ["1.0", "1.00", "-1", "10", "2"]
    keys = [json_text({"a b": x, "n": y}) for x, y in product(first, second)]
    return Table("of two", ("a b", "n"), kinds), keys


def of_strange_names() -> tuple[Table, list[str]]:
    """A table whose key columns have names that need quoting."""
    kinds = dict.fromkeys(STRANGE, ColumnType.INT32)
    found = [dict(zip(STRANGE, values, strict=True)) for values in product((2, 10), repeat=7)]
    return Table("of `strange`.names", STRANGE, kinds), [json_text(key) for key in found]


def of_names_that_differ_in_case() -> tuple[Table, list[str]]:
    """A table whose key columns Spark would take for one."""
    keys = [json_text({"k": x, "K": y}) for x, y in product((2, 10), repeat=2)]
    return Table("cases", ("k", "K"), dict.fromkeys(("k", "K"), ColumnType.INT32)), keys


CASES = {
    **{str(kind): of_kind(kind) for kind in ColumnType},
    "two columns": of_two(),
    "strange names": of_strange_names(),
    "names that differ in case": of_names_that_differ_in_case(),
}


def written(table: str, key: str, number: int, **changed: object) -> dict[str, object]:
    """The changelog's row of an accepted change."""
    return {
        "hub_epoch": 1,
        "place": number,
        "kind": "change",
        "verdict": "accepted",
        "rid": 3,
        "csn": csn(number, 3),
        "table": table,
        "key": key,
        "image": f'{{"n":{number}}}',
        **changed,
    }


@pytest.fixture(scope="module")
def store(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StateStore]:
    """A hub whose `rows` have these keys, each table's in random order, and a tombstone in each."""
    root = tmp_path_factory.mktemp("state")
    state, number = WrittenState(root).create(), 0
    rows = []
    for table, keys in CASES.values():
        shuffled = RANDOM.sample(keys, len(keys))
        for key in shuffled:
            number += 1
            rows.append(written(table.name, key, number))
        rows.append(written(table.name, shuffled[0], number + 1, hub_epoch=2, image=None))
    rows.append(written("unreadable", '{"k":"a"}', 1, image='{"k":"a"} '))
    state.append(TableName.CHANGELOG, *rows)
    found = StateStore(root)
    maintenance = Maintenance(spark, found)
    maintenance.materialize(0, 2).result()
    yield found
    maintenance.close()


def existing(store: StateStore, table: Table) -> set[str]:
    """The keys of a table's rows, tombstones apart."""
    sql = 'SELECT "table", "key" FROM t WHERE image IS NOT NULL'
    rows = query.records(query.execute(StateStore(store.root).table(TableName.ROWS), sql))
    return {row["key"] for row in rows if row["table"] == table.name}


def all_of(rows: SortedRows) -> pa.Table:
    """Every row that is left."""
    return rows.next_rows(1 << 30)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_spark_sorts_keys_as_core_orders_them(
    spark: SparkSession, store: StateStore, case: tuple[Table, list[str]]
) -> None:
    """A page ends at a key: rows that Spark puts elsewhere would be left out, or deleted."""
    table, _ = case
    expected = existing(store, table)

    rows = all_of(sort_rows(spark, store, table, None, "sorted"))

    found = rows["key"].to_pylist()
    order = key_order(table)
    assert rows.schema == SORTED
    assert sorted(found) == sorted(expected)
    assert [order(key) for key in found] == sorted(order(key) for key in expected)
    assert set(rows["tracked"].to_pylist()) == {None}
    assert set(rows["author"].to_pylist()) == {3}
    assert None not in rows["image"].to_pylist()


def test_a_tracked_key_is_there_with_its_row_or_without(
    spark: SparkSession, store: StateStore
) -> None:
    """Its row may be a tombstone, or may never have been written; others are left out."""
    table, keys = of_two()
    deleted = next(iter(set(keys) - existing(store, table)))
    kept = sorted(existing(store, table))[:3]
    unknown = json_text({"a b": "never", "n": "0"})
    asked = {key: number for number, key in enumerate([unknown, deleted, *kept], start=1)}
    tracked = pa.Table.from_pylist(
        [{"key": key, "tracked": epoch} for key, epoch in asked.items()],
        schema=TRACKED,
    )

    rows = all_of(sort_rows(spark, store, table, tracked, "sorted")).to_pylist()

    found = {row["key"]: row for row in rows}
    assert {key: row["tracked"] for key, row in found.items()} == asked
    assert [row["key"] for row in rows] == sorted(asked, key=key_order(table))
    assert found[unknown] | {"key": "", "tracked": 0} == dict.fromkeys(SORTED.names) | {
        "key": "",
        "tracked": 0,
    }
    assert (found[deleted]["hub_epoch"], found[deleted]["image"]) == (2, None)
    for key in kept:
        number = json.loads(found[key]["image"])["n"]
        assert (found[key]["author"], found[key]["csn"]) == (3, csn(number, 3))


def test_rows_are_counted_without_tombstones(store: StateStore) -> None:
    """The total of a resync is what is shown to whoever waits for it."""
    counts = row_counts(store)

    for table, keys in CASES.values():
        assert counts[table.name] == len(keys) - 1


# -- reading part by part ------------------------------------------------------------------------

T = Table("t", ("k",), {"k": ColumnType.INT32})


def key(number: int) -> str:
    """The key of row `number`."""
    return f'{{"k":{number}}}'


def rows_of(folder: Path, *files: Sequence[int]) -> SortedRows:
    """The rows of these numbers, sorted into as many files."""
    return sorted_files(folder, key_order(T), *([key(n) for n in numbers] for numbers in files))


def numbers_of(rows: pa.Table) -> list[int]:
    """The numbers of rows by their keys."""
    return [json.loads(text)["k"] for text in rows["key"].to_pylist()]


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rows are read at a time."""
    monkeypatch.setattr(resync_rows, "READ_ROWS", 2)


@pytest.mark.usefixtures("small_parts")
def test_no_more_is_read_than_is_asked_for(tmp_path: Path) -> None:
    """A table need not fit into memory; what was read is given again until it is passed."""
    rows = rows_of(tmp_path / "rows", [1, 2, 3], [], [4, 5], [6])

    first, again, more, rest = (rows.next_rows(count) for count in (1, 2, 4, 9))

    assert [numbers_of(part) for part in (first, again)] == [[1, 2], [1, 2]]
    assert numbers_of(more) == [1, 2, 3, 4, 5]
    assert numbers_of(rest) == [1, 2, 3, 4, 5, 6]


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("past", [0, 1, 3, 4, 6, 9])
def test_rows_up_to_a_key_are_passed(tmp_path: Path, past: int) -> None:
    """The key itself may be gone; the next page goes on behind it all the same."""
    rows = rows_of(tmp_path / "rows", [1, 3, 3], [3, 5, 6], [7])

    rows.move_past(key(past))

    assert rows.after == key(past)
    assert numbers_of(rows.next_rows(9)) == [n for n in (1, 3, 3, 3, 5, 6, 7) if n > past]


@pytest.mark.usefixtures("small_parts")
def test_a_table_is_passed_page_by_page(tmp_path: Path) -> None:
    """Each page begins where the last one ended."""
    rows, found = rows_of(tmp_path / "rows", range(5), range(5, 11)), []

    while rows.next_rows(3).num_rows:
        page = numbers_of(rows.next_rows(3))[:3]
        found += page
        rows.move_past(key(page[-1]))

    assert found == [*range(11)]
    assert rows.next_rows(1).schema == SORTED


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("files", [[(1, 3, 2)], [(1, 3), (2, 4)]], ids=["in a file", "of files"])
def test_rows_in_another_order_are_never_sent(tmp_path: Path, files: list[list[int]]) -> None:
    """Whoever applied their ranges would lose rows."""
    rows = rows_of(tmp_path / "rows", *files)

    with pytest.raises(StateError, match=r'not in order of keys at \{"k":2\}'):
        rows.next_rows(9)


def test_the_files_are_scratch(tmp_path: Path) -> None:
    """They go when their resync is over, and a hub that starts makes its own."""
    rows = rows_of(tmp_path / "rows", [1])

    rows.remove()
    rows.remove()

    assert not (tmp_path / "rows").exists()
