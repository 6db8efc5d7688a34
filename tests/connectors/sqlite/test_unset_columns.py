"""A column that an item names as unset gets its default here, as it has in every other database."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from connectors.agent.contract import AppliedBatch
from connectors.sqlite.apply.saved import NOT_CAPTURED
from connectors.sqlite.store import SqliteStore
from streaming.core.delivery.consumer import ApplyBatch
from streaming.core.model.change import Op
from streaming.core.model.ruv import Ruv
from streaming.core.model.table import ColumnType, Table
from streaming.core.model.values import json_text
from streaming.core.records.record import Item, ItemType, RangeItem
from tests.connectors.sqlite.sqlite_replica import Replica, make

TABLE = Table(
    "t",
    ("id",),
    {"id": ColumnType.INT32, "a": ColumnType.TEXT, "w": ColumnType.TEXT, "n": ColumnType.INT32},
)
UNSET = ("w", "n", "later")
CSN = "6" * 20
DEFAULTS = {
    "literal": ("w TEXT DEFAULT 'new', n INTEGER DEFAULT -7", ("new", -7)),
    "none": ("w TEXT, n INTEGER", (None, None)),
    "expression": ("w TEXT DEFAULT ('n' || 'ew'), n INTEGER DEFAULT (1+1)", ("new", 2)),
    "affinity": ("w TEXT DEFAULT 5, n INTEGER DEFAULT '6'", ("5", 6)),
    "not null": ("w TEXT NOT NULL DEFAULT '', n INTEGER NOT NULL DEFAULT 0", ("", 0)),
}


def replica_of(tmp_path: Path, columns: str = DEFAULTS["literal"][0]) -> Replica:
    """A replica with these columns beside the key and `a`."""
    return make(
        tmp_path / "r.db", {f"CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, {columns})": TABLE}
    )


def item(id_: int, unset: Sequence[str] = UNSET, **image: object) -> Item:
    """A refresh of a row that lacks these columns."""
    after = json_text({"id": id_, **image})
    key = json_text({"id": id_})
    return Item(ItemType.REFRESH, "t", key, Op.UPDATE, after, CSN, 2, unset=tuple(unset))


def apply(replica: Replica, *items: Item | RangeItem) -> AppliedBatch:
    """Apply a batch behind which the database has everything of replica 2."""
    with closing(replica.store()) as store:
        store.start_session("s", None, lost=False)
        return apply_at(store, *items)


def apply_at(store: SqliteStore, *items: Item | RangeItem) -> AppliedBatch:
    """Apply a batch to an open database."""
    epoch = store.position.reached + 1
    position = replace(store.position, ruv=Ruv().with_csn(CSN), reached=epoch)
    return store.apply(ApplyBatch(position, epoch, items), epoch, 1_700_000_000_000)


@pytest.mark.parametrize(("columns", "values"), DEFAULTS.values(), ids=DEFAULTS)
def test_an_unset_column_gets_its_default(
    tmp_path: Path, columns: str, values: tuple[object, object]
) -> None:
    """This replica wrote a value and lost against a row that has none: it would keep it alone."""
    replica = replica_of(tmp_path, columns)
    replica.client.execute("INSERT INTO t VALUES (1, 'a', 'mine', 1), (3, 'c', 'kept', 3)")

    assert apply(replica, item(1, a="b"), item(2, a="b"), item(3, ("n",), a="c")).refused == ()

    assert replica.rows("t") == [(1, "b", *values), (2, "b", *values), (3, "c", "kept", values[1])]


def test_a_row_of_its_key_alone_gets_its_defaults(tmp_path: Path) -> None:
    """Nothing else is set then."""
    replica = replica_of(tmp_path)
    replica.client.execute("INSERT INTO t VALUES (1, 'a', 'mine', 1)")

    apply(replica, item(1))

    assert replica.rows("t") == [(1, "a", "new", -7)]


def test_a_column_that_cannot_be_null_and_has_no_default_is_refused(tmp_path: Path) -> None:
    """The row cannot stand here as it does elsewhere, which somebody has to see."""
    replica = replica_of(tmp_path, "w TEXT NOT NULL, n INTEGER")
    replica.client.execute("INSERT INTO t VALUES (1, 'a', 'mine', 1)")

    (refused,) = apply(replica, item(1, a="b")).refused

    assert (refused.key, refused.code) == ('{"id":1}', "check")
    assert "t.w" in refused.text
    assert replica.rows("t") == [(1, "a", "mine", 1)]


def test_a_generated_column_and_the_key_are_never_unset(tmp_path: Path) -> None:
    """No statement may set the one, which is not configured, and the other has a value."""
    table = replace(TABLE, columns={n: k for n, k in TABLE.columns.items() if n != "w"})
    create = (
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, w TEXT AS (a || '!'), n INTEGER DEFAULT 4)"
    )
    replica = make(tmp_path / "r.db", {create: table})
    replica.client.execute("INSERT INTO t (id, a, n) VALUES (1, 'a', 1)")

    assert apply(replica, item(1, ("id", "w", "n"), a="b")).refused == ()

    assert replica.rows("t") == [(1, "b", "b!", 4)]


@pytest.mark.parametrize("unique", ["a", "w"])
@pytest.mark.parametrize("has_trigger", [False, True])
def test_unique_values_may_swap_beside_unset_columns(
    tmp_path: Path, unique: str, *, has_trigger: bool
) -> None:
    """A row that was taken out of the way comes back with the default, which others may hold."""
    replica = replica_of(tmp_path, "w TEXT DEFAULT 'new', n INTEGER DEFAULT 4")
    replica.client.execute(f"CREATE UNIQUE INDEX one ON t ({unique})")
    if has_trigger:
        replica.client.execute("CREATE TRIGGER seen AFTER UPDATE ON t BEGIN SELECT 1; END")
    replica.client.execute(
        "INSERT INTO t VALUES (1, 'a', 'x', 1), (2, 'b', 'new', 2), (9, 'own', 'own', 9)"
    )

    (refused,) = apply(
        *(replica, item(1, a="b"), item(2, ("n",), a="a", w="x")),
        item(3, ("n",), a="own", w="own"),
    ).refused

    assert refused.key == '{"id":3}'
    assert replica.rows("t")[:2] == [(1, "b", "new", 4), (2, "a", "x", 4)]


def test_a_trigger_that_keeps_the_value_is_named(tmp_path: Path) -> None:
    """The statement succeeds, and the row would not stand as it does elsewhere."""
    replica = replica_of(tmp_path)
    replica.client.execute("INSERT INTO t VALUES (1, 'a', 'mine', -7)")
    replica.client.execute(
        "CREATE TRIGGER mine BEFORE UPDATE ON t WHEN NEW.w IS 'new' BEGIN SELECT RAISE(IGNORE); END"
    )

    (refused,) = apply(replica, item(1, a="a")).refused

    assert refused.code == "trigger"
    assert "not stored as it was sent (w): trigger mine" in refused.text


def test_another_spelling_of_the_default_stays(tmp_path: Path) -> None:
    """A time means the same with a T."""
    create = "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, w TEXT DEFAULT '2024-02-29 23:59:59')"
    columns = {"id": ColumnType.INT32, "a": ColumnType.TEXT, "w": ColumnType.TIMESTAMP}
    replica = make(tmp_path / "r.db", {create: replace(TABLE, columns=columns)})
    replica.client.execute("INSERT INTO t VALUES (1, 'a', '2024-02-29T23:59:59Z'), (2, 'b', NULL)")

    apply(replica, item(1, ("w",), a="b"), item(2, ("w",), a="b"))

    assert replica.rows("t") == [
        (1, "b", "2024-02-29T23:59:59Z"),
        (2, "b", "2024-02-29 23:59:59"),
    ]


def test_a_full_copy_saves_a_value_that_nobody_captured_in_an_unset_column(tmp_path: Path) -> None:
    """All that is sent stands here; the rows with the default are not saved."""
    replica = replica_of(tmp_path)
    rows = [replace(item(id_, a="a"), cause="page") for id_ in (1, 2, 3)]
    with closing(replica.store()) as store:
        store.start_session("s", None, lost=False)
        apply_at(store, *(replace(one, cause=None) for one in rows))
        behind_the_triggers(replica.client, "UPDATE t SET w = 'mine' WHERE id = 2")

        applied = apply_at(store, RangeItem("t", None, None, 3), *rows)

        found = [(one.key, one.why) for one in applied.saved]
        assert found == [('{"id":2}', NOT_CAPTURED)]
        assert apply_at(store, RangeItem("t", None, None, 3), *rows).saved == ()
    assert replica.rows("t") == [(id_, "a", "new", -7) for id_ in (1, 2, 3)]


def behind_the_triggers(client: sqlite3.Connection, statement: str) -> None:
    """Write without a change in the journal."""
    client.execute("UPDATE _slackwater_origin SET applying = 1")
    client.execute(statement)
    client.execute("UPDATE _slackwater_origin SET applying = 0")
