"""A range deletes the rows that the hub does not have, and no others."""

import json
import sqlite3
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest

from connectors.agent.applying import EXTRANEOUS
from connectors.agent.contract import StoreBusyError
from connectors.sqlite.apply.extraneous import items_of
from connectors.sqlite.apply.rows import writers
from connectors.sqlite.store import SqliteStore
from connectors.sqlite.values.columns import CREATE_SCALES, scales
from streaming.core.delivery.consumer import ApplyBatch, BufferChunk, ReceiveOutcome, receive
from streaming.core.model.change import NOBODY, Op
from streaming.core.model.ruv import Ruv
from streaming.core.model.table import ColumnType, Table
from streaming.core.records.record import Applied, Item, ItemType, RangeItem, Refused, Update
from streaming.core.tracking.ranges import KeyRange, key_order
from tests.connectors.sqlite.sqlite_replica import ITEMS, Replica, make
from tests.harness.far_times import BEFORE, FAR

CLOCK_S = 1_800_000_000
CSN = f"{CLOCK_S:08x}000500020000"
RUV = Ruv("5f00").with_csn(CSN)


@dataclass(frozen=True, slots=True)
class Keys:
    """A table of keys: each as the wire has it, and as SQLite stores it."""

    create: str
    table: Table
    stored: Sequence[tuple[object, ...]]
    wire: Sequence[tuple[object, ...]]

    @property
    def names(self) -> list[str]:
        """The keys on the wire."""
        named = (dict(zip(self.table.key, key, strict=True)) for key in self.wire)
        return [json.dumps(key, separators=(",", ":"), ensure_ascii=False) for key in named]


def one_column(declared: str, kind: ColumnType, stored: list[object], wire: list[object]) -> Keys:
    """A table whose key is one column."""
    create = f"CREATE TABLE t (k {declared} NOT NULL PRIMARY KEY)"
    table = Table("t", ("k",), {"k": kind})
    return Keys(create, table, [(one,) for one in stored], [(one,) for one in wire])


TEXTS: list[object] = [
    *("", "a", "a:null", "ab", 'a"b', "a\\b", "a\n", "null", "Z", "é", "\ue000", "\U0001f600"),
]
NUMBERS: list[object] = [-(2**63), -10, -9, -1, 0, 1, 9, 10, 2**63 - 1]
BLOBS = [b"", b"\x00", b"a", b"ab", b"\x7f", b"\x80", b"\xff"]
DECIMALS: list[object] = ["-10", "-9.5", "-0.5", "0", "0.5", "1", "1.0", "1.00", "9", "10"]
DECIMALS = ["-Infinity", *DECIMALS, "Infinity", "NaN"]
TIMES: list[object] = [f"{year:04}-02-03T04:05:06.000001Z" for year in (1, 999, 1969, 2024, 9999)]
TIMES = [*FAR[:BEFORE], *TIMES, *FAR[BEFORE:]]
FLOATS: list[object] = [-1e300, -1.5, 0.5, 1.0, 2.5, 1e300]
PAIRS = Keys(
    'CREATE TABLE t (k INT, "a b" TEXT, PRIMARY KEY ("a b", k)) WITHOUT ROWID',
    Table("t", ("a b", "k"), {"k": ColumnType.INT32, "a b": ColumnType.TEXT}),
    [*product(("", "a", "b"), (-1, 2, 10))],
    [*product(("", "a", "b"), (-1, 2, 10))],
)
MIXED = Keys(
    "CREATE TABLE t (k INT, d TEXT, PRIMARY KEY (k, d)) WITHOUT ROWID",
    Table("t", ("k", "d"), {"k": ColumnType.INT32, "d": ColumnType.DECIMAL}),
    [*product((2, 10), ("2", "10"))],
    [*product((2, 10), ("2", "10"))],
)
CASES = {
    "int64": one_column("INT", ColumnType.INT64, NUMBERS, [str(one) for one in NUMBERS]),
    "bool": one_column("INT", ColumnType.BOOL, [0, 1], [False, True]),
    "text": one_column("TEXT", ColumnType.TEXT, TEXTS, TEXTS),
    "bytes": one_column(
        "BLOB", ColumnType.BYTES, [*BLOBS], [b64encode(one).decode() for one in BLOBS]
    ),
    "decimal": one_column("TEXT", ColumnType.DECIMAL, DECIMALS, DECIMALS),
    "timestamp": one_column("TEXT", ColumnType.TIMESTAMP, TIMES, TIMES),
    "float64": one_column("REAL", ColumnType.FLOAT64, FLOATS, FLOATS),
    "two columns": PAIRS,
    "a decimal behind another column": MIXED,
}


def filled(path: Path, keys: Keys, encoding: str = "UTF-8") -> sqlite3.Connection:
    """A database with all of these rows."""
    connection = database(path, keys.create, encoding)
    names = ", ".join(f'"{name}"' for name in keys.table.key)
    marks = ", ".join("?" * len(keys.table.key))
    connection.executemany(f"INSERT INTO t ({names}) VALUES ({marks})", keys.stored)
    return connection


