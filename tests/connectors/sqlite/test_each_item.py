"""A batch whose last state is possible is applied, whatever values its rows hold of each other."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import combinations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.sqlite.apply.batch import apply_batch
from connectors.sqlite.apply.rows import writers
from connectors.sqlite.install.install import install
from connectors.sqlite.values.spellings import Stored
from streaming.core.delivery.consumer import ApplyBatch, Position
from streaming.core.model.change import Op
from streaming.core.model.table import ColumnType, Table
from streaming.core.model.values import json_text
from streaming.core.records.record import Item, ItemType, Refused
from tests.connectors.sqlite.sqlite_replica import RID
from tests.harness.examples import examples

TABLE = Table(
    "t",
    ("id",),
    {
        "id": ColumnType.INT32,
        "a": ColumnType.TEXT,
        "b": ColumnType.INT32,
        "c": ColumnType.INT32,
        "d": ColumnType.INT32,
    },
)
BODY = "a TEXT UNIQUE, b INTEGER NOT NULL UNIQUE, c INTEGER, d INTEGER NOT NULL"
COMPOSITE = f"id INTEGER PRIMARY KEY, {BODY}, local TEXT DEFAULT 'new', UNIQUE (c, d))"
GENERATED = (
    f"id INT PRIMARY KEY, {BODY}, local TEXT, both TEXT AS (c || '/' || d) VIRTUAL UNIQUE,"
    " kept AS (a) STORED, CHECK (b < 1000))"
)

Values = tuple[Stored, Stored, Stored, Stored]
Row = tuple[int, Stored, Stored, Stored, Stored]


@pytest.fixture
def client() -> Iterator[sqlite3.Connection]:
    """A database in memory."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        yield made


def create(client: sqlite3.Connection, rows: Sequence[Row], declared: str = COMPOSITE) -> None:
    """A replicated table with rows, each with something of its own in the local column."""
    client.execute(f"CREATE TABLE t ({declared}")
    client.executemany("INSERT INTO t (id, a, b, c, d) VALUES (?, ?, ?, ?, ?)", rows)
    client.execute("UPDATE t SET local = 'of ' || id")
    client.execute("CREATE TABLE seen (what TEXT, id INTEGER)")
    install(client, RID, [TABLE], rows_are_shared=True)


def watch(client: sqlite3.Connection) -> None:
    """Triggers of the user's; one deletes what belongs to a row."""
    client.execute("CREATE TABLE belongs AS SELECT id, 'mine' AS what FROM t")
    client.execute(
        "CREATE TRIGGER gone AFTER DELETE ON t BEGIN DELETE FROM belongs WHERE id = OLD.id; END"
    )
    client.execute(
        "CREATE TRIGGER come AFTER INSERT ON t BEGIN"
        " INSERT INTO belongs VALUES (NEW.id, 'new'); END"
    )


def item(row: Row | int) -> Item:
    """A row of another replica; of its id alone: it is deleted."""
    if isinstance(row, int):
        return Item(ItemType.CHANGE, "t", f'{{"id":{row}}}', Op.DELETE, None, None, 2)
    image = json_text(dict(zip(TABLE.columns, row, strict=True)))
    return Item(ItemType.CHANGE, "t", f'{{"id":{row[0]}}}', Op.UPDATE, image, None, 2)


def apply(client: sqlite3.Connection, *rows: Row | int) -> tuple[Refused, ...]:
    """What a database refuses of a batch."""
    batch = ApplyBatch(Position("s"), 1, tuple(map(item, rows)))
    return apply_batch(client, writers(client, [TABLE]), batch, 1, 0).refused


def rows_of(client: sqlite3.Connection) -> list[Row]:
    """The rows, without the local column."""
    return client.execute("SELECT id, a, b, c, d FROM t ORDER BY id").fetchall()


THREE: list[Row] = [(1, "x", 1, 1, 1), (2, "y", 2, 1, 2), (3, "z", 3, 1, 3)]

POSSIBLE: Mapping[str, list[Row | int]] = {
    "a swap": [(1, "y", 1, 1, 1), (2, "x", 2, 1, 2)],
    "a ring of three": [(1, "y", 1, 1, 1), (2, "z", 2, 1, 2), (3, "x", 3, 1, 3)],
    "a ring the other way round": [(1, "z", 3, 1, 3), (2, "x", 1, 1, 1), (3, "y", 2, 1, 2)],
    "a delete behind who takes its value": [(9, "x", 1, 1, 1), 1],
    "a delete before who takes its value": [1, (9, "x", 1, 1, 1)],
    "a row in the ring that is new": [(9, "x", 2, 1, 9), (1, "y", 1, 1, 1), (2, "q", 7, 1, 2)],
    "a composite swap": [(1, "x", 1, 1, 2), (2, "y", 2, 1, 1)],
    "two columns and a composite": [(1, "y", 2, 1, 2), (2, "x", 1, 1, 1)],
    "a chain": [(1, "y", 2, 1, 2), (2, "z", 3, 1, 3), (3, "q", 4, 1, 4)],
    "nulls": [(1, "y", 1, None, 1), (2, None, 2, None, 1), (3, "x", 3, 1, 1)],
}


