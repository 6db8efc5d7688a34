"""The changes in quarantine that wait for a column, and which of them something newer replaced.

In the SQL `t` is `quarantine`, `c` the changelog; of _COMMITS `t` is `events`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from checkpoints.query import among, each
from checkpoints.reading.reader import Reader
from checkpoints.tables import TableName
from streaming.core.model.change import Op
from streaming.core.model.foreign_json import loads
from streaming.core.records.record import Reason

_WAITING = "SELECT * FROM ({kept}) WHERE reason = 'column' AND csn IS NOT NULL"

_OVERWRITTEN = """
    WITH k AS ({waiting}), written AS (
        SELECT rid, batch, csn, "table", key, op, kind, "to" FROM c
        WHERE c.batch <= {batch}
            AND (c.kind = 'refresh' OR c.verdict IN ('accepted', 'adopted'))
    )
    SELECT k.id FROM k JOIN written AS c ON c."table" = k."table" AND c.key = k.key
        WHERE (c.kind = 'change' AND c.rid = k.rid AND c.csn > k.csn)
            OR (c.kind = 'refresh' AND c."to" = k.rid AND c.batch >= k.batch)
    UNION
    SELECT k.id FROM k JOIN written AS c ON c."table" = k."table" AND c.op = 'truncate'
        WHERE c.kind = 'change' AND c.rid = k.rid AND c.csn > k.csn
    UNION
    SELECT k.id FROM k JOIN ({kept}) AS o
        ON o.rid = k.rid AND o."table" = k."table" AND o.key = k.key AND o.csn > k.csn
        WHERE o.{uncarried}
"""
"""Their replica wrote the row anew, was sent it, or holds there what is kept for another reason."""

_CONTENDED = """
    WITH k AS ({waiting}), released AS (
        SELECT rid, batch, "table", key FROM t WHERE action = 'released' AND batch <= {batch}
    )
    SELECT k.id FROM k JOIN (
        SELECT batch, hub_epoch, rid, "table", key, op FROM c
        WHERE batch <= {batch} AND kind = 'change' AND verdict = 'accepted'
    ) AS c ON c."table" = k."table" AND (c.key = k.key OR c.op = 'truncate')
        AND c.rid <> k.rid AND c.hub_epoch > k.mre
    LEFT JOIN released AS r ON r.batch = c.batch AND r.rid = k.rid
        AND r."table" = k."table" AND r.key = k.key AND c.rid = {hub_rid}
    WHERE r.batch IS NULL
"""
"""Somebody else wrote the row, and the replica had not seen that.

The hub did not, where it released an older change of that replica.
"""

_COMMITS = """
    SELECT rid, value FROM t
    WHERE kind = 'commit' AND outcome = 'unknown' AND batch >= {since} AND batch <= {batch}
"""
"""Of a transaction that is in quarantine the commit is unknown."""

_COLUMNS = "t.prim_csn, t.op, t.mre, t.topic, t.value, t.sha256"


def waiting_for_columns(reader: Reader, hub_rid: int) -> list[dict[str, Any]]:
    """The changes that wait for a column, with their bytes and what stands in their place.

    `is_known`: their row can be named, and nothing is purged that could stand in its place.
    """
    quarantine, log = reader.table(TableName.QUARANTINE), reader.table(TableName.CHANGELOG)
    if quarantine is None or log is None or reader.commit is None:
        return []
    found = list(each(quarantine, _WAITING.format(kept=reader.still_kept(_COLUMNS))))
    if not found:
        return []
    kept = reader.still_kept("t.op, t.mre")
    other = [one.value for one in Reason if one.is_uncarried and one is not Reason.COLUMN]
    names = {
        "waiting": _WAITING.format(kept=kept),
        "kept": kept,
        "batch": reader.batch,
        "hub_rid": hub_rid,
        "uncarried": among("reason", other),
    }
    overwritten, contended = (
        {row["id"] for row in each(quarantine, sql.format(**names), c=log)}
        for sql in (_OVERWRITTEN, _CONTENDED)
    )
    state = reader.commit.state
    return [
        {
            **row,
            "is_known": _is_known(row, state.purge_epoch, state.purge_batch),
            "is_overwritten": row["id"] in overwritten,
            "is_contended": row["id"] in contended,
        }
        for row in found
    ]


def _is_known(row: Mapping[str, Any], purge_epoch: int, purge_batch: int) -> bool:
    is_named = bool(row["table"] and row["key"]) and row["op"] != Op.TRUNCATE
    is_kept = row["mre"] is not None and row["mre"] >= purge_epoch and row["batch"] >= purge_batch
    return is_named and is_kept


def commits_of_waiting(reader: Reader, since: int) -> Iterator[tuple[str, int]]:
    """The transactions that were committed after a change of theirs went to quarantine.

    `since`: the batch of the first such change.
    """
    for row in reader.query(TableName.EVENTS, _COMMITS.format(since=since, batch=reader.batch)):
        yield loads(row["value"])["prim_csn"], row["rid"]
