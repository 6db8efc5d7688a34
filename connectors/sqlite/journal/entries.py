"""The journal: a replica's records in commit order, up to an id in the topic.

Of the published rows the last ones stay. What was trimmed was in the topic, so for a comparison
with the topic it is enough to know the largest CSN and opno of it.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import astuple, dataclass

from connectors.agent.contract import JournalEntry
from connectors.agent.images import WireImage, null_faults
from connectors.sqlite import sql
from connectors.sqlite.values.image import wire_image
from streaming.core.model.change import Change, Op
from streaming.core.model.ruv import Ruv, parse_ruv
from streaming.core.model.truncation import ALL_KEYS
from streaming.core.records.record import Applied, Commit, Record, Refused, Snapshot

COLUMNS = (
    'id, kind, csn, prim_csn, epoch, "table", key, op, before, after, opno, session, covers,'
    " generation, ruv, hub_epoch, code, text, snapshot, rows"
)


@dataclass(frozen=True, slots=True)
class JournalBound:
    """How many published rows stay, and how many more there may be until they are trimmed."""

    kept: int = 1_000
    step: int = 1_000


JOURNAL_BOUND = JournalBound()
"""The bound without a setting."""


def unpublished(
    connection: sqlite3.Connection, rid: int, rows_max: int, bytes_max: int
) -> list[JournalEntry]:
    """The next rows that are not yet known to be in the topic, in commit order.

    At most `rows_max`, and no further row once their images exceed `bytes_max`.
    """
    entries, size = list[JournalEntry](), 0
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM _slackwater_journal"  # noqa: S608 a constant
        " WHERE id > (SELECT published FROM _slackwater_position) ORDER BY id LIMIT ?",
        (rows_max,),
    )
    with closing(rows):
        for row in rows:
            entries.append(_entry(row, rid))
            size += sum(len(text) for text in row[8:10] if text)
            if size > bytes_max:
                break
    return entries


def backlog(connection: sqlite3.Connection) -> int:
    """How many entries are not yet known to be in the topic; rolled back ones may count."""
    (count,) = connection.execute(
        "SELECT max(0, ifnull((SELECT max(id) FROM _slackwater_journal), 0) - published)"
        " FROM _slackwater_position"
    ).fetchone()
    return int(count)


def changes(connection: sqlite3.Connection, rid: int) -> Iterator[Change]:
    """Every change in the journal, in commit order."""
    for entry in changes_behind(connection, rid, 0, None):
        if isinstance(entry.record, Change):
            yield entry.record


FAULTY = """(instr(key, ':null') OR instr(key || ifnull(after, ''), '"as":"')
  OR instr(key || ifnull(after, ''), '{"bytes":"')
  OR key || ifnull(after, '') GLOB '*[^ -~]*')"""
"""A condition that every change with faults fulfils: they are nulls, in objects, or no ASCII."""


def changes_behind(
    connection: sqlite3.Connection, rid: int, first: int, last: int | None, where: str = "1"
) -> Iterator[JournalEntry]:
    """The changes behind `first`, up to `last` (None: to the end), in commit order."""
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM _slackwater_journal"  # noqa: S608 constants
        f" WHERE id > ?1 AND (?2 IS NULL OR id <= ?2) AND kind = 'change' AND {where} ORDER BY id",
        (first, last),
    )
    with closing(rows):
        for row in rows:
            yield _entry(row, rid)


def last_changes(connection: sqlite3.Connection, table: str) -> dict[str, int]:
    """The captured key of each row that the journal has -> the id of its last change there."""
    rows = connection.execute(
        "SELECT key, id FROM _slackwater_journal WHERE kind = 'change' AND \"table\" = ?"
        " ORDER BY id",
        (table,),
    )
    return dict(rows)


def image_of(connection: sqlite3.Connection, change: int) -> str | None:
    """The image of the row behind a change, as it was captured; None: it is deleted."""
    query = "SELECT after FROM _slackwater_journal WHERE id = ?"
    (image,) = connection.execute(query, (change,)).fetchone()
    return None if image is None else str(image)


def find(connection: sqlite3.Connection, record: Change | Commit | Snapshot) -> int | None:
    """The id of the journal row with the same content; 0: it was trimmed, None: there is none."""
    if isinstance(record, Snapshot):
        row = connection.execute(
            "SELECT max(id) FROM _slackwater_journal WHERE kind = 'snapshot' AND op = ?"
            ' AND snapshot = ? AND "table" IS ?',
            (record.phase, record.id, record.table),
        ).fetchone()
        return None if row[0] is None else int(row[0])
    if isinstance(record, Commit):
        row = connection.execute(
            "SELECT id FROM _slackwater_journal WHERE kind = 'commit' AND prim_csn = ?",
            (record.prim_csn,),
        ).fetchone()
        return None if row is None else int(row[0])
    row = connection.execute(
        f"SELECT {COLUMNS} FROM _slackwater_journal WHERE kind = 'change' AND csn = ?",  # noqa: S608
        (record.csn,),
    ).fetchone()
    if row is None:
        (trimmed,) = connection.execute("SELECT trimmed_csn FROM _slackwater_position").fetchone()
        return 0 if trimmed is not None and record.csn <= trimmed else None
    found = _entry(row, record.rid)
    return found.id if found.record == record else None


def holds(connection: sqlite3.Connection, entry: JournalEntry, rid: int) -> bool:
    """Return whether the journal has this entry, as it was read."""
    query = f"SELECT {COLUMNS} FROM _slackwater_journal WHERE id = ?"  # noqa: S608 a constant
    row = connection.execute(query, (entry.id,)).fetchone()
    return row is not None and _entry(row, rid) == entry


def mark_published(connection: sqlite3.Connection, id_: int, bound: JournalBound) -> None:
    """Note that the topic holds the journal up to this row, and trim what is behind the bound.

    In the caller's transaction, which has listed what of it is not carried.
    """
    connection.execute(
        "UPDATE _slackwater_position SET published = max(published, ?1), noted = max(noted, ?1)",
        (id_,),
    )
    _trim(connection, bound)


def publish_again(connection: sqlite3.Connection, behind: str) -> bool:
    """Count what is behind this own CSN as not published, its whole transaction included.

    False: some of that was trimmed. In the caller's transaction.
    """
    first, prim, trimmed = connection.execute(
        "SELECT (SELECT min(id) FROM _slackwater_journal WHERE kind = 'change' AND csn > ?1),"
        " (SELECT prim_csn FROM _slackwater_journal WHERE kind = 'change' AND csn = ?1),"
        " ifnull(trimmed_csn, '') FROM _slackwater_position",
        (behind,),
    ).fetchone()
    if trimmed > behind or (prim is not None and trimmed >= prim):
        return False
    if prim is not None:
        (first,) = connection.execute(
            "SELECT min(id) FROM _slackwater_journal WHERE kind = 'change' AND csn = ?", (prim,)
        ).fetchone()
    if first is not None:
        connection.execute(
            "UPDATE _slackwater_position SET published = min(published, ?)", (first - 1,)
        )
    return True


def _trim(connection: sqlite3.Connection, bound: JournalBound) -> None:
    """Delete published rows from the bound on, in steps; the last one stays, as ids go on there."""
    first, published = connection.execute(
        "SELECT (SELECT min(id) FROM _slackwater_journal), published FROM _slackwater_position"
    ).fetchone()
    last = published - max(bound.kept, 1)
    if first is not None and last - first + 1 >= bound.step:
        _delete(connection, min(last, first + 2 * bound.step))


def _delete(connection: sqlite3.Connection, last: int) -> None:
    csn, opno = connection.execute(
        "SELECT max(csn), max(opno) FROM _slackwater_journal WHERE kind = 'change' AND id <= ?",
        (last,),
    ).fetchone()
    if csn is not None:
        connection.execute(
            "UPDATE _slackwater_position SET trimmed_csn = max(coalesce(trimmed_csn, ''), ?),"
            " trimmed_opno = max(trimmed_opno, ?)",
            (csn, opno),
        )
    connection.execute("DELETE FROM _slackwater_journal WHERE id <= ?", (last,))


def remove_unpublished_applied(connection: sqlite3.Connection) -> None:
    """Remove the unpublished `applied` rows: a hello contains what they do."""
    connection.execute(
        "DELETE FROM _slackwater_journal WHERE kind = 'applied'"
        " AND id > (SELECT published FROM _slackwater_position)"
    )


def write_applied(
    connection: sqlite3.Connection, session: str, applied: Applied, hub_epoch: int
) -> None:
    """Journal that a batch was applied, at the end of its transaction."""
    connection.execute(
        "INSERT INTO _slackwater_journal"  # noqa: S608 NOW_MS is a constant
        " (at, kind, epoch, session, covers, generation, ruv, hub_epoch)"
        f" VALUES ({sql.NOW_MS}, 'applied', ?, ?, ?, ?, ?, ?)",
        (
            applied.epoch,
            session,
            applied.covers,
            applied.generation,
            ruv_text(applied.ruv),
            hub_epoch,
        ),
    )


def write_refused(
    connection: sqlite3.Connection, at_ms: int, epoch: int, session: str, refused: Refused
) -> None:
    """Journal that the database refused an item."""
    connection.execute(
        "INSERT INTO _slackwater_journal"
        ' (at, kind, epoch, session, hub_epoch, csn, "table", key, code, text)'
        " VALUES (?, 'refused', ?, ?, ?, ?, ?, ?, ?, ?)",
        (at_ms, epoch, session, *astuple(refused)),
    )


def ruv_text(ruv: Ruv) -> str:
    """A RUV as it is stored: an element a line."""
    return "\n".join(ruv.text())


def ruv_of(text: str) -> Ruv:
    """A RUV from its stored text."""
    return parse_ruv(text.splitlines())


def _entry(row: tuple[object, ...], rid: int) -> JournalEntry:
    """A row of the journal as a record.

    The delete of a key that no replica can take is published by itself: no other replica has the
    row, and the transaction of which it is a part would go to quarantine with it.
    """
    (id_, kind, csn, prim_csn, epoch, table, key, op, before, after, opno, session) = row[:12]
    (covers, generation, ruv, hub_epoch, code, text, snapshot, rows) = row[12:]
    record: Record
    faults, within = tuple[str, ...](), None
    match kind:
        case "change":
            in_key = wire_image(ALL_KEYS if op == Op.TRUNCATE else str(key))
            old, new = _image(before), _image(after)
            record = Change(
                str(csn),
                rid,
                _int(epoch),
                str(table),
                in_key.text,
                Op(str(op)),
                new.text if new else None,
                old.known if old else None,  # a column that is absent is unknown
                None if prim_csn is None else str(prim_csn),
                _int(opno),
                snapshot=_text(snapshot),
            )
            faults = null_faults(in_key.text) + (new or in_key).faults
            if faults and record.op is Op.DELETE:
                record, within = record._replace(prim_csn=None), record.prim_csn
        case "commit":
            record = Commit(str(prim_csn))
        case "applied":
            known = ruv_of(str(ruv))
            record = Applied(_int(epoch), _int(covers), _int(generation), known, _int(hub_epoch))
        case "snapshot":
            count = None if rows is None else _int(rows)
            record = Snapshot(str(op), str(snapshot), _text(table), count)
        case _:
            record = Refused(_int(hub_epoch), str(csn), str(table), str(key), str(code), str(text))
    applied_in = str(session) if kind == "applied" else None
    return JournalEntry(_int(id_), record, applied_in, faults, within)


def _int(value: object) -> int:
    assert isinstance(value, int)  # noqa: S101 the column is an INTEGER
    return value


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _image(captured: object) -> WireImage | None:
    return None if captured is None else wire_image(str(captured))