@pytest.mark.parametrize("has_triggers", [False, True])
@pytest.mark.parametrize("name", POSSIBLE)
def test_what_is_possible_in_the_end_is_applied(
    client: sqlite3.Connection, name: str, *, has_triggers: bool
) -> None:
    """Of what was missed the last write of each row is sent, and no order of these goes."""
    create(client, THREE)
    if has_triggers:
        watch(client)

    assert apply(client, *POSSIBLE[name]) == ()

    last = {row[0]: row for row in THREE}
    for row in POSSIBLE[name]:
        last.pop(row if isinstance(row, int) else row[0], None)
        if not isinstance(row, int):
            last[row[0]] = row
    assert rows_of(client) == [last[id_] for id_ in sorted(last)]
    local = dict(client.execute("SELECT id, local FROM t").fetchall())
    assert local == {id_: f"of {id_}" if id_ < 4 else "new" for id_ in last}
    if has_triggers:
        belongs = dict(client.execute("SELECT id, what FROM belongs").fetchall())
        assert belongs == {id_: "mine" if id_ < 4 else "new" for id_ in last}


@pytest.mark.parametrize("has_triggers", [False, True])
def test_only_what_the_end_breaks_is_refused(
    client: sqlite3.Connection, *, has_triggers: bool
) -> None:
    """4 is outside the batch and has what 3 wants; so 3 keeps what 2 wants; the swap goes on."""
    create(client, [*THREE, (4, "w", 4, 1, 4), (5, "v", 5, 1, 5), (6, "u", 6, 1, 6)])
    if has_triggers:
        watch(client)

    found = apply(
        client,
        *((2, "z", 2, 1, 2), (5, "u", 5, 1, 5), (3, "w", 3, 1, 3)),
        *((6, "v", 6, 1, 6), (1, "y", 1, 1, 1), (7, "t", 7, 1, 7)),
    )

    assert [(one.key, one.code) for one in found] == [
        (f'{{"id":{id_}}}', "unique") for id_ in (2, 3, 1)
    ]
    assert [row[:2] for row in rows_of(client)] == [
        *((1, "x"), (2, "y"), (3, "z"), (4, "w"), (5, "u"), (6, "v"), (7, "t")),
    ]


def test_of_two_that_cannot_both_stand_the_later_one_is_refused(client: sqlite3.Connection) -> None:
    """Everybody who is sent the same batch over the same rows refuses the same one."""
    create(client, THREE)

    found = apply(client, (1, "y", 1, 1, 1), (2, "x", 2, 1, 2), (3, "y", 3, 1, 3))

    assert [one.key for one in found] == ['{"id":3}']
    assert [row[1] for row in rows_of(client)] == ["y", "x", "z"]


def test_a_shift_of_many_rows_whose_end_is_taken_costs_no_square(
    client: sqlite3.Connection,
) -> None:
    """Each row waits for the next one, the last one for ever."""
    count = 300
    create(client, [(n, None, n, 1, n) for n in range(count + 1)])
    statements = list[str]()
    client.set_trace_callback(statements.append)

    found = apply(client, *((n, None, n + 1, 1, n) for n in range(count)))

    assert len(found) == count
    assert len(statements) < 100 * count


@pytest.mark.parametrize(
    "declared",
    [
        COMPOSITE,
        f"id INT NOT NULL UNIQUE, {BODY}, local TEXT, UNIQUE (c, d))",
        f"id INT PRIMARY KEY, {BODY}, local TEXT, UNIQUE (c, d)) WITHOUT ROWID",
        f"id INT PRIMARY KEY, {BODY}, local TEXT, _rowid_ TEXT, rowid INT, UNIQUE (c, d)) STRICT",
        f"id INT PRIMARY KEY, {BODY}, local TEXT, UNIQUE (c, d) ON CONFLICT REPLACE)",
        GENERATED,
    ],
)
def test_a_row_that_was_taken_out_is_put_in_again_whole(
    client: sqlite3.Connection, declared: str
) -> None:
    """Its rowid, what is not configured, what is generated."""
    create(client, THREE, declared)
    client.execute("CREATE UNIQUE INDEX part ON t (c, a) WHERE d > 1")
    if "STRICT" not in declared:
        client.execute("UPDATE t SET local = x'ff00' WHERE id = 1")
    client.execute("UPDATE t SET local = CAST(x'ff41' AS TEXT) WHERE id = 2")
    has_rowid = "WITHOUT" not in declared
    query = f"SELECT {'oid, ' * has_rowid} id, hex(local), typeof(local) FROM t ORDER BY id"
    before = client.execute(query).fetchall()

    assert apply(client, (1, "y", 2, 1, 2), (2, "z", 3, 1, 3), (3, "x", 1, 1, 1)) == ()

    assert client.execute(query).fetchall() == before
    assert rows_of(client) == [(1, "y", 2, 1, 2), (2, "z", 3, 1, 3), (3, "x", 1, 1, 1)]
    assert client.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert not client.execute("SELECT 1 FROM sqlite_temp_schema WHERE type = 'table'").fetchall()


