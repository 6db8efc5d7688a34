"""The rows of records in quarantine: which differ at their origin, which hold a newer write.

In the SQL `t` is `quarantine`, `c` the changelog, and of _TAKEN_HELLOS `t` is `events`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from checkpoints.query import among, each
from checkpoints.reading.new_starts import TakenHello, last_starts
from checkpoints.reading.reader import Reader
from checkpoints.reading.sent_ranges import SentRanges
from checkpoints.tables import TableName
from streaming.core.model.change import Op
from streaming.core.model.foreign_json import loads
from streaming.core.model.table import Table
from streaming.core.records.images import row_named
from streaming.core.records.record import writes_rows

_NEVER = (0, 0)

_UNNAMED = """
    SELECT rid, reason, batch, kind, count(*) AS count, min(id) AS id, min("time") AS since
    FROM ({kept}) AS k WHERE coalesce(k."table", '') = '' AND ({still})
    GROUP BY rid, reason, batch, kind{each} ORDER BY batch, rid, id
"""
"""The kept records that name no table, counted; `each`: ", id" for one by one."""

_NOT_SET_RIGHT = """
    SELECT k.* FROM (SELECT * FROM ({kept}) WHERE coalesce("table", '') <> '') AS k
    LEFT ANTI JOIN (
        SELECT * FROM c WHERE c.batch BETWEEN {since} AND {batch}
            AND (c.kind = 'refresh' OR c.verdict IN ('accepted', 'adopted'))
    ) AS c ON c."table" = k."table" AND c.key = k.key AND c.batch >= k.batch AND (
        (c.kind = 'change' AND {is_later})
        OR ((k.reason <> 'column' OR c.op = 'delete') AND (
            (c.kind = 'refresh' AND c."to" = k.rid)
            OR (c.kind = 'change' AND c.rid <> k.rid AND c.verdict = 'accepted' AND ({receives}))
        ))
    )
    LEFT ANTI JOIN (
        SELECT c.* FROM c WHERE c.batch BETWEEN {since} AND {batch}
            AND c.op = 'truncate' AND c.verdict = 'accepted'
    ) AS c ON c."table" = k."table" AND c.batch >= k.batch AND (
        ({is_later}) OR (c.rid <> k.rid AND ({receives}))
    )
"""
"""The kept records whose row was neither sent to the origin nor written by it since."""

_IS_LATER = """c.rid = k.rid AND c."offset" > k."offset"
    AND (k.csn IS NULL OR c.csn > k.csn)"""
"""The origin wrote it later: behind it in its topic, and above it."""

_WRITTEN_SINCE = """
    WITH k AS ({kept}), written AS (
        SELECT rid, batch, "offset", csn, "table", key, op FROM c
        WHERE c.batch <= {batch} AND c.kind = 'change' AND c.verdict IN ('accepted', 'adopted')
    )
    SELECT k.id FROM k JOIN written AS c ON c."table" = k."table" AND c.key = k.key
        WHERE {is_newer}
    UNION
    SELECT k.id FROM k JOIN written AS c ON c."table" = k."table" AND c.op = 'truncate'
        WHERE {is_newer}
"""
"""The records whose row holds a newer write."""

_IS_NEWER = """
    c.batch > k.batch OR (c.batch = k.batch AND c.rid = k.rid AND c."offset" > k."offset")
        OR (k.reason <> 'skew' AND c.csn > k.csn)
"""
"""A write came later, or has a larger CSN."""

_NOT_JUDGED = """
    LEFT ANTI JOIN (
        SELECT * FROM c
        WHERE c.batch <= {batch} AND c.kind = 'change' AND c.verdict <> 'quarantined'
    ) AS j ON j.csn = k.csn AND j.rid = k.rid AND k.reason = 'session'
"""
"""Behind that, where one is kept as `session`: not the changes that came in another record too."""

_NEWEST_OF_EACH_ROW = """
    SELECT * FROM (
        SELECT *, row_number() OVER (
                PARTITION BY rid, "table", key, CASE WHEN key IS NULL THEN id END
                ORDER BY batch DESC, "offset" DESC
            ) AS n, min("time") OVER (
                PARTITION BY rid, "table", key, CASE WHEN key IS NULL THEN id END
            ) AS since
        FROM ({left})
    ) WHERE n = 1 ORDER BY batch, rid, "offset"
"""
"""Of several records of a row the newest; without a key each record is a row of its own."""

_FIRST_KEPT = """
    SELECT min(batch) AS batch, max(reason = 'session') AS has_session
    FROM ({kept})
"""
"""The batch of the oldest record that is kept: what was before it sets nothing right."""

_TAKEN_HELLOS = """
    SELECT rid, batch, "offset", value FROM t
    WHERE batch BETWEEN {since} AND {batch} AND kind = 'hello' AND outcome = 'taken'
