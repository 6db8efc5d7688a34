"""A table may declare what happens on a conflict; applied rows are refused all the same."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from streaming.core.delivery.consumer import ApplyBatch
from streaming.core.model.change import Op
from streaming.core.records.record import Item, ItemType
from tests.connectors.sqlite.sqlite_replica import ITEMS, Replica, make

CLAUSES = ["REPLACE", "IGNORE", "FAIL", "ROLLBACK", "ABORT"]
UPSERT = "INSERT OR REPLACE INTO stat VALUES ('last', NEW.id)"


def item(id_: int, name: str | None, price: str | None = "1") -> Item:
    """A row of another replica."""
    texts = [f'"{value}"' if value is not None else "null" for value in (str(id_), name, price)]
    after = '{{"id":{},"name":{},"price":{}}}'.format(*texts)
    return Item(ItemType.CHANGE, "items", f'{{"id":"{id_}"}}', Op.UPDATE, after, None, 0)


@contextmanager
def table(path: Path, declared: str, *, trigger: bool) -> Iterator[Replica]:
    """A replica whose table has two rows, and maybe a trigger with a clause of its own."""
    made = make(path / "r.db", {f"CREATE TABLE items ({declared}": ITEMS})
    made.client.execute("CREATE TABLE stat (what TEXT PRIMARY KEY, id INTEGER)")
    made.client.execute("INSERT INTO items (id, name, price) VALUES (1, 'a', '1'), (2, 'b', '2')")
    for event in ("INSERT", "UPDATE") if trigger else ():
        made.client.execute(
            f"CREATE TRIGGER mine_{event} AFTER {event} ON items BEGIN {UPSERT}; END"
        )
    yield made
    made.client.close()


def apply(replica: Replica, *items: Item) -> list[tuple[str, str, str]]:
    """Key, code and text of what the database refuses."""
    with closing(replica.store()) as store:
        store.start_session("s", None, lost=False)
        found = store.apply(ApplyBatch(store.position, 1, items), 1, 0).refused
    return [(one.key, one.code, one.text) for one in found]


@pytest.mark.parametrize("trigger", [False, True])
@pytest.mark.parametrize("clause", CLAUSES)
@pytest.mark.parametrize(
    "columns",
    [
        "id INTEGER PRIMARY KEY, name TEXT UNIQUE ON CONFLICT {}, price TEXT)",
        (
            "id INTEGER PRIMARY KEY ON CONFLICT {0}, name TEXT, price TEXT,"
            " UNIQUE (name) ON CONFLICT {0})"
        ),
        "id INTEGER NOT NULL UNIQUE, name TEXT PRIMARY KEY ON CONFLICT {}, price TEXT)",
        (
            "id INTEGER NOT NULL, name TEXT, price TEXT, UNIQUE (name) /* on */ ON -- all\n"
            " CONFLICT {0}, CONSTRAINT pk PRIMARY KEY (id) ON CONFLICT {0}) WITHOUT ROWID"
        ),
    ],
)
def test_no_row_is_deleted_or_ignored_for_a_unique_value(
    tmp_path: Path, columns: str, clause: str, *, trigger: bool
) -> None:
    """REPLACE would delete a row of which nobody hears; IGNORE leaves one out."""
    with table(tmp_path, columns.format(clause), trigger=trigger) as replica:
        found = apply(replica, item(3, "a"), item(2, "a"), item(4, "d"), item(1, "a", "9"))

        text = "UNIQUE constraint failed: items.name"
        assert found == [(f'{{"id":"{id_}"}}', "unique", text) for id_ in (3, 2)]
        assert replica.rows() == [(1, "a", "9"), (2, "b", "2"), (4, "d", "1")]
        assert replica.rows("stat") == ([("last", 1)] if trigger else [])


@pytest.mark.parametrize("trigger", [False, True])
@pytest.mark.parametrize("clause", CLAUSES)
def test_no_null_is_replaced_or_ignored(tmp_path: Path, clause: str, *, trigger: bool) -> None:
    """REPLACE would store the column's default in its place, and IGNORE nothing."""
    columns = f"id INTEGER PRIMARY KEY, name TEXT NOT NULL ON CONFLICT {clause} DEFAULT 'x', price)"
    with table(tmp_path, columns, trigger=trigger) as replica:
        found = apply(replica, item(3, None), item(2, None), item(1, "a", "9"))

        text = "NOT NULL constraint failed: items.name"
        assert found == [(f'{{"id":"{id_}"}}', "check", text) for id_ in (3, 2)]
        assert replica.rows() == [(1, "a", "9"), (2, "b", "2")]


@pytest.mark.parametrize("clause", CLAUSES)
def test_composite_values_and_collations_count_as_the_table_compares(
    tmp_path: Path, clause: str
) -> None:
    """Also with a column that is not configured, whose value is its default or what it was."""
    columns = (
        "id INTEGER PRIMARY KEY, name TEXT COLLATE NOCASE, price TEXT, local TEXT DEFAULT 'l',"
        f" UNIQUE (name, local) ON CONFLICT {clause})"
    )
    with table(tmp_path, columns, trigger=False) as replica:
        replica.client.execute("UPDATE items SET local = 'other' WHERE id = 2")
        found = apply(replica, item(3, "A"), item(2, "A"), item(4, None), item(5, None))

        assert [key for key, _, _ in found] == ['{"id":"3"}']
        names = [(id_, name, local) for id_, name, _, local in replica.rows()]
        assert names == [
            *((1, "a", "l"), (2, "A", "other")),
            *((4, None, "l"), (5, None, "l")),
        ]


def test_a_column_that_gets_another_name_is_refused_by_that_one(tmp_path: Path) -> None:
    """What the agent's own triggers say of the old one is no fault of the table's."""
    columns = (
        "id INTEGER PRIMARY KEY, name TEXT, price TEXT,"
        " local TEXT DEFAULT 'l' UNIQUE ON CONFLICT REPLACE)"
    )
    with table(tmp_path, columns, trigger=False) as replica, closing(replica.store()) as store:
        store.start_session("s", None, lost=False)
        replica.client.execute("ALTER TABLE items RENAME COLUMN local TO own")

        batch = ApplyBatch(store.position, 1, (item(3, "c"),))
        (refused,) = store.apply(batch, 1, 0).refused

        assert refused.text == "UNIQUE constraint failed: items.own"
        assert not [text for text in store.warnings if "no row can be written" in text]


def test_a_rowid_that_sqlite_chooses_is_in_nobodys_way(tmp_path: Path) -> None:
    """Before it is chosen, a trigger sees it as -1."""
    columns = (
        "number INTEGER PRIMARY KEY ON CONFLICT REPLACE, id INTEGER NOT NULL UNIQUE, name, price)"
    )
    with table(tmp_path, columns, trigger=False) as replica:
        replica.client.execute("INSERT INTO items (number, id) VALUES (-1, 7)")

        assert apply(replica, item(3, "c")) == []
        assert len(replica.rows()) == 4


def test_what_a_client_writes_keeps_its_tables_clause(tmp_path: Path) -> None:
    """It is captured as it happens."""
    columns = "id INTEGER PRIMARY KEY, name TEXT UNIQUE ON CONFLICT REPLACE, price TEXT)"
    with table(tmp_path, columns, trigger=False) as replica, closing(replica.store()):
        replica.client.execute("INSERT INTO items VALUES (3, 'a', NULL)")

        assert [change.op for change in replica.changes()[-2:]] == [Op.DELETE, Op.INSERT]