@pytest.mark.parametrize("has_triggers", [False, True])
def test_a_row_that_a_partial_index_leaves_out_is_in_nobodys_way(
    client: sqlite3.Connection, *, has_triggers: bool
) -> None:
    """Applications mark rows as deleted and go on to use their names."""
    body = BODY.replace("a TEXT UNIQUE", "a TEXT")
    create(client, [*THREE, (4, "x", 4, 2, 0)], f"id INTEGER PRIMARY KEY, {body}, local TEXT)")
    client.execute("CREATE UNIQUE INDEX part ON t (a) WHERE d > 0")
    if has_triggers:
        watch(client)

    assert apply(client, (2, "x", 2, 1, 2), (1, "y", 1, 1, 1)) == ()

    assert [row[1] for row in rows_of(client)] == ["y", "x", "z", "x"]


@pytest.mark.parametrize("clause", ["", "ON CONFLICT REPLACE"])
def test_a_collation_may_have_any_name(client: sqlite3.Connection, clause: str) -> None:
    """Applications name theirs after a language, such as de-DE."""
    client.create_collation("de-DE", lambda one, other: (one > other) - (one < other))
    body = BODY.replace("a TEXT UNIQUE", f'a TEXT COLLATE "de-DE" UNIQUE {clause}')
    create(client, THREE, f"id INTEGER PRIMARY KEY, {body}, local TEXT)")

    assert apply(client, (1, "y", 1, 1, 1), (2, "x", 2, 1, 2)) == ()

    assert [row[1] for row in rows_of(client)] == ["y", "x", "z"]


def test_columns_that_are_not_sent_keep_their_values(client: sqlite3.Connection) -> None:
    """Also those that were lent others meanwhile."""
    create(client, THREE)
    watch(client)
    swap = [
        Item(ItemType.CHANGE, "t", f'{{"id":{id_}}}', Op.UPDATE, f'{{"a":"{a}"}}', None, 2)
        for id_, a in ((1, "y"), (2, "x"))
    ]

    batch = ApplyBatch(Position("s"), 1, tuple(swap))
    assert apply_batch(client, writers(client, [TABLE]), batch, 1, 0).refused == ()
    assert rows_of(client) == [(1, "y", 1, 1, 1), (2, "x", 2, 1, 2), THREE[2]]


small = st.integers(0, 3)
values = st.tuples(st.none() | st.sampled_from("wxyz"), small, st.none() | small, small)


@st.composite
def states(draw: st.DrawFn) -> dict[int, Values]:
    """Rows that break no constraint."""
    found = dict[int, Values]()
    for id_, row in draw(st.dictionaries(st.integers(1, 5), values, max_size=5)).items():
        if not breaks(found, id_, row):
            found[id_] = row
    return found


def rows_by_id(values: Mapping[int, Values]) -> list[Row]:
    """Rows of these values."""
    return [(id_, *row) for id_, row in values.items()]


def breaks(rows: Mapping[int, Values], id_: int, row: Values) -> bool:
    """Whether a row cannot stand beside these."""
    others = [other for key, other in rows.items() if key != id_]
    return any(
        (row[0] is not None and row[0] == other[0])
        or row[1] == other[1]
        or (row[2] is not None and row[2:] == other[2:])
        for other in others
    )


@given(
    before=states(),
    deleted=st.sets(st.integers(1, 5), max_size=2),
    after=st.dictionaries(st.integers(1, 6), values, max_size=6),
    seed=st.randoms(use_true_random=False),
    has_triggers=st.booleans(),
)
@examples()
def test_a_batch_equals_a_database_that_gets_its_end_at_once(
    before: dict[int, Values],
    deleted: set[int],
    after: dict[int, Values],
    seed: Random,
    *,
    has_triggers: bool,
) -> None:
    """And where that is impossible: what is refused could not be added, by one or together."""
    sent: list[Row | int] = [*(deleted - after.keys()), *rows_by_id(after)]
    seed.shuffle(sent)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as client:
        create(client, rows_by_id(before))
        if has_triggers:
            watch(client)
        refused = {int(one.key[6:-1]) for one in apply(client, *sent)}
        found = {row[0]: row[1:] for row in rows_of(client)}
        local = dict(client.execute("SELECT id, local FROM t").fetchall())

    end = {id_: row for id_, row in before.items() if id_ not in deleted} | after
    assert refused <= after.keys()
    kept = {id_: before[id_] for id_ in refused & before.keys()}
    assert found == {id_: row for id_, row in end.items() if id_ not in refused} | kept
    assert local == {id_: f"of {id_}" if id_ in before else "new" for id_ in found}
    if not any(breaks(end, id_, row) for id_, row in end.items()):
        assert not refused
    for count in range(1, len(refused) + 1):
        for some in combinations(refused, count):
            together = found | {id_: after[id_] for id_ in some}
            assert any(breaks(together, id_, after[id_]) for id_ in some)
