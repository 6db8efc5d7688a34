"""One batch of the hub is one local transaction, and nothing that it does is captured."""

from dataclasses import replace
from pathlib import Path

import pytest

from connectors.agent.contract import StoreBusyError, StoreError
from connectors.sqlite.store import SqliteStore
from connectors.sqlite.transaction import BEGIN_GROUP
from streaming.core.delivery.consumer import ApplyBatch, Position, receive
from streaming.core.model.csn import MAX_SKEW_S, time_of
from streaming.core.model.errors import StateError
from streaming.core.model.ruv import NOTHING_KNOWN, Ruv
from streaming.core.records.record import (
    WIRE_VERSIONS,
    Applied,
    Commit,
    Hello,
    Item,
    ItemType,
    Refused,
    Update,
)
from tests.connectors.sqlite.sqlite_replica import CREATE_ITEMS, ITEMS, RID, Replica, make

CLOCK_S = 1_800_000_000
CSN = f"{CLOCK_S:08x}000500020000"
RUV = Ruv("5f00").with_csn(CSN)
ROW = '{"id":"1","name":"a","price":"1.50"}'


def item(id_: int, after: str | None, csn: str | None = CSN, table: str = "items") -> Item:
    """A change of replica 2, or its delete."""
    op = "delete" if after is None else "update"
    return Item(ItemType.CHANGE, table, f'{{"id":"{id_}"}}', op, after, csn, 2)


def image(id_: int, name: str | None = None) -> str:
    """A whole row."""
    named = "null" if name is None else f'"{name}"'
    return f'{{"id":"{id_}","name":{named},"price":null}}'


def apply(store: SqliteStore, *items: Item, hub_epoch: int = 4) -> tuple[Refused, ...]:
    """What an agent does with a batch that came as one record at offset 10."""
    position = store.position
    update = Update(
        "a", 1, position.session or "", hub_epoch, position.last, hub_epoch, RUV, 0, 1, items
    )
    outcome = receive(position, update)
    assert isinstance(outcome, ApplyBatch)
    return store.apply(outcome, 11, CLOCK_S * 1000).refused


@pytest.fixture
def store(replica: Replica) -> SqliteStore:
    """The replica's database within a session."""
    opened = replica.store()
    opened.start_session("s1", None, lost=False)
    return opened


def test_columns_that_are_absent_stay_as_they_are(replica: Replica, store: SqliteStore) -> None:
    """Absent is unknown, not null; a row that is not there gets the columns' defaults."""
    replica.client.execute("INSERT INTO items VALUES (1, 'a', '1.50')")

    apply(store, item(1, '{"id":"1","price":null}'), item(2, '{"id":"2"}'), item(1, '{"id":"1"}'))

    assert replica.rows() == [(1, "a", None), (2, None, None)]


def test_a_refresh_is_a_row_like_any_other(replica: Replica, store: SqliteStore) -> None:
    """Also that of a row which nobody wrote, and a delete of one that is not there."""
    refresh = replace(item(1, ROW, csn=None), type=ItemType.REFRESH, cause="conflict")

    apply(store, refresh, replace(refresh, key='{"id":"5"}', op="delete", after=None))

    assert replica.rows() == [(1, "a", "1.50")]


def test_names_swap_between_rows_within_a_batch(replica: Replica, store: SqliteStore) -> None:
    """Items are applied in hub order."""
    replica.client.execute("INSERT INTO items VALUES (1, 'a', NULL), (2, 'b', NULL)")

    refused = apply(store, item(1, image(1)), item(2, image(2, "a")), item(1, image(1, "b")))

    assert refused == ()
    assert replica.rows() == [(1, "b", None), (2, "a", None)]


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (item(2, image(2, "a")), "unique"),
        (item(2, '{"id":"2","name":"checked"}'), "check"),
        (item(2, '{"id":"2","name":"raised"}'), "other"),
        (item(2, '{"id":"2","name":5}'), "type"),
        (item(2, '{"id":"2","name":"\\ud800"}'), "type"),
        (item(2, '{"id":"2","other":5}'), "column"),
        (item(2, '{"id":2}'), "type"),
        (item(2, image(2), table="nowhere"), "other"),
    ],
)
def test_an_item_that_the_database_refuses_holds_up_no_other(
    tmp_path: Path, bad: Item, code: str
) -> None:
    """It is reported before the `applied` of its batch; the rest is applied."""
    create = (
        "CREATE TABLE items (id INTEGER PRIMARY KEY, price TEXT,"
        " name TEXT UNIQUE ON CONFLICT REPLACE CHECK (name <> 'checked'))"
    )
    replica = make(tmp_path / "r.db", {create: ITEMS})
    replica.client.execute(
        "CREATE TRIGGER raised BEFORE INSERT ON items WHEN NEW.name = 'raised'"
        " BEGIN SELECT RAISE(ROLLBACK, 'never'); END"
    )
    store = replica.store()
    store.start_session("s1", None, lost=False)

    refused = apply(store, item(1, ROW), bad, item(3, image(3, "c")), item(3, image(3, "d")))

    (one,) = refused
    assert (one.hub_epoch, one.csn, one.table, one.key, one.code) == (
        4,
        CSN,
        bad.table,
        '{"id":"2"}',
        code,
    )
    assert [row[0] for row in replica.rows()] == [1, 3]
    assert replica.records() == [one, Applied(1, 4, 1, RUV, reached=4)]
    store.close()
    replica.client.close()