def database(path: Path, create: str, encoding: str = "UTF-8") -> sqlite3.Connection:
    """A database with this table, and what the agent needs to read a float."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA encoding = '{encoding}'")
    connection.execute(create)
    connection.execute(CREATE_SCALES)
    connection.executemany("INSERT INTO _slackwater_scales VALUES (?, ?, ?, ?)", scales())
    return connection


def refresh(key: str, after: str | None = "{}", table: str = "t", csn: str | None = CSN) -> Item:
    """A row of a range."""
    op = Op.UPDATE if after is not None else Op.DELETE
    return Item(ItemType.REFRESH, table, key, op, after, csn, 2, None, "page")


def stranger(key: str, table: str = "t") -> Item:
    """The delete of a row that the hub does not have."""
    return Item(ItemType.REFRESH, table, key, Op.DELETE, None, None, NOBODY, cause=EXTRANEOUS)


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le", "UTF-16be"])
@pytest.mark.parametrize("keys", CASES.values(), ids=CASES.keys())
def test_the_strangers_of_a_range_are_the_rows_in_it_that_it_does_not_hold(
    tmp_path: Path, keys: Keys, encoding: str
) -> None:
    """For every two ends, open ones included: keys compare by value, however SQLite stores them."""
    connection, order = filled(tmp_path / "r.db", keys, encoding), key_order(keys.table)
    known = writers(connection, [keys.table])
    names = keys.names
    kept = [refresh(name) for name in names[::3]]

    for after, to in product([None, *names], repeat=2):
        here = KeyRange("t", after, to)
        sent = [one for one in kept if here.holds(one.key, order)]
        found = items_of(
            connection, known, [RangeItem("t", after, to, len(sent)), *sent], each_row=False
        )

        strangers = found[: len(found) - len(sent)]
        expected = {
            name for place, name in enumerate(names) if place % 3 and here.holds(name, order)
        }
        assert {one.key for one in strangers} == expected, here
        assert strangers == [stranger(one.key) for one in strangers]
        assert found[len(strangers) :] == sent
    connection.close()


def test_only_the_rows_behind_a_range_are_its_own(tmp_path: Path) -> None:
    """A batch may hold changes before it, and several ranges, of several tables."""
    keys = one_column("INT", ColumnType.INT64, [1, 2, 3, 4, 5], ["1", "2", "3", "4", "5"])
    connection = filled(tmp_path / "r.db", keys)
    one, two, three, four, five = keys.names

    found = items_of(
        connection,
        writers(connection, [keys.table]),
        [
            refresh(one),
            RangeItem("t", None, two, 1),
            refresh(two),
            RangeItem("elsewhere", None, None, 1),
            refresh(four, table="elsewhere"),
            RangeItem("t", three, None, 0),
            refresh(five),
        ],
        each_row=False,
    )

    assert found == [
        refresh(one),
        *[stranger(one), refresh(two)],
        refresh(four, table="elsewhere"),
        *[stranger(four), stranger(five)],
        refresh(five),
    ]
    connection.close()


def test_a_row_whose_key_cannot_be_carried_stays(tmp_path: Path) -> None:
    """It never was at the hub, which cannot name it; only its database has it."""
    table = Table("t", ("k",), {"k": ColumnType.DECIMAL})
    connection = database(tmp_path / "r.db", "CREATE TABLE t (k TEXT UNIQUE)")
    rows = [("1",), (None,), ("1e3",), ("abc",), (b"2",), ("03",)]
    connection.executemany("INSERT INTO t VALUES (?)", rows)

    found = items_of(
        connection, writers(connection, [table]), [RangeItem("t", None, None, 0)], each_row=False
    )

    assert found == [stranger('{"k":"1"}')]
    connection.close()


# -- applied -----------------------------------------------------------------------------------


@pytest.fixture
def store(replica: Replica) -> Iterator[SqliteStore]:
    """The replica's database within a session; it has items 1 to 4, named a to d."""
    replica.client.executemany(
        "INSERT INTO items VALUES (?, ?, NULL)", [(n, "abcd"[n - 1]) for n in range(1, 5)]
    )
    opened = replica.store()
    opened.start_session("s1", None, lost=False)
    opened.mark_published(replica.entries()[-1])
    yield opened
    opened.close()


def image(number: int, name: str) -> str:
    """A row of items."""
    return f'{{"id":"{number}","name":"{name}","price":null}}'


def key(number: int) -> str:
    """The key of an item."""
    return f'{{"id":"{number}"}}'


def row(number: int, name: str) -> Item:
    """A row of items as a range holds it."""
    return refresh(key(number), image(number, name), "items")


def items_in(
    *rows: Item, after: int | None = None, to: int | None = None
) -> list[Item | RangeItem]:
    """A range of items with these rows."""
    first, last = (None if n is None else key(n) for n in (after, to))
    return [RangeItem("items", first, last, len(rows)), *rows]


