"""What both engines of `slackwater sql` read: the names, types and views, and rows as they stood.

Identifiers are in double quotes, which Spark has as backquotes: `spark_sql.in_spark`.
"""

from checkpoints.tables import TableName
from streaming.core.model.truncation import Truncation

HUB = "hub_"
"""Before the name of a table of the hub's, so that it cannot be taken for one of the user's."""

VIEWS = {
    f"{HUB}conflicts_by_hour": """
        SELECT date_trunc('hour', "at") AS hour, "table", kind, count(DISTINCT id) AS conflicts
        FROM hub_conflicts GROUP BY ALL
    """,
    f"{HUB}lag_by_hour": """
        SELECT date_trunc('hour', "at") AS hour, one.name AS agreement,
            max(hub_epoch - one.acked_covers) AS hub_epochs_behind
        FROM (SELECT "at", hub_epoch, unnest(agreements) AS one FROM hub_epochs
            WHERE kind = 'commit') GROUP BY ALL
    """,
}
"""Views for people, by name; each reads one table of the hub."""

HUB_NAMES = frozenset({*(f"{HUB}{name}" for name in TableName), *VIEWS})
"""All that is the hub's."""

STANDING = """
SELECT "key", author, hub_epoch, csn, image FROM (
  SELECT *, row_number() OVER (PARTITION BY "key" ORDER BY hub_epoch DESC, place DESC) AS newest
  FROM (
    SELECT "key", author, hub_epoch, csn, image, -1 AS place FROM {rows} WHERE "table" = {table}
    UNION ALL
    SELECT "key", rid, hub_epoch, csn, image, place FROM hub_changelog
    WHERE "table" = {table} AND verdict = 'accepted' AND hub_epoch > {after} AND "key" <> ''
  ) WHERE hub_epoch > {truncated} OR (hub_epoch = {truncated} AND place > {place})
) WHERE newest = 1 AND image IS NOT NULL
"""
"""The rows of a table as they stood; `truncated`, `place`: where its last truncate is."""

NEVER = Truncation(0, -1, "")
"""Of a table that was not truncated."""
