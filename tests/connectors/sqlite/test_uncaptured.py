"""A table that was written without capture is unpublished until the hub has copied it whole."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from connectors.sqlite.check import check_database
from connectors.sqlite.store import SqliteStore
from streaming.core.delivery.consumer import ApplyBatch
from streaming.core.records.record import Item, ItemType, RangeItem
from tests.connectors.sqlite.sqlite_replica import RID, Replica

TRIGGER = "_slackwater_after_update_items"


def key(id_: int) -> str:
    """A key of the table."""
    return f'{{"id":"{id_}"}}'


def row(id_: int) -> Item:
    """A row as a full copy has it."""
    after = f'{{"id":"{id_}","name":null,"price":"1"}}'
    csn = "65e0f1c0000500020000"
    return Item(ItemType.REFRESH, "items", key(id_), "update", after, csn, 2, cause="page")


def apply(store: SqliteStore, *items: Item | RangeItem) -> None:
    """Apply a batch as the agent does."""
    epoch = store.position.reached + 1
    store.apply(ApplyBatch(store.position, epoch, items), epoch, 1_700_000_000_000)


def unsaid(store: SqliteStore) -> int:
    """What the agent would say that it has not published, the whole journal being in the topic."""
    while entries := store.unpublished(100, 10**6):
        store.mark_published(entries[-1])
    return store.backlog()


@pytest.fixture
def store(replica: Replica) -> Iterator[SqliteStore]:
    """A database that was written while a trigger was missing, and started as the agent advises."""
    replica.client.execute("INSERT INTO items (id) VALUES (1), (2)")
    replica.client.execute(f"DROP TRIGGER {TRIGGER}")
    replica.client.execute("UPDATE items SET price = '9' WHERE id = 2")
    opened = SqliteStore.open(replica.path, RID, replica.tables, rows_are_shared=True)
    with closing(opened) as made:
        made.start_session("s", None, lost=False)
        yield made


def test_it_counts_as_unpublished_until_its_full_copy_is_applied(
    replica: Replica, store: SqliteStore
) -> None:
    """In parts, and behind a restart; what is no full copy does not do."""
    assert unsaid(store) == 1
    apply(store, row(2))
    apply(store, RangeItem("items", key(1), None, 1), row(2))
    apply(store, RangeItem(replica.tables[1].name, None, None, 0))
    assert unsaid(store) == 1
    apply(store, RangeItem("items", None, key(1), 1), row(1))
    assert unsaid(store) == 1

    with closing(replica.store()) as again:
        assert unsaid(again) == 1
        again.start_session("s2", None, lost=False)
        apply(again, RangeItem("items", key(1), None, 1), row(2))
        assert unsaid(again) == 0
    assert replica.rows() == [(1, None, "1"), (2, None, "1")]


def test_a_copy_in_one_range_does(store: SqliteStore) -> None:
    """As that of a small table."""
    apply(store, RangeItem("items", None, None, 2), row(1), row(2))

    assert unsaid(store) == 0


def test_a_loss_during_a_copy_needs_another(replica: Replica, store: SqliteStore) -> None:
    """What was copied before may have been written since."""
    apply(store, RangeItem("items", None, key(1), 1), row(1))
    store.close()
    replica.client.execute(f"DROP TRIGGER {TRIGGER}")

    opened = SqliteStore.open(replica.path, RID, replica.tables, rows_are_shared=True)
    with closing(opened) as again:
        again.start_session("s2", None, lost=False)
        apply(again, RangeItem("items", key(1), None, 1), row(2))
        assert unsaid(again) == 1


@pytest.mark.usefixtures("store")
def test_it_is_named_until_then(replica: Replica, caplog: pytest.LogCaptureFixture) -> None:
    """By each start and by `agent check`; a table that is configured no more is left out."""
    said = "table items: it was written while it had lost triggers"

    replica.store().close()
    found = check_database(replica.path, replica.tables)

    assert any(one.startswith(said) for one in caplog.messages)
    assert any(one.startswith(said) for one in found.warnings)
    with closing(SqliteStore.open(replica.path, RID, replica.tables[1:])) as other:
        assert unsaid(other) == 0


def test_a_table_that_lost_no_trigger_is_never_listed(replica: Replica) -> None:
    """Whoever always starts the agent with the option is told nothing."""
    for _ in range(2):
        opened = SqliteStore.open(replica.path, RID, replica.tables, rows_are_shared=True)
        with closing(opened) as made:
            assert unsaid(made) == 0