"""
"""The hellos since then; one may say that its database was emptied, or was restored."""


def quarantined_rows(
    reader: Reader, receives: Mapping[int, Iterable[str]], tables: Mapping[str, Table]
) -> Iterator[dict[str, Any]]:
    """Kept records of a named table whose row nothing has set right since; the oldest first.

    What sets it right: a refresh to the origin, or a range; a later accepted change of the origin,
    which holds the whole row; an accepted change of another replica, if the origin is sent it; a
    truncate like these; a new start of the origin on an emptied database, unless one from before
    was restored since. A record of an old session is harmless if its change was judged from another
    record. What has a column that was not configured only its origin sets right, or what deletes
    the row, for others lack the column. Of several records of a row the newest stands for all, and
    `since` is the time of the oldest.
    `receives`: rid -> the tables that it is sent; `tables`: those configured.
    """
    first = _first_kept(reader)
    if first is None:
        return
    since = first["batch"]
    sent = {rid: sorted(names) for rid, names in receives.items()}
    received = " OR ".join(
        f"(k.rid = {rid} AND c.{among('table', names)})" for rid, names in sent.items()
    )
    left = (_NOT_SET_RIGHT + (_NOT_JUDGED if first["has_session"] else "")).format(
        kept=_still_kept(reader),
        receives=received or "false",
        is_later=_IS_LATER,
        since=since,
        batch=reader.batch,
    )
    ranges = SentRanges(_sent_ranges(reader, since), sent, tables)
    starts = last_starts(_taken_hellos(reader, since))
    for row in _each(reader, _NEWEST_OF_EACH_ROW.format(left=left)):
        is_of_now = starts.get(row["rid"], _NEVER) <= (row["batch"], row["offset"])
        if is_of_now and not ranges.set_right(row) and not _deletes_nothing(row, tables):
            yield row


def unnamed_records(
    reader: Reader,
    receives: Mapping[int, Iterable[str]],
    tables: Mapping[str, Table],
    *,
    one_by_one: bool = False,
) -> Iterator[dict[str, Any]]:
    """Kept records that name no table and may have written any row; the oldest first.

    `count`: how many of a replica, reason and batch, of which `id` is one. What they wrote is
    unknown: only ranges over all rows of all tables set it right, or a new start on an emptied
    database.
    """
    first, table = _first_kept(reader), reader.table(TableName.QUARANTINE)
    if first is None or table is None:
        return
    sent = {rid: sorted(names) for rid, names in receives.items()}
    ranges = SentRanges(_sent_ranges(reader, first["batch"]), sent, tables)
    starts = last_starts(_taken_hellos(reader, first["batch"]))
    gone = [
        f'(k.rid = {rid} AND (k.batch < {batch} OR (k.batch = {batch} AND k."offset" < {offset})))'
        for rid, (batch, offset) in starts.items()
    ]
    still = f"NOT ({' OR '.join(gone) or 'false'})"
    sql = _UNNAMED.format(kept=_still_kept(reader), still=still, each=", id" if one_by_one else "")
    for row in each(table, sql):
        is_set_right = ranges.set_right({**row, "table": None, "key": None})
        if writes_rows(row["kind"]) and not is_set_right:
            yield row


def _first_kept(reader: Reader) -> dict[str, Any] | None:
    """The batch of the oldest record that is kept, and what is among those that are."""
    sql = _FIRST_KEPT.format(kept=_still_kept(reader))
    found = next(iter(reader.query(TableName.QUARANTINE, sql)), None)
    return None if found is None or found["batch"] is None else found


def written_since(reader: Reader) -> set[str]:
    """The ids of the kept records whose row was written anew since, by anybody."""
    kept = _still_kept(reader)
    sql = _WRITTEN_SINCE.format(kept=kept, is_newer=_IS_NEWER, batch=reader.batch)
    return {row["id"] for row in _each(reader, sql)}


def _each(reader: Reader, sql: str) -> Iterator[dict[str, Any]]:
    """The rows of a query over quarantine, `t`, and the changelog, `c`."""
    quarantine, log = reader.table(TableName.QUARANTINE), reader.table(TableName.CHANGELOG)
    return iter(()) if quarantine is None or log is None else each(quarantine, sql, c=log)


def _still_kept(reader: Reader) -> str:
    """A query for the records that are in quarantine, and what each was."""
    return reader.still_kept("t.kind, t.op")


def _taken_hellos(reader: Reader, since: int) -> Iterator[TakenHello]:
    sql = _TAKEN_HELLOS.format(since=since, batch=reader.batch)
    for row in reader.query(TableName.EVENTS, sql):
        said, place = loads(row["value"]), (row["batch"], row["offset"])
        yield TakenHello(row["rid"], *place, said["epoch"], bool(said.get("reinit")))


def _sent_ranges(reader: Reader, since: int) -> list[dict[str, Any]]:
    sql = f"""SELECT batch, "to" AS rid, "table", key_after, key FROM t
        WHERE batch BETWEEN {since} AND {reader.batch} AND kind = 'range'
        ORDER BY hub_epoch, place"""  # noqa: S608
    return reader.query(TableName.CHANGELOG, sql)


def _deletes_nothing(row: Mapping[str, Any], tables: Mapping[str, Table]) -> bool:
    """Return whether it deletes a key that names no row at the hub: nobody has such a row."""
    return row["op"] == Op.DELETE and names_no_row(row["table"], row["key"], tables)


def names_no_row(table: str | None, key: str | None, tables: Mapping[str, Table]) -> bool:
    """Return whether this is a key by which the hub cannot have a row of the table."""
    return bool(table in tables and table and key and row_named(table, key, tables) is None)
