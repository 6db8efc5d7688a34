"""Reads a hub's tables without Spark and without Slackwater: pip install deltalake duckdb.

    python examples/read_tables.py state

It prints the rows as they stand, the conflicts by hour and table, and who is behind by how many hub
epochs. A running hub is not disturbed. The columns are listed in docs/tables.md.
"""

import sys
from pathlib import Path

import duckdb
from deltalake import DeltaTable

TABLES = ("changelog", "conflicts", "epochs")

STANDING_ROWS = """
    SELECT "table", key, image, rid AS author, hub_epoch, csn FROM (
        SELECT *, row_number() OVER (
            PARTITION BY "table", key ORDER BY hub_epoch DESC, place DESC
        ) AS newest
        FROM changelog WHERE kind = 'change' AND verdict = 'accepted'
    ) WHERE newest = 1 AND image IS NOT NULL ORDER BY "table", key
"""
"""The rows as they stand. For an earlier moment add `AND hub_epoch <= ...` to the inner query.

That is the time travel of these tables: they are only appended to, and their Delta log is short. A
table that was truncated needs `slackwater rows`.
"""

CONFLICTS_BY_HOUR = """
    SELECT date_trunc('hour', "at") AS hour, "table", count(DISTINCT id) AS conflicts
    FROM conflicts GROUP BY ALL ORDER BY ALL
"""

LAG = """
    SELECT one.name AS agreement, hub_epoch - one.acked_covers AS hub_epochs_behind FROM (
        SELECT hub_epoch, unnest(agreements) AS one FROM (
            SELECT * FROM epochs WHERE kind = 'commit' ORDER BY batch DESC LIMIT 1
        )
    ) ORDER BY ALL
"""


def connect(state: Path) -> duckdb.DuckDBPyConnection:
    """A DuckDB session that has the hub's tables, as they are now."""
    session = duckdb.connect()
    session.execute("SET TimeZone = 'UTC'")
    for name in TABLES:
        session.register(name, DeltaTable(state / name).to_pyarrow_dataset())
    return session


def main(state: Path) -> None:
    """Print the three answers."""
    session = connect(state)
    for question in (STANDING_ROWS, CONFLICTS_BY_HOUR, LAG):
        print(session.sql(question))  # noqa: T201  # an example prints


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "state"))
