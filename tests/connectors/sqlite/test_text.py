"""Text that is no valid Unicode: it stays where it is, is named, and is no other text elsewhere."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from connectors.agent.contract import JournalEntry
from connectors.sqlite.check import check_database
from connectors.sqlite.journal.snapshot import journal_snapshot
from connectors.sqlite.store import SqliteStore
from streaming.core.delivery.consumer import ApplyBatch
from streaming.core.model.change import Change
from streaming.core.model.table import ColumnType, Table
from streaming.core.records.record import Item, ItemType, RangeItem, Refused
from tests.connectors.sqlite.sqlite_replica import RID

NOTES = Table(
    "notes", ("k",), {"k": ColumnType.TEXT, "v": ColumnType.TEXT, "n": ColumnType.DECIMAL}
)
CREATE = "CREATE TABLE notes (k TEXT NOT NULL PRIMARY KEY, v TEXT, n TEXT)"
INVALID = {
    "UTF-8": ["62ff", "62fe", "c080", "eda080", "6100ff", "f4908080"],
    "UTF-16le": ["00d8", "01d8", "00d86100", "01d86100", "610000dc", "ffff"],
    "UTF-16be": ["d800", "d801", "d8000061", "d8010061", "0061dc00", "ffff"],
}
"""Encoding -> texts that the wire cannot have, as bytes in hexadecimal digits.

Some of each are one text after SQLite or a client has replaced what is not valid in them.
"""
VALID = {
    "UTF-8": ["", "61", "efbfbd", "f09f9880", "610062", "0061"],
    "UTF-16le": ["", "6100", "fdff", "3dd800de", "610000006200", "00006100"],
    "UTF-16be": ["", "0061", "fffd", "d83dde00", "006100000062", "00000061"],
}
"""Encoding -> texts that it can have: also the mark U+FFFD itself, and with U+0000 inside."""
ENCODINGS = sorted(INVALID)
INVALID_TEXTS = [(encoding, digits) for encoding in ENCODINGS for digits in INVALID[encoding]]


@dataclass(frozen=True, slots=True)
class Notes:
    """A database of notes in one encoding, and a client that writes bytes as text."""

    path: Path
    client: sqlite3.Connection

    def open(self) -> SqliteStore:
        """The database as its agent opens it."""
        return SqliteStore.open(self.path, RID, [NOTES])

    def write(
        self, *, key: str | None = None, value: str | None = None, n: str | None = None
    ) -> None:
        """Insert a row of these texts; hexadecimal digits of their bytes."""
        columns = [f"CAST(x'{key}' AS TEXT)" if key is not None else "'k'"]
        columns += ["NULL" if one is None else f"CAST(x'{one}' AS TEXT)" for one in (value, n)]
        self.client.execute(f"INSERT INTO notes VALUES ({', '.join(columns)})")

    def keys(self) -> set[str]:
        """The bytes of every key."""
        rows = self.client.execute("SELECT lower(hex(CAST(k AS BLOB))) FROM notes")
        return {digits for (digits,) in rows}


@contextmanager
def notes(path: Path, encoding: str) -> Iterator[Notes]:
    """A new database of this encoding."""
    with closing(sqlite3.connect(path, isolation_level=None)) as client:
        client.execute(f"PRAGMA encoding = '{encoding}'")
        client.execute(CREATE)
        yield Notes(path, client)


@pytest.fixture(params=ENCODINGS)
def encoding(request: pytest.FixtureRequest) -> str:
    """Each encoding that SQLite has."""
    return str(request.param)


@pytest.fixture
def made(tmp_path: Path, encoding: str) -> Iterator[Notes]:
    """A database of notes."""
    with notes(tmp_path / "notes.db", encoding) as database:
        yield database


def entries(store: SqliteStore) -> list[JournalEntry]:
    """The changes in the journal."""
    return [e for e in store.unpublished(10**6, 10**9) if isinstance(e.record, Change)]


def change_of(entry: JournalEntry) -> Change:
    """The change of an entry."""
    assert isinstance(entry.record, Change)
    return entry.record


def apply(store: SqliteStore, *items: Item | RangeItem) -> tuple[Refused, ...]:
    """What the database refuses of a batch."""
    store.start_session("s", None, lost=False)
    batch = ApplyBatch(store.position, 1, items)
    return store.apply(batch, 1, 1_700_000_000_000).refused


def test_keys_that_are_no_unicode_are_named_and_none_is_another(made: Notes, encoding: str) -> None:
    """With the mark U+FFFD in their places two rows would be one row elsewhere, in silence."""
    with closing(made.open()) as store:
        for digits in INVALID[encoding]:
            made.write(key=digits)
        found = entries(store)

    assert len({change_of(entry).key for entry in found}) == len(INVALID[encoding])
    for entry, digits in zip(found, INVALID[encoding], strict=True):
        assert entry.faults == (
            f"k: the text of the bytes x'{digits}' is no valid Unicode: write text that is",
        )
        change_of(entry).key.encode()
        json.loads(change_of(entry).after or "")


def test_valid_text_is_carried_whatever_it_holds(made: Notes, encoding: str) -> None:
    """The mark itself, and U+0000, are characters like others."""
    with closing(made.open()) as store:
        for digits in VALID[encoding]:
            made.write(key=digits, value=digits)
        found = entries(store)

    assert [entry.faults for entry in found] == [()] * len(found)
    name = "utf-8" if encoding == "UTF-8" else encoding
    for entry, digits in zip(found, VALID[encoding], strict=True):
        text = bytes.fromhex(digits).decode(name)
        assert json.loads(change_of(entry).key) == {"k": text}
        assert json.loads(change_of(entry).after or "")["v"] == text


@pytest.mark.parametrize(("encoding", "digits"), INVALID_TEXTS)
def test_a_value_that_is_no_unicode_is_named_and_its_correction_carried(
    tmp_path: Path, encoding: str, digits: str
) -> None:
    """Also as the text of a number, and by an update: no statement fails, the agent goes on."""
    with notes(tmp_path / "notes.db", encoding) as made, closing(made.open()) as store:
        made.write(value=digits)
        made.client.execute(f"UPDATE notes SET v = 'good', n = CAST(x'{digits}' AS TEXT)")
        made.client.execute("UPDATE notes SET n = '1.50'")
        bad, worse, good = entries(store)

    assert [len(entry.faults) for entry in (bad, worse, good)] == [1, 1, 0]
    assert (bad.faults[0][:3], worse.faults[0][:3]) == ("v: ", "n: ")
    assert json.loads(change_of(good).before or "") == {"k": "k", "v": "good"}
    assert json.loads(change_of(good).after or "") == {"k": "k", "v": "good", "n": "1.50"}


def test_a_number_does_not_end_at_a_character_zero(made: Notes) -> None:
    """SQLite's functions do not look behind it, and the record would be no JSON."""
    with closing(made.open()) as store:
        made.client.execute("INSERT INTO notes VALUES ('k', NULL, '1.5' || char(0) || 'x')")
        (entry,) = entries(store)

    assert entry.faults[0].startswith(r"n: the text '1.5\x00x' is no decimal")