def test_a_refused_item_counts_only_if_it_is_the_rows_last(
    replica: Replica, store: SqliteStore
) -> None:
    """A hub that listed a row which a later item brought would call it different."""
    replica.client.execute("INSERT INTO items VALUES (9, 'mine', NULL)")

    refused = apply(
        store,
        item(1, image(1, "mine")),
        item(2, image(2, "mine")),
        item(1, image(1, "free")),
        item(3, image(3, "free")),
        item(2, image(2, "free")),
    )

    assert [(one.key, one.code) for one in refused] == [
        ('{"id":"3"}', "unique"),
        ('{"id":"2"}', "unique"),
    ]
    assert [row[0] for row in replica.rows()] == [1, 9]


def test_what_a_later_item_makes_possible_is_not_refused(
    replica: Replica, store: SqliteStore
) -> None:
    """Of a page the last write of each row comes: 2 took the name when 1 had given it up."""
    replica.client.execute("INSERT INTO items VALUES (1, 'mine', NULL), (3, 'theirs', NULL)")

    refused = apply(
        store,
        item(4, image(4, "theirs")),
        item(2, image(2, "mine")),
        item(3, image(3, "checked")),
        item(1, image(1, "other")),
    )

    assert refused == ()
    assert [row[:2] for row in replica.rows()] == [
        (1, "other"),
        (2, "mine"),
        (3, "checked"),
        (4, "theirs"),
    ]


def test_a_refusal_outlives_an_agent_that_was_killed(replica: Replica) -> None:
    """It is in the journal since the batch was applied, and stays there until it is published."""
    replica.client.execute("INSERT INTO items VALUES (9, 'mine', NULL)")
    first = replica.store()
    first.start_session("s1", None, lost=False)
    refused = apply(first, item(1, image(1, "mine")), item(2, image(2)))
    first.close()  # as a kill: nothing was published

    second = replica.store()
    second.start_session("s2", None, lost=False)

    assert len(refused) == 1
    assert [one for one in replica.records() if isinstance(one, Refused)] == list(refused)
    assert second.position.covers == 4
    assert [row[0] for row in replica.rows()] == [2, 9]
    second.close()


def test_what_this_agent_does_not_know_stops_it(replica: Replica, store: SqliteStore) -> None:
    """What it leaves out, the replica lacks, and nobody knows."""
    with pytest.raises(StateError, match="which this agent does not know"):
        apply(store, item(2, image(2)), replace(item(1, None), op="merge"))

    assert replica.rows() == []
    assert not store.connection.in_transaction


def test_a_csn_too_far_ahead_is_applied_but_not_followed(
    replica: Replica, store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    """Refusing the row would stop this replica for another one's clock."""
    near, far = CLOCK_S + 3, CLOCK_S + MAX_SKEW_S + 1
    apply(
        store,
        item(1, ROW, csn=f"{near:08x}000000020000"),
        item(2, image(2), csn=f"{far:08x}000000020000"),
    )
    replica.client.execute("INSERT INTO items (id) VALUES (3)")

    assert [row[0] for row in replica.rows()] == [1, 2, 3]
    assert near <= time_of(replica.changes()[0].csn) < far
    assert "correct the clock" in caplog.text


def test_a_hello_tells_the_position_and_stands_for_unpublished_answers(
    replica: Replica, store: SqliteStore
) -> None:
    """Those of the session before would be quarantined; the hello says the same and more."""
    first = store.position.hello(None, lost=False)
    apply(store, item(1, ROW))
    replica.client.execute("INSERT INTO items (id) VALUES (2)")
    store.mark_published(store.unpublished(1, 1_000_000)[0])
    apply(store, hub_epoch=6)
    store.position = replace(store.position, last=9)

    second = store.start_session("s2", "own", lost=True)

    assert first == Hello(
        0, 0, 0, NOTHING_KNOWN, None, lost=False, versions=WIRE_VERSIONS, reached=0
    )
    assert second == Hello(2, 6, 1, RUV, "own", lost=True, versions=WIRE_VERSIONS, reached=6)
    assert store.position.last == 6
    assert replica.records() == replica.changes()
    stored = Position("s2", 6, 6, 2, RUV, 1, reached=6, agreement="a")
    assert replica.store().position == stored


def test_a_group_that_a_client_forgot_to_end_is_ended(replica: Replica, store: SqliteStore) -> None:
    """Its changes are committed here; without an end they would be pending for ever."""
    replica.client.execute("BEGIN")
    replica.client.execute(BEGIN_GROUP)
    replica.client.execute("INSERT INTO items (id) VALUES (1)")
    store.close_abandoned_group()
    replica.client.execute("COMMIT")
    store.close_abandoned_group()
    replica.client.execute("INSERT INTO items (id) VALUES (2)")

    first, second = replica.changes()
    assert replica.records() == [first, Commit(first.csn), second]
    assert second.prim_csn is None


def test_one_store_is_of_one_replica(tmp_path: Path) -> None:
    """A database that could not be opened is left closed and unchanged."""
    replica = make(tmp_path / "r.db", {CREATE_ITEMS: ITEMS})

    with pytest.raises(StateError):
        SqliteStore.open(replica.path, RID + 1, replica.tables)

    replica.client.execute("INSERT INTO items (id) VALUES (1)")
    replica.client.close()


def test_a_full_disk_is_an_error_that_says_what_to_do(replica: Replica, store: SqliteStore) -> None:
    """The batch is rolled back, and a later agent applies it."""
    (pages,) = store.connection.execute("PRAGMA page_count").fetchone()
    store.connection.execute(f"PRAGMA max_page_count = {pages}")

    with pytest.raises(
        StoreError, match=r"no space is left .*full\): free some, then start"
    ) as full:
        apply(store, item(1, image(1, "a" * 1_000_000)))

    assert not isinstance(full.value, StoreBusyError)
    assert replica.rows() == []
    assert replica.store().position.covers == 0
