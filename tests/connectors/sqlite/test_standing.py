"""An item counts as applied only if its row stands so afterwards, whatever the user's triggers."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from connectors.agent.new_start import NewStart
from connectors.agent.own_topic import OwnTopic
from connectors.sqlite.apply.rows import writers
from connectors.sqlite.schema.user_triggers import GUARD
from connectors.sqlite.store import SqliteStore
from streaming.core.delivery.consumer import ApplyBatch
from streaming.core.model.change import Op
from streaming.core.model.errors import StateError
from streaming.core.records.record import Applied, Item, ItemType, Refused
from tests.connectors.sqlite.sqlite_replica import CREATE_ITEMS, ITEMS, Replica, make

CSN = "65e0f1c0000500020000"
IGNORE = "SELECT RAISE(IGNORE)"


@pytest.fixture
def replica(tmp_path: Path) -> Iterator[Replica]:
    """A replica with two rows, and a local table."""
    made = make(tmp_path / "r.db", {CREATE_ITEMS: ITEMS})
    made.client.execute("CREATE TABLE log (id INTEGER, what TEXT)")
    made.client.executescript("INSERT INTO items VALUES (1, 'a', '1.50'), (2, 'b', '2.50')")
    yield made
    made.client.close()


def item(id_: int, name: str | None, price: str = "1.50") -> Item:
    """A row of another replica; without a name it is deleted."""
    after = None if name is None else f'{{"id":"{id_}","name":"{name}","price":"{price}"}}'
    op = Op.DELETE if name is None else Op.UPDATE
    return Item(ItemType.CHANGE, "items", f'{{"id":"{id_}"}}', op, after, CSN, 2)


TRUNCATE = Item(ItemType.CHANGE, "items", "", Op.TRUNCATE, None, CSN, 2)


def apply(store: SqliteStore, *items: Item) -> tuple[Refused, ...]:
    """Apply a batch as an agent does; what the database refused."""
    position = store.position
    return store.apply(ApplyBatch(position, position.reached + 1, items), 1, 0).refused


def refusals(replica: Replica, *items: Item) -> list[tuple[str, str, str]]:
    """Key, code and text of what is refused of one batch, which the journal has too."""
    with closing(replica.store()) as store:
        store.start_session("s", None, lost=False)
        found = apply(store, *items)
    records = [one for one in replica.records() if not isinstance(one, Applied)]
    assert records[-len(found) :] == list(found) if found else True
    return [(one.key, one.code, one.text) for one in found]


@pytest.mark.parametrize(
    ("create", "sent", "text"),
    [
        (
            "BEFORE INSERT ON items WHEN NEW.id = 3",
            item(3, "c"),
            "the row is not there: trigger mine of table items prevents it",
        ),
        (
            "BEFORE UPDATE ON items WHEN NEW.id = 1",
            item(1, "changed"),
            "not stored as it was sent (name): trigger mine of table items prevents it",
        ),
        (
            "BEFORE DELETE ON items WHEN OLD.id = 1",
            item(1, None),
            "the row is still there: trigger mine of table items prevents it",
        ),
    ],
)
def test_what_a_trigger_ignores_is_refused_by_its_name(
    replica: Replica, create: str, sent: Item, text: str
) -> None:
    """The statement succeeds without effect, so the replica would differ and call itself level."""
    replica.client.execute(f"CREATE TRIGGER mine {create} BEGIN {IGNORE}; END")
    replica.client.execute("CREATE TRIGGER other AFTER INSERT ON items BEGIN SELECT 1; END")
    before = replica.rows()

    (found,) = refusals(replica, item(2, "b", "9"), sent)

    assert found[:2] == (sent.key, "trigger")
    assert found[2].startswith(text)
    assert replica.rows() == [before[0], (2, "b", "9")]


def test_what_a_trigger_ignores_on_behalf_of_another_is_refused(replica: Replica) -> None:
    """RAISE(IGNORE) in the trigger of a statement of a trigger: the row itself does stand."""
    replica.client.executescript(
        "CREATE VIEW logged AS SELECT * FROM log;"
        f"CREATE TRIGGER inner INSTEAD OF INSERT ON logged BEGIN {IGNORE}; END;"
        "CREATE TRIGGER outer AFTER INSERT ON items BEGIN"
        " INSERT INTO logged VALUES (NEW.id, 'in'); INSERT INTO log VALUES (NEW.id, 'on'); END;"
    )

    assert refusals(replica, item(3, "c")) == []
    assert replica.rows()[-1] == (3, "c", "1.50")
    assert replica.rows("log") == [(3, "on")]


def test_a_trigger_that_changes_the_row_through_a_view_is_named(replica: Replica) -> None:
    """It gets there on a way that no look at its text finds."""
    with closing(replica.store()) as store:
        store.start_session("s", None, lost=False)
        replica.client.executescript(
            "CREATE VIEW shown AS SELECT * FROM items;"
            "CREATE TRIGGER direct INSTEAD OF UPDATE ON shown BEGIN"
            " UPDATE items SET name = upper(NEW.name) WHERE id = NEW.id; END;"
            "CREATE TRIGGER mine AFTER INSERT ON items BEGIN"
            " UPDATE shown SET name = NEW.name WHERE id = NEW.id; END;"
        )
        store.writers = writers(store.connection, [ITEMS])
        (store.schema_version,) = replica.client.execute("PRAGMA schema_version").fetchone()
        (found,) = apply(store, item(3, "c"), item(2, "c2"))

    assert (found.key, found.code) == ('{"id":"3"}', "trigger")
    assert found.text.startswith("not stored as it was sent (name): trigger mine of table items")
    assert replica.rows() == [(1, "a", "1.50"), (2, "c2", "1.50")]
    with pytest.raises(Exception, match="by trigger direct on shown and would do so again"):
        replica.store()


def test_a_row_that_a_truncate_leaves_is_refused_by_itself(replica: Replica) -> None:
    """The others go; the hub lists the one that stays."""
    replica.client.execute(
        f"CREATE TRIGGER mine BEFORE DELETE ON items WHEN OLD.id = 1 BEGIN {IGNORE}; END"
    )

    (found,) = refusals(replica, TRUNCATE, item(3, "c"))

    assert found[:2] == ('{"id":"1"}', "trigger")
    assert replica.rows() == [(1, "a", "1.50"), (3, "c", "1.50")]


def test_a_row_that_stands_already_is_applied(replica: Replica) -> None:
    """What a trigger ignored changes nothing then; another spelling of a value is the same."""
    replica.client.execute(f"CREATE TRIGGER mine BEFORE UPDATE ON items BEGIN {IGNORE}; END")

    assert refusals(replica, item(1, "a", "1.50"), item(9, None)) == []


def test_a_trigger_with_the_guard_prevents_nothing(replica: Replica) -> None:
    """It does not fire for what the agent applies."""
    replica.client.execute(
        f"CREATE TRIGGER mine BEFORE INSERT ON items {GUARD} BEGIN {IGNORE}; END"
    )

    assert refusals(replica, item(3, "c")) == []
    assert replica.rows()[-1] == (3, "c", "1.50")


def test_a_trigger_of_a_moment_ago_is_known(replica: Replica) -> None:
    """Between two looks at the schema a migration may create one."""
    with closing(replica.store()) as store:
        store.start_session("s", None, lost=False)
        assert apply(store, item(1, "changed")) == ()
        replica.client.execute(f"CREATE TRIGGER mine BEFORE UPDATE ON items BEGIN {IGNORE}; END")

        (found,) = apply(store, item(1, "again"))

    assert (found.key, found.code) == ('{"id":"1"}', "trigger")


def test_a_row_that_a_trigger_refuses_comes_when_the_trigger_is_gone(replica: Replica) -> None:
    """A retry is an item like any other."""
    replica.client.execute(f"CREATE TRIGGER mine BEFORE INSERT ON items BEGIN {IGNORE}; END")
    assert len(refusals(replica, item(3, "c"))) == 1

    replica.client.execute("DROP TRIGGER mine")

    assert refusals(replica, item(3, "c")) == []
    assert replica.rows()[-1] == (3, "c", "1.50")


@pytest.mark.parametrize("kind", ["TEXT", "NUMERIC", "REAL", "BLOB", "INTEGER"])
def test_values_that_a_column_converts_stand_as_they_were_sent(tmp_path: Path, kind: str) -> None:
    """A number that was sent as text is the same number."""
    create = f"CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT COLLATE NOCASE, price {kind})"
    made = make(tmp_path / "r.db", {create: ITEMS})
    made.client.execute("CREATE TRIGGER mine AFTER INSERT ON items BEGIN SELECT 1; END")
    made.client.execute("CREATE TRIGGER ours AFTER UPDATE ON items BEGIN SELECT 1; END")

    prices = ("1.50", "2", "9007199254740993") if kind in ("TEXT", "BLOB") else ("1.5", "2", "-7")
    assert refusals(made, *(item(place, "A", price) for place, price in enumerate(prices))) == []
    assert refusals(made, *(item(place, "a", price) for place, price in enumerate(prices))) == []
    assert [row[1] for row in made.rows()] == ["a", "a", "a"]
    made.client.close()


def test_a_database_that_a_trigger_keeps_from_being_emptied_does_not_start_anew(
    replica: Replica, tmp_path: Path
) -> None:
    """Its hello would say that it is empty."""
    replica.client.execute(f"CREATE TRIGGER mine BEFORE DELETE ON items BEGIN {IGNORE}; END")
    rows = replica.rows()

    with (
        closing(replica.store()) as store,
        pytest.raises(StateError, match="table items cannot be emptied: a trigger of yours keeps"),
    ):
        store.reinit(NewStart(OwnTopic("old"), 0, 0), lambda *_: False, tmp_path / "saved")

    assert replica.rows() == rows


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT OR REPLACE INTO stat VALUES ('rows', NEW.id)",
        "INSERT OR IGNORE INTO stat VALUES ('rows', NEW.id)",
        "UPDATE OR IGNORE stat SET what = 'rows'",
        "UPDATE OR REPLACE stat SET what = 'rows'",
        "INSERT INTO stat VALUES ('rows', 1) ON CONFLICT DO UPDATE SET n = n + 1",
        "INSERT INTO stat VALUES ('rows', 1) ON CONFLICT DO NOTHING",
        "REPLACE INTO stat VALUES ('rows', NEW.id)",
    ],
)
@pytest.mark.parametrize("event", ["INSERT", "UPDATE"])
def test_a_trigger_keeps_its_own_conflict_clause(
    replica: Replica, statement: str, event: str
) -> None:
    """A clause of the agent's statement would override it, and the row would be refused."""
    extra = (
        "CREATE TABLE stat (what TEXT PRIMARY KEY, n INTEGER);"
        "INSERT INTO stat VALUES ('rows', 0), ('more', 0);"
        f"CREATE TRIGGER mine AFTER {event} ON items BEGIN {statement}; END"
    )
    sent, by_hand = [item(1, "c"), item(2, "d")], "UPDATE items SET name = id"
    if event == "INSERT":
        sent, by_hand = [item(3, "c"), item(4, "d")], "INSERT INTO items (id) VALUES (3), (4)"
    with closing(sqlite3.connect(":memory:")) as plain:
        plain.execute(CREATE_ITEMS)
        plain.execute("INSERT INTO items (id) VALUES (1), (2)")
        plain.executescript(extra)
        plain.execute(by_hand)
        expected = plain.execute("SELECT * FROM stat ORDER BY 1").fetchall()
    replica.client.executescript(extra)

    assert refusals(replica, *sent) == []
    assert replica.rows("stat") == expected
