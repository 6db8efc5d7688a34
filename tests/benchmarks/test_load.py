"""A benchmark's input must be what an agent writes: else it measures another hub's way."""

import json
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from connectors import wire
from connectors.sqlite.connections import connect
from connectors.sqlite.store import SqliteStore
from connectors.sqlite.transaction import transaction
from streaming.core.model.change import Change
from streaming.core.records.record import Commit, Record
from tests.benchmarks.load import SHARED_ROWS, TABLE, Load, Spelling, session_of

LOAD = Load(1_700_000_000)


@pytest.mark.parametrize("size", [1, 4])
def test_the_records_are_those_of_an_agent(tmp_path: Path, size: int) -> None:
    """Before-image, opno, session and the order of members cost the hub time, as in production."""
    load = replace(LOAD, transaction=size)

    written = list(load.records("alpha", 0, 4))

    assert written == captured(tmp_path / "alpha.db", load)


def captured(path: Path, load: Load) -> list[str]:
    """What the agent of a SQLite replica publishes of the load's first four updates."""
    changes = [json.loads(load.change("alpha", n)) for n in range(4)]
    with closing(connect(path)) as client:
        client.execute(
            "CREATE TABLE account"
            " (id INTEGER PRIMARY KEY, owner TEXT, balance TEXT, sent_ms INTEGER)"
        )
        befores = [tuple(one["before"].values()) for one in changes]
        client.executemany("INSERT INTO account VALUES (?, ?, ?, ?)", befores)
        with closing(SqliteStore.open(path, 1, [TABLE], rows_are_shared=True)) as store:
            with transaction(client) if load.transaction > 1 else nullcontext():
                for one in changes:
                    client.execute(
                        "UPDATE account SET balance = ? WHERE id = ?",
                        (one["after"]["balance"], one["key"]["id"]),
                    )
            records = [entry.record for entry in store.unpublished(100, 10**6)]
    return [wire.encode(session_of("alpha"), numbered(record, load)).decode() for record in records]


def numbered(record: Record, load: Load) -> Record:
    """The record with the load's CSNs in place of those of the clock."""
    if isinstance(record, Commit):
        return Commit(load.csn(1, 0))
    assert isinstance(record, Change)
    assert record.opno is not None
    csn = load.csn(1, record.opno - 1)
    return record._replace(csn=csn, prim_csn=record.prim_csn and load.csn(1, 0))


def test_a_foreign_record_has_the_same_members() -> None:
    """Only how it is written differs, or the two speeds could not be compared."""
    canonical = LOAD.change("alpha", 7)

    foreign = replace(LOAD, spelling=Spelling.FOREIGN).change("alpha", 7)

    assert json.loads(foreign) == json.loads(canonical)
    assert list(json.loads(foreign)) == list(reversed(json.loads(canonical)))
    assert foreign == json.dumps(json.loads(foreign))


@pytest.mark.parametrize("size", [1, 4])
def test_the_shared_rows_are_as_many_as_configured(size: int) -> None:
    """They make the conflicts, which a measure names in percent."""
    load = Load(0, 150, transaction=size)

    shared = sum(load.row(1, n) < SHARED_ROWS for n in range(4_000))

    assert shared == 600
