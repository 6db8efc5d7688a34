"""Rows that exist nowhere else, saved before the agent overwrites or deletes them.

They are saved in the database, by the transaction that overwrites them: a crash leaves both or
neither. Each value is kept as PostgreSQL writes it. What the log has is told to the hub, so two
kinds of rows are at risk: one that fits no record, and one that the hub does not have and deletes
in a copy of the table, because it has forgotten it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import orjson

from connectors.agent.applying import EXTRANEOUS
from connectors.agent.contract import SavedRow
from connectors.agent.images import OVERHEAD_BYTES
from connectors.postgres.apply.rows import RowTexts, RowWriter
from connectors.postgres.log.captured import row_image
from connectors.postgres.sql import Session, name
from connectors.postgres.values.image import image
from streaming.core.model.values import json_text
from streaming.core.records.record import Item

NOT_AT_THE_HUB = "the hub does not have the row, and deletes it in a copy of the table"
"""Why an extraneous row is saved: the hub has forgotten it, or another replica has deleted it."""

IsWaiting = Callable[[str, str, str], bool]
"""Return whether this image of a row waits to be published: table, key, image."""

_JSON_BYTES = 6
"""A character of PostgreSQL's text takes no more bytes in JSON than this times its own."""
_COMPRESSED = 255
"""A stored value is at most so many times as long when it is read (lz4; pglz: 91)."""
_VALUE_BYTES = 20
"""More than the punctuation of a column takes on the wire, once in the key, once in the image."""

_SAVE = """INSERT INTO slackwater.saved ("table", key, why, row)
SELECT x."table", x.key, x.why, x.row FROM json_to_recordset(%s)
  AS x("table" text, key text, why text, row json) RETURNING id, "table", key"""


@dataclass(frozen=True, slots=True)
class ServerRowAtRisk:
    """A row that a batch writes, as it was before, and where it is saved."""

    id: int
    row: SavedRow
    texts: RowTexts


def save(
    session: Session,
    writers: Mapping[str, RowWriter],
    items: Sequence[Item],
    record_bytes: int,
    is_waiting: IsWaiting,
) -> list[ServerRowAtRisk]:
    """Save the rows that these items write and that are nowhere else, before they are written."""
    found = dict[tuple[str, str], tuple[str, RowTexts]]()
    for table in sorted({item.table for item in items} & writers.keys()):
        writer = writers[table]
        of_table = [item for item in items if item.table == table]
        for key, why, row in _large(session, writer, of_table, record_bytes):
            found[table, key] = why, row
        for key, row in _extraneous(session, writer, of_table, is_waiting):
            found.setdefault((table, key), (NOT_AT_THE_HUB, row))
    return _saved(session, found) if found else []


def forget_standing(
    session: Session, writers: Mapping[str, RowWriter], at_risk: Iterable[ServerRowAtRisk]
) -> tuple[SavedRow, ...]:
    """Forget the saved rows that still stand, because they were refused; return the others."""
    gone = list[SavedRow]()
    for one in at_risk:
        writer = writers[one.row.table]
        if writer.rows(session, [writer.key(one.row.key)]) == [one.texts]:
            session.execute("DELETE FROM slackwater.saved WHERE id = %s", (one.id,))
        else:
            gone.append(one.row)
    return tuple(gone)


def faults_of(writer: RowWriter, row: RowTexts, record_bytes: int) -> tuple[str, ...]:
    """Why no replica can take a row; empty: each can."""
    return row_image(writer.table, row, record_bytes).faults


def count(session: Session) -> int:
    """How many rows are saved."""
    (found,) = session.execute("SELECT count(*) FROM slackwater.saved").fetchone() or (0,)
    return int(found)


def _large(
    session: Session, writer: RowWriter, items: Sequence[Item], record_bytes: int
) -> Iterator[tuple[str, str, RowTexts]]:
    """Key, faults and texts of the rows that fit no record; the server looks for what may not.

    Rows that are to be written are locked first, or one of them could become large meanwhile.
    """
    names = sum(2 * (len(json_text(one)) + _VALUE_BYTES) for one in writer.columns)
    least = max((record_bytes - OVERHEAD_BYTES - names) // _JSON_BYTES, 0)
    stored = " + ".join(f"coalesce(pg_column_size(t.{name(one)}), 0)" for one in writer.columns)
    is_large = (
        f"CASE WHEN {stored} > {least // _COMPRESSED} THEN"
        f" octet_length(CAST(t.* AS text)) > {least} ELSE false END"
    )
    keys = None if any(item.is_of_table for item in items) else _keys(writer, items)
    if keys is None or writer.lock(session, keys, is_large):
        for row in writer.rows(session, keys, is_large):
            faults = faults_of(writer, row, record_bytes)
            if faults:
                yield _key_of(writer, row), "; ".join(faults), row


def _extraneous(
    session: Session, writer: RowWriter, items: Sequence[Item], is_waiting: IsWaiting
) -> Iterator[tuple[str, RowTexts]]:
    """Key and texts of the rows that go with a range, and do not wait to be published whole."""
    table = writer.table
    is_whole = writer.server.columns.keys() == table.columns.keys()  # or others are only here
    extraneous = [item for item in items if item.cause == EXTRANEOUS]
    for row in writer.rows(session, _keys(writer, extraneous)) if extraneous else []:
        key = _key_of(writer, row)
        if not (is_whole and is_waiting(table.name, key, image(table.columns, row).text)):
            yield key, row


def _keys(writer: RowWriter, items: Iterable[Item]) -> list[RowTexts]:
    """The keys of these items that the table can have, each once; others are refused."""
    return [texts for key in {item.key for item in items} if (texts := writer.key_or_none(key))]


def _key_of(writer: RowWriter, row: RowTexts) -> str:
    return writer.key_image([row[column] for column in writer.table.key])


def _saved(
    session: Session, rows: Mapping[tuple[str, str], tuple[str, RowTexts]]
) -> list[ServerRowAtRisk]:
    values = [
        {"table": table, "key": key, "why": why, "row": dict(row)}
        for (table, key), (why, row) in rows.items()
    ]
    given = orjson.dumps(values).decode()
    return [
        ServerRowAtRisk(id_, SavedRow(table, key, rows[table, key][0]), rows[table, key][1])
        for id_, table, key in session.execute(_SAVE.encode(), (given,)).fetchall()
    ]
