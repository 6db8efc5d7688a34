"""A database that starts anew: emptied, its rows saved, above all that was ever given."""

import logging
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from connectors.agent.contract import StoreBusyError
from connectors.agent.new_start import NewStart
from connectors.agent.own_topic import OwnTopic
from connectors.postgres.store import PostgresStore
from streaming.core.model.change import Change
from streaming.core.model.csn import parse
from streaming.core.records.record import Applied
from tests.connectors.conformance.hub_batches import apply, item, journalled
from tests.connectors.conformance.postgres_database import PostgresDatabase

LATE_CSN = f"{4_000_000_000:08x}000500070000"
SAME = '{"id":"1","name":"same","price":"2.50"}'


def start() -> NewStart:
    """Where it starts, by what its topics hold."""
    past = OwnTopic("old session")
    past.csn, past.epoch, past.opno = LATE_CSN, 30, 12
    return NewStart(past, 9, 5)


@pytest.fixture
def store(attached: PostgresDatabase) -> Iterator[PostgresStore]:
    """A store in a session, of a database with two rows that wait to be published."""
    opened = attached.store()
    assert isinstance(opened, PostgresStore)
    opened.start_session("s1", None, lost=False)
    attached.write("INSERT INTO items VALUES (1, 'same', 2.50), (2, 'own', NULL)")
    yield opened
    opened.close()


def test_rows_that_the_hub_does_not_have_so_are_saved(
    attached: PostgresDatabase, store: PostgresStore, tmp_path: Path
) -> None:
    """What waited to be published is gone with them; the hub fills the database."""
    apply(store, item(3, "of the hub"))
    path = tmp_path / "saved.jsonl"

    assert store.reinit(start(), lambda _table, _key, image: image == SAME, path) == 2

    saved = [orjson.loads(line) for line in path.read_text().splitlines()]
    assert saved == [
        {"table": "items", "key": {"id": "2"}, "row": {"id": "2", "name": "own", "price": None}},
        {
            "table": "items",
            "key": {"id": "3"},
            "row": {"id": "3", "name": "of the hub", "price": None},
        },
    ]
    assert attached.rows() == []
    assert journalled(attached.store()) == []


def test_rows_are_not_deleted_if_they_cannot_be_saved(
    attached: PostgresDatabase, store: PostgresStore, tmp_path: Path
) -> None:
    """The disk is full, or the file is there already: nothing has happened."""
    path = tmp_path / "saved.jsonl"
    path.write_text("of an earlier run")

    with pytest.raises(FileExistsError):
        store.reinit(start(), lambda *_: False, path)

    assert len(attached.rows()) == 2
    assert len([one for one in journalled(store) if isinstance(one, Change)]) == 2


def test_the_next_hello_says_so_until_a_batch_is_applied(
    attached: PostgresDatabase, store: PostgresStore, tmp_path: Path
) -> None:
    """An agent that dies before that must not look like one that has everything."""
    store.reinit(start(), lambda *_: True, tmp_path / "saved")

    again = attached.store()
    hello = again.start_session("s2", "5f00", lost=True)
    assert (hello.reinit, hello.own, hello.lost, hello.covers) == (True, None, False, 0)
    assert hello.epoch == 36
    assert attached.store().start_session("s3", None, lost=False).reinit is True
    filled = attached.store()
    filled.start_session("s4", None, lost=False)
    apply(filled, item(1, "of the hub"))

    hello = filled.start_session("s5", None, lost=False)
    assert (hello.reinit, hello.covers) == (None, 4)
    assert filled.compared_up_to()[0] == 9


def test_what_is_written_then_is_above_all_that_was_ever_given(
    attached: PostgresDatabase,
    store: PostgresStore,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """CSN, opno and epoch; and once it is published, the hello is an ordinary one."""
    store.reinit(start(), lambda *_: True, tmp_path / "saved")

    with caplog.at_level(logging.WARNING):
        again = attached.store()
    again.start_session("s2", None, lost=False)
    attached.write("INSERT INTO items VALUES (5, 'new', NULL)")
    entries = again.unpublished(100, 10**6)
    (change,) = [one.record for one in entries if isinstance(one.record, Change)]
    assert change.csn > LATE_CSN
    assert parse(change.csn).time_s >= 4_000_000_000
    assert (change.opno, change.epoch) == (13, 37)
    assert not [one for one in entries if isinstance(one.record, Applied)]
    again.mark_published(entries[-1])

    assert again.start_session("s3", change.csn, lost=False).reinit is None
    assert caplog.text == ""


def test_it_waits_for_nobody_for_ever(
    attached: PostgresDatabase,
    store: PostgresStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A client's open transaction would write behind it what was never told."""
    monkeypatch.setattr("connectors.postgres.install.reinit.WAIT_S", 1)

    with (
        attached.holding("INSERT INTO items VALUES (7, 'open', NULL)"),
        pytest.raises(StoreBusyError, match="lock timeout"),
    ):
        store.reinit(start(), lambda *_: True, tmp_path / "saved")
    assert len(attached.rows()) == 3
