"""What PostgreSQL tells nobody about a table: the agent says it, and goes on when it is mended."""

import logging

import pytest

from connectors.agent.contract import ReplicaStore, StoreLostError
from streaming.core.model.change import Change, Op
from streaming.core.model.errors import ConfigError, HubError, StateError
from streaming.core.records.record import Snapshot
from tests.connectors.conformance.hub_batches import journalled
from tests.connectors.conformance.postgres_database import PostgresDatabase


def opened(database: PostgresDatabase) -> ReplicaStore:
    """The store in a session, as after the start of an agent."""
    store = database.store()
    store.start_session("s1", None, lost=False)
    return store


def told(store: ReplicaStore) -> list[str]:
    """The keys of the rows that are told as those of a snapshot, to its end."""
    while store.journal_snapshot(100):
        pass
    records = journalled(store)
    assert records
    end = records[-1]
    assert isinstance(end, Snapshot)
    assert end.phase == "end"
    return [one.key for one in records if isinstance(one, Change) and one.snapshot == end.id]


@pytest.mark.parametrize(
    ("statement", "error", "text"),
    [
        ("ALTER TABLE items DROP COLUMN price", StoreLostError, "no column price any more"),
        ("ALTER TABLE items RENAME COLUMN id TO nr", ConfigError, "found by it; name it back"),
        ("ALTER TABLE items ALTER price TYPE text", StateError, "column price of table items has"),
        ("ALTER TABLE items ALTER price TYPE numeric(9,4)", StateError, "has another type now"),
        (
            "ALTER TABLE items DROP COLUMN price; ALTER TABLE items ADD COLUMN price numeric",
            StateError,
            "column price of table items was dropped and made again",
        ),
        ("ALTER TABLE items RENAME TO goods", ConfigError, "items is named goods now"),
        ("ALTER TABLE items REPLICA IDENTITY DEFAULT", StateError, "REPLICA IDENTITY FULL; then"),
        ("ALTER PUBLICATION slackwater DROP TABLE items", StateError, "is not in publication"),
        (
            """ALTER PUBLICATION slackwater DROP TABLE items;
            ALTER PUBLICATION slackwater ADD TABLE items""",
            StateError,
            "was out of publication slackwater for a time",
        ),
        ("DROP TABLE items", StateError, "is not in publication"),
        (
            "ALTER PUBLICATION slackwater SET (publish = 'insert')",
            StateError,
            "has not all operations",
        ),
        pytest.param(
            "ALTER PUBLICATION slackwater SET TABLE items WHERE (id > 3)",
            StateError,
            "a list of columns or a filter for items",
            marks=pytest.mark.postgres15,
        ),
        (
            """CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
            CREATE TRIGGER audit AFTER INSERT ON items EXECUTE FUNCTION f();
            ALTER TABLE items ENABLE ALWAYS TRIGGER audit""",
            StateError,
            "table items has the trigger audit, enabled ALWAYS",
        ),
    ],
)
def test_what_rows_need_and_nobody_says_ends_the_agent(
    attached: PostgresDatabase, statement: str, error: type[HubError], text: str
) -> None:
    """It would go on as if nothing were, and databases would differ."""
    store = opened(attached)
    store.check_schema()

    attached.write(statement)

    with pytest.raises(error, match=text):
        store.check_schema()


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE items ADD COLUMN note text DEFAULT 'none'",
        "ALTER TABLE items ALTER name TYPE varchar(50)",
        "CREATE INDEX ON items (price)",
    ],
)
def test_what_changes_no_replicated_value_does_not_end_the_agent(
    attached: PostgresDatabase, statement: str
) -> None:
    """A column that is new is named at the next hello."""
    attached.write("ALTER TABLE items ALTER name TYPE varchar(20)")
    store = opened(attached)

    attached.write(statement, "INSERT INTO items (id, name) VALUES (1, 'a')")

    store.check_schema()
    (record,) = journalled(store)
    assert isinstance(record, Change)
    assert record.after == '{"id":"1","name":"a","price":null}'
    hello = attached.store().start_session("s2", None, lost=False)
    assert hello.unreplicated == (("items.note",) if "note" in statement else None)