def test_rows_from_before_are_told_each_once(made: Notes, encoding: str) -> None:
    """A range goes on behind its last key, which no function of SQL may change."""
    wanted = INVALID[encoding] + VALID[encoding]
    for digits in wanted:
        made.write(key=digits)

    with closing(made.open()) as store:
        for _ in range(2 * len(wanted)):
            journal_snapshot(store.connection, store.writers, 1)
        found = entries(store)

    assert len(found) == len({change_of(entry).key for entry in found}) == len(wanted)
    assert sum(bool(entry.faults) for entry in found) == len(INVALID[encoding])


def test_what_the_hub_sends_touches_no_row_of_another_key(made: Notes, encoding: str) -> None:
    """A row with the mark U+FFFD is another row, and so is one that a range does not hold."""
    with closing(made.open()) as store:
        for digits in INVALID[encoding]:
            made.write(key=digits)
        key = '{"k":"b\ufffd"}'
        after = '{"k":"b\ufffd","v":null,"n":null}'
        item = Item(ItemType.REFRESH, "notes", key, "insert", after, None, 0)
        apply(store, RangeItem("notes", None, None, 1), item)

    there = "62efbfbd" if encoding == "UTF-8" else "b\ufffd".encode(encoding).hex()
    assert made.keys() == {*INVALID[encoding], there}


def test_a_number_that_is_no_unicode_is_written_over(made: Notes, encoding: str) -> None:
    """Whether it means what is written is asked of a function, which no such text may stop."""
    with closing(made.open()) as store:
        made.write(n=INVALID[encoding][0])
        after = '{"k":"k","v":null,"n":"1.50"}'
        refused = apply(
            store, Item(ItemType.REFRESH, "notes", '{"k":"k"}', "update", after, None, 0)
        )

    assert refused == ()
    assert made.client.execute("SELECT n FROM notes").fetchall() == [("1.50",)]


def test_the_check_names_rows_whose_text_is_no_unicode(made: Notes, encoding: str) -> None:
    """Before an agent is started, each by its own key."""
    for digits in INVALID[encoding]:
        made.write(key=digits)

    found = check_database(made.path, [NOTES])

    assert len(set(found.row_faults)) == len(INVALID[encoding])
    assert all("is no valid Unicode" in fault for fault in found.row_faults)


def test_what_a_file_in_utf16_cannot_hold_is_refused(tmp_path: Path) -> None:
    """SQLite would store the mark U+FFFD in the place of U+FFFF, and the row would differ."""
    with notes(tmp_path / "notes.db", "UTF-16le") as made, closing(made.open()) as store:
        after = '{"k":"\uffff","v":null,"n":null}'
        item = Item(ItemType.REFRESH, "notes", '{"k":"\uffff"}', "insert", after, None, 0)
        (refused,) = apply(store, item)

        assert (refused.code, made.keys()) == ("type", set())
    assert "U+FFFF" in refused.text
