"""Table `rows`, the full state: brought up to a hub epoch from the changelog by one MERGE."""

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import SparkSession

from checkpoints.reading.truncates import last_truncates
from checkpoints.root import open_delta
from checkpoints.store import StateStore
from checkpoints.tables import TableName
from streaming.core.batch.sending import WHOLE
from streaming.core.model.truncation import ALL_KEYS, Truncation
from streaming.core.retention.hold import reflected_by_all
from streaming.core.state.hub_state import HubState

REFUSED_MAX = 1_000
"""So many keys fit into a condition."""

_MERGE = """
MERGE INTO delta.`{rows}` AS t
USING (
  SELECT `table`, `key`,
    max_by(
      CASE WHEN verdict = 'accepted' AND NOT {gone}
        THEN struct(rid AS author, hub_epoch, csn, image) END,
      CASE WHEN verdict = 'accepted' AND NOT {gone} THEN struct(hub_epoch, place) END
    ) AS written,
    max_by(
      CASE WHEN kind = 'refresh' AND NOT {gone}
        THEN struct(row_author AS author, row_epoch AS hub_epoch, csn, image) END,
      CASE WHEN kind = 'refresh' AND NOT {gone} THEN struct(hub_epoch, place) END
    ) AS sent,
    collect_set(
      CASE WHEN kind = 'refresh'
        THEN struct(`to` AS rid, hub_epoch, `offset` AS `offset`,
          cause = '{whole}' AS rejects_transaction) END
    ) AS realign
  FROM delta.`{changelog}`
  WHERE hub_epoch > {after} AND hub_epoch <= {to} AND (verdict = 'accepted' OR kind = 'refresh')
    AND key <> '{all_keys}'
  GROUP BY `table`, `key`
) AS s
ON t.`table` = s.`table` AND t.`key` = s.`key`
WHEN MATCHED THEN UPDATE SET
  author = CASE WHEN s.written.hub_epoch > t.hub_epoch THEN s.written.author ELSE t.author END,
  csn = CASE WHEN s.written.hub_epoch > t.hub_epoch THEN s.written.csn ELSE t.csn END,
  image = CASE WHEN s.written.hub_epoch > t.hub_epoch THEN s.written.image ELSE t.image END,
  hub_epoch = greatest(s.written.hub_epoch, t.hub_epoch),
  realign = {undominated}
WHEN NOT MATCHED THEN INSERT (`table`, `key`, author, hub_epoch, csn, image, realign) VALUES (
  s.`table`, s.`key`,
  coalesce(s.written.author, s.sent.author, 0), coalesce(s.written.hub_epoch, s.sent.hub_epoch, 0),
  coalesce(s.written, s.sent).csn, coalesce(s.written, s.sent).image,
  {undominated_of_new}
)
"""

# A realign that blocks no more than another of the same replica is left out: core's `realigned`.
# In one order, so that a row is the same however many merges made it.
_UNDOMINATED = """
sort_array(filter(
  {realigns},
  x -> NOT exists(
    {realigns},
    y -> y.rid = x.rid AND y.hub_epoch >= x.hub_epoch AND y.`offset` <= x.`offset`
      AND (y.rejects_transaction OR NOT x.rejects_transaction) AND y <> x
  )
))
"""
_KNOWN_AND_NEW = "array_union(coalesce(t.realign, array()), s.realign)"


_TRUNCATE = """
UPDATE delta.`{rows}` SET author = {author}, hub_epoch = {hub_epoch}, csn = '{csn}', image = NULL
WHERE `table` = {table} AND hub_epoch < {hub_epoch}
"""


_DELETE = """
DELETE FROM delta.`{rows}` WHERE image IS NULL AND hub_epoch <= {epoch}
  AND NOT exists(realign, x -> x.hub_epoch > {reflected}) AND NOT ({kept})
"""


def materialize(spark: SparkSession, store: StateStore, after: int, to: int) -> None:
    """Merge the changelog of the hub epochs (after, to] into `rows`.

    Merging the same range again changes nothing, so a crash before the new epoch is noted in
    `epochs` costs only the work. What stands before a truncate of its table is not merged, and the
    rows that the truncate took become tombstones.
    """
    truncates = last_truncates(store, after, to)
    rows = store.uri(TableName.ROWS)
    spark.sql(
        _MERGE.format(
            rows=rows,
            changelog=store.uri(TableName.CHANGELOG),
            after=after,
            to=to,
            undominated=_UNDOMINATED.format(realigns=_KNOWN_AND_NEW),
            undominated_of_new=_UNDOMINATED.format(realigns="s.realign"),
            whole=WHOLE,
            all_keys=ALL_KEYS,
            gone=_gone(truncates),
        )
    )
    for table, (truncation, _) in truncates.items():
        named = truncation._asdict()
        spark.sql(_TRUNCATE.format(rows=rows, table=spark_literal(table), **named))


def delete_tombstones(spark: SparkSession, store: StateStore, state: HubState) -> None:
    """Delete the tombstones that the committed state has purged (docs/protocol.md, Purge).

    What blocks a replica that has not reflected it stays, and what a replica refused; with very
    many of such rows all do.
    """
    refused = {row for of in state.refusals.values() for row in of}
    if len(refused) > REFUSED_MAX or not _has_tombstones(store, state.tombstone_epoch):
        return
    rows, reflected = store.uri(TableName.ROWS), reflected_by_all(state)
    kept = " OR ".join(
        f"(`table` = {spark_literal(table)} AND `key` = {spark_literal(key)})"
        for table, key in sorted(refused)
    )
    spark.sql(
        _DELETE.format(
            rows=rows, epoch=state.tombstone_epoch, reflected=reflected, kept=kept or "false"
        )
    )


def _has_tombstones(store: StateStore, up_to: int) -> bool:
    """Return whether a file may hold some of this hub epoch or before, by its statistics."""
    files = pa.table(open_delta(store.root, TableName.ROWS).get_add_actions(flatten=True))
    nulls, oldest = (files[name].to_pylist() for name in ("null_count.image", "min.hub_epoch"))
    return any(
        count and epoch is not None and epoch <= up_to
        for count, epoch in zip(nulls, oldest, strict=True)
    )


def _gone(truncates: Mapping[str, tuple[Truncation, int]]) -> str:
    """The condition that an entry stands before a truncate of its table."""
    before = [
        f"(`table` = {spark_literal(table)} AND"
        f" struct(hub_epoch, place) < struct({one.hub_epoch}L, {place}L))"
        for table, (one, place) in truncates.items()
    ]
    return f"({' OR '.join(before)})" if before else "false"


def spark_literal(text: str) -> str:
    """A text in Spark's SQL; MERGE and UPDATE take no parameters."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