def test_a_column_that_is_not_replicated_is_named_once_and_at_each_start(
    attached: PostgresDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    """As soon as the agent looks; one that the database computes is none."""
    store = opened(attached)
    attached.write(
        "ALTER TABLE items ADD COLUMN twice bigint GENERATED ALWAYS AS (id * 2) STORED",
        "ALTER TABLE items ADD COLUMN note text",
    )

    store.check_schema()
    store.check_schema()
    attached.write("ALTER TABLE items ADD COLUMN more text")
    store.check_schema()
    named = [one.getMessage().rpartition(": ")[2] for one in caplog.records]
    caplog.clear()
    attached.store()

    assert named == ["items.note", "items.more"]
    assert caplog.messages[-1].endswith(": items.note, items.more")


@pytest.mark.parametrize("stops", [True, False])
def test_a_varchar_that_becomes_shorter_ends_the_agent(
    attached: PostgresDatabase, *, stops: bool
) -> None:
    """Spaces at the end of its values are cut off without a word in the log."""
    attached.write("ALTER TABLE items ALTER name TYPE varchar(4)")
    store = opened(attached)
    attached.write("ALTER TABLE items ALTER name TYPE varchar(8)")
    store.check_schema()
    attached.write(
        "INSERT INTO items VALUES (1, 'abcd   ')", "ALTER TABLE items ALTER name TYPE varchar(4)"
    )

    if stops:
        assert told(opened(attached)) == ['{"id":"1"}']
    else:
        with pytest.raises(StateError, match="column name of table items has another type"):
            store.check_schema()


@pytest.mark.parametrize(
    ("there", "back"),
    [
        ("RENAME COLUMN name TO called", "RENAME COLUMN called TO name"),
        ("ALTER id TYPE integer", "ALTER id TYPE bigint"),
    ],
)
def test_a_table_that_was_altered_and_altered_back_is_told_again(
    attached: PostgresDatabase, there: str, back: str
) -> None:
    """The log has rows of the form in between, which neither start expects."""
    attached.write("INSERT INTO items VALUES (1, 'a')")
    store = opened(attached)
    attached.write(
        "INSERT INTO items VALUES (2, 'b')",
        f"ALTER TABLE items {there}",
        "INSERT INTO items VALUES (3, 'c')",
        f"ALTER TABLE items {back}",
        "INSERT INTO items VALUES (4, 'd')",
    )

    with pytest.raises(StateError, match="the log has rows of the table as it was then"):
        store.unpublished(100, 10**6)
    again = opened(attached)

    assert told(again) == ['{"id":"1"}', '{"id":"2"}', '{"id":"3"}', '{"id":"4"}']


def test_rows_of_another_form_are_not_published(attached: PostgresDatabase) -> None:
    """Until the next look at the catalog the log itself says it."""
    store = opened(attached)
    attached.write(
        "INSERT INTO items VALUES (1, 'a', 1.50)",
        "ALTER TABLE items ALTER price TYPE double precision",
        "INSERT INTO items VALUES (2, 'a2', 2.5)",
    )

    with pytest.raises(StateError, match="column price of table items"):
        store.unpublished(100, 10**6)


def test_a_table_that_was_made_again_is_told_again(
    attached: PostgresDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    """Once its new one is published: what was written before that is in no log."""
    opened(attached)
    attached.write(
        "DROP TABLE items",
        "CREATE TABLE items (id bigint PRIMARY KEY, name text UNIQUE, price numeric)",
        "INSERT INTO items VALUES (1, 'a', 1.50), (2, 'b', 2.50)",
    )
    with pytest.raises(StateError, match="is not in publication"):
        attached.store()
    attached.write(
        "ALTER TABLE items REPLICA IDENTITY FULL", "ALTER PUBLICATION slackwater ADD TABLE items"
    )

    with caplog.at_level(logging.WARNING):
        store = attached.store()

    assert (
        "table items: it was made again, or out of the publication for a time; its" in caplog.text
    )
    assert store.start_session("s2", None, lost=False).snapshot is not None
    assert told(store) == ['{"id":"1"}', '{"id":"2"}']


def test_a_table_that_was_out_of_the_publication_is_told_again(
    attached: PostgresDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    """Whether an agent saw it or not: what was written meanwhile is in no log."""
    opened(attached)
    attached.write(
        "ALTER PUBLICATION slackwater DROP TABLE items",
        "INSERT INTO items VALUES (1, 'a', 1.50)",
        "ALTER PUBLICATION slackwater ADD TABLE items",
    )

    with caplog.at_level(logging.WARNING):
        store = attached.store()

    assert "table items: it was made again, or out of the publication for a time" in caplog.text
    store.start_session("s2", None, lost=False)
    assert told(store) == ['{"id":"1"}']


def test_a_column_of_another_type_is_told_again(
    attached: PostgresDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    """Its values were rewritten without a message; what the log has of before goes first."""
    opened(attached)
    attached.write(
        "INSERT INTO items VALUES (1, 'a', 1.50)",
        "ALTER TABLE items ALTER price TYPE numeric(9,4)",
        "INSERT INTO items VALUES (2, 'b', 2.5)",
    )

    with caplog.at_level(logging.WARNING):
        store = attached.store()

    assert "table items: column price had another type; its rows are told again" in caplog.text
    store.start_session("s2", None, lost=False)
    keys = told(store)
    records = [one for one in journalled(store) if isinstance(one, Change)]
    assert [(one.key, one.op, one.snapshot is None) for one in records[:2]] == [
        ('{"id":"1"}', Op.INSERT, True),
        ('{"id":"2"}', Op.INSERT, True),
    ]
    assert keys == ['{"id":"1"}', '{"id":"2"}']
    assert [one.after for one in records] == [
        '{"id":"1","name":"a","price":"1.50"}',
        '{"id":"2","name":"b","price":"2.5000"}',
        '{"id":"1","name":"a","price":"1.5000"}',
        '{"id":"2","name":"b","price":"2.5000"}',
    ]


def test_a_column_that_was_made_again_is_told_again(
    attached: PostgresDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    """Its values are gone, and the log has no word of that, though nobody was there to look."""
    opened(attached)
    attached.write(
        "INSERT INTO items VALUES (1, 'a', 1.50)",
        "ALTER TABLE items DROP COLUMN price",
        "ALTER TABLE items ADD COLUMN price numeric",
    )

    with caplog.at_level(logging.WARNING):
        store = attached.store()

    assert "column price was dropped and made again; its rows are told again" in caplog.text
    store.start_session("s2", None, lost=False)
    assert told(store) == ['{"id":"1"}']
    records = [one for one in journalled(store) if isinstance(one, Change)]
    assert records[-1].after == '{"id":"1","name":"a","price":null}'