def apply(
    store: SqliteStore, *chunks: Sequence[Item | RangeItem], hub_epoch: int = 4, covers: int = 2
) -> tuple[Refused, ...]:
    """What an agent does with a batch of these chunks."""
    outcome: ReceiveOutcome | None = None
    for number, items in enumerate(chunks):
        position = store.position
        update = Update(
            *("a", 1, position.session or "", hub_epoch, position.last, covers, RUV),
            *(number, len(chunks), tuple(items)),
        )
        outcome = receive(position, update)
        if isinstance(outcome, BufferChunk):
            store.position = outcome.position
    assert isinstance(outcome, ApplyBatch)
    return store.apply(outcome, 11, CLOCK_S * 1000).refused


def names(replica: Replica) -> dict[object, object]:
    """The rows of items: id -> name."""
    return {number: name for number, name, _ in replica.rows()}


def test_a_range_makes_its_rows_equal_in_one_transaction(
    replica: Replica, store: SqliteStore
) -> None:
    """A unique value of a stranger is free for a row; nothing of it is captured."""
    apply(store, items_in(row(2, "c"), row(9, "b"), after=1, to=9))

    assert names(replica) == {1: "a", 2: "c", 9: "b"}
    assert [one.record for one in replica.entries()] == [Applied(1, 2, 1, RUV, reached=4)]


def test_a_range_in_several_chunks_is_whole_when_the_last_one_is_there(
    replica: Replica, store: SqliteStore
) -> None:
    """A chunk by itself would delete what the next one brings."""
    ahead, *rows = items_in(row(1, "x"), row(2, "y"), row(3, "z"))

    apply(store, [ahead], rows[:1], rows[1:])

    assert names(replica) == {1: "x", 2: "y", 3: "z"}


def test_an_empty_range_empties_a_table(replica: Replica, store: SqliteStore) -> None:
    """The hub has nothing of it; its position is where the hub says."""
    apply(store, items_in(), hub_epoch=7, covers=0)

    assert names(replica) == {}
    assert (store.position.covers, store.position.last, store.position.reached) == (0, 7, 7)


def test_a_stranger_that_the_database_does_not_let_go_is_reported(
    replica: Replica, store: SqliteStore
) -> None:
    """It is listed at the hub as a row that differs; it holds up nothing else."""
    replica.client.execute(
        "CREATE TRIGGER kept BEFORE DELETE ON items WHEN OLD.id = 3"
        " BEGIN SELECT RAISE(ABORT, 'not this one'); END"
    )

    refused = apply(store, items_in(row(1, "x")))

    assert refused == (Refused(4, "0" * 20, "items", key(3), "other", "not this one"),)
    assert names(replica) == {1: "x", 3: "c"}
    assert [one.record for one in replica.entries()] == [
        *refused,
        Applied(1, 2, 1, RUV, reached=4),
    ]


def test_a_batch_that_finds_the_database_busy_leaves_nothing(
    replica: Replica, store: SqliteStore
) -> None:
    """What is written meanwhile is a stranger of the next attempt, or it is not."""
    store.connection.execute("PRAGMA busy_timeout = 10")
    replica.client.execute("BEGIN IMMEDIATE")
    replica.client.execute("INSERT INTO items VALUES (7, 'late', NULL)")

    with pytest.raises(StoreBusyError, match="locked"):
        apply(store, items_in(row(1, "x")))
    before = names(replica)
    replica.client.execute("COMMIT")
    apply(store, items_in(row(1, "x")))

    assert before == {1: "a", 2: "b", 3: "c", 4: "d", 7: "late"}
    assert names(replica) == {1: "x"}


def test_what_is_written_between_two_attempts_shifts_no_refusal(tmp_path: Path) -> None:
    """The third attempt has a stranger more; the row that is refused is still the same.

    A refusal that ends the transaction makes the agent begin anew, without the lock.
    """
    create = "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT, price TEXT)"
    replica = make(tmp_path / "r.db", {create: ITEMS})
    replica.client.execute(
        "CREATE TRIGGER never BEFORE INSERT ON items WHEN NEW.name = 'never'"
        " BEGIN SELECT RAISE(ROLLBACK, 'never'); END"
    )
    store = replica.store()
    store.start_session("s1", None, lost=False)
    attempts = 0

    def watch(statement: str) -> None:
        nonlocal attempts
        attempts += statement == "BEGIN IMMEDIATE"
        if statement == "BEGIN IMMEDIATE" and attempts == 3:
            replica.client.execute("INSERT INTO items VALUES (5, 'stranger', NULL)")

    store.connection.set_trace_callback(watch)
    refused = apply(store, items_in(row(1, "x"), row(2, "never"), row(3, "z")))
    store.connection.set_trace_callback(None)

    assert attempts > 3
    assert [one.key for one in refused] == [key(2)]
    assert names(replica) == {1: "x", 3: "z"}
    store.close()
    replica.client.close()
