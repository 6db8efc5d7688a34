"""The agent's own tables in the replica's database, and the rule of CSNs in pure SQL.

Everything that a write needs is in the one row of `_slackwater_origin`, which the triggers read
and raise in the writing transaction. Journal order is commit order, because SQLite has one writer
at a time.
"""
# ruff: noqa: S608 every expression is our own

import sqlite3
from collections.abc import Sequence

from connectors.agent.images import OVERHEAD_BYTES
from connectors.sqlite import sql
from connectors.sqlite.install import cascades, local_writes
from connectors.sqlite.values.columns import CREATE_SCALES, omitted_sql
from streaming.core.model.csn import MAX_SEQUENCE, MAX_TIME_S

PREFIX = "_slackwater_"
"""The prefix of all names of the agent."""
SQLITE_PREFIX = "sqlite_"
"""The prefix of all names of SQLite itself."""

LATER_TABLES = {
    "_slackwater_gone": """CREATE TABLE _slackwater_gone (
  "table" TEXT NOT NULL,
  "column" TEXT NOT NULL,  -- that was captured, and is not there any more
  PRIMARY KEY ("table", "column")
)""",
    **local_writes.TABLES,
}
"""Those that agents of before did not have."""

TABLES = {
    "_slackwater_origin": """CREATE TABLE _slackwater_origin (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  format INTEGER NOT NULL,
  rid INTEGER NOT NULL,
  time_s INTEGER NOT NULL DEFAULT 0,  -- with sequence: the last CSN that was issued or applied
  sequence INTEGER NOT NULL DEFAULT -1,
  epoch INTEGER NOT NULL DEFAULT 1,
  opno INTEGER NOT NULL DEFAULT 0,  -- of the last change
  applying INTEGER NOT NULL DEFAULT 0,  -- 1: the agent writes; 2: writes stay here
  truncating TEXT,  -- the table whose rows are deleted by a truncate
  depth INTEGER NOT NULL DEFAULT 0,  -- how many groups of changes are open
  prim_csn TEXT,  -- of the open group
  record_bytes INTEGER NOT NULL DEFAULT 1000000,
  journal_mode TEXT,  -- the database's before it was a replica
  replica TEXT,  -- its name
  statement INTEGER NOT NULL DEFAULT 0,  -- from here on: see capture.py
  statement_ms INTEGER NOT NULL DEFAULT 0,
  open_writes INTEGER NOT NULL DEFAULT 0
)""",
    "_slackwater_position": """CREATE TABLE _slackwater_position (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  session TEXT,
  last INTEGER NOT NULL DEFAULT 0,
  covers INTEGER NOT NULL DEFAULT 0,
  epoch INTEGER NOT NULL DEFAULT 0,  -- the epoch in which covers was stored
  ruv TEXT NOT NULL DEFAULT '',  -- an element a line
  generation INTEGER NOT NULL DEFAULT 0,
  reached INTEGER NOT NULL DEFAULT 0,  -- the hub epoch that was applied last
  agreement TEXT NOT NULL DEFAULT '',  -- the one that brought the position; '': nobody knows
  updates_offset INTEGER NOT NULL DEFAULT 0,  -- of the next record of the updates topic
  published INTEGER NOT NULL DEFAULT 0,  -- the journal is in the topic up to this id
  own TEXT,  -- the largest own CSN in the topic below changes_offset
  changes_offset INTEGER NOT NULL DEFAULT 0,  -- the own topic was compared up to here
  changes_session TEXT,  -- the session in force there
  reinit INTEGER NOT NULL DEFAULT 0,  -- 1: emptied, and nothing applied since
  trimmed_csn TEXT,  -- with trimmed_opno: the largest that was trimmed from the journal
  trimmed_opno INTEGER NOT NULL DEFAULT 0,
  noted INTEGER NOT NULL DEFAULT 0,  -- _slackwater_uncarried is of the journal up to this id
  schema TEXT  -- generation:digest of the schema whose document is in the topic
)""",
    "_slackwater_journal": """CREATE TABLE _slackwater_journal (
  id INTEGER PRIMARY KEY,  -- commit order
  at INTEGER NOT NULL,  -- milliseconds since 1970
  kind TEXT NOT NULL,  -- change | commit | applied | refused | snapshot
  csn TEXT,
  prim_csn TEXT,
  epoch INTEGER,
  "table" TEXT,
  key TEXT,  -- of a change: as captured; so are the images
  op TEXT,
  before TEXT,
  after TEXT,
  opno INTEGER,
  session TEXT,  -- from here on: of applied and refused
  covers INTEGER,
  generation INTEGER,
  ruv TEXT,
  hub_epoch INTEGER,
  code TEXT,
  text TEXT,
  snapshot TEXT,  -- of a snapshot, and of the changes that are its rows: its id
  rows INTEGER  -- at the end of a snapshot
)""",
    "_slackwater_snapshot": """CREATE TABLE _slackwater_snapshot (
  "table" TEXT PRIMARY KEY,  -- of a snapshot that has not ended
  id TEXT NOT NULL,  -- of the snapshot
  after TEXT,  -- the last key that was told, in SQL literals
  rows INTEGER NOT NULL DEFAULT 0,  -- how many were published
  is_complete INTEGER NOT NULL DEFAULT 0,
  columns TEXT  -- a name a line: rows that differ from their defaults are told; NULL: every row
)""",
    "_slackwater_uncarried": """CREATE TABLE _slackwater_uncarried (
  "table" TEXT NOT NULL,  -- of a row whose last write no replica can take
  key TEXT NOT NULL,  -- as on the wire
  csn TEXT NOT NULL,  -- of that write
  since INTEGER NOT NULL,  -- milliseconds since 1970
  faults TEXT NOT NULL,  -- what no replica can take, and what to do
  PRIMARY KEY ("table", key)
)""",
    "_slackwater_saved": """CREATE TABLE _slackwater_saved (
  id INTEGER PRIMARY KEY,  -- of a row that was overwritten and was nowhere else
  at INTEGER NOT NULL,  -- milliseconds since 1970
  "table" TEXT NOT NULL,
  key TEXT NOT NULL,  -- as on the wire
  why TEXT NOT NULL  -- why it was nowhere else
)""",
    "_slackwater_saved_values": """CREATE TABLE _slackwater_saved_values (
  saved INTEGER NOT NULL,  -- the id of the row
  name TEXT NOT NULL,  -- of the column
  value,  -- as it was, of any storage class
  PRIMARY KEY (saved, name)
)""",
    "_slackwater_uncaptured": """CREATE TABLE _slackwater_uncaptured (
  "table" TEXT PRIMARY KEY,  -- that was written while a trigger was missing
  since INTEGER NOT NULL,  -- milliseconds since 1970
  is_copying INTEGER NOT NULL DEFAULT 0  -- 1: a full copy of it has begun since
)""",
    "_slackwater_scales": CREATE_SCALES,
    **LATER_TABLES,
    **cascades.TABLES,
}

NEEDED_TABLES = (
    "_slackwater_origin",
    "_slackwater_position",
    "_slackwater_journal",
    "_slackwater_scales",
)
"""Those that hold changes and the position: nobody else has them, so none may be missing.

An empty one in its place would hide that they are gone.
"""

INDEXES = {
    "_slackwater_journal_csn": (
        "CREATE INDEX _slackwater_journal_csn ON _slackwater_journal (csn) WHERE kind = 'change'"
    ),
    "_slackwater_journal_commit": (
        "CREATE INDEX _slackwater_journal_commit ON _slackwater_journal (prim_csn)"
        " WHERE kind = 'commit'"
    ),
}

CSN_SQL = "printf('%08x%04x%04x%04x', time_s, sequence, rid, 0)"
"""The last CSN that the origin row issued."""


def next_csn_sql(clock_s: str) -> str:
    """The statement by which the origin row issues its next CSN: core's Generator.next in SQL."""
    is_later = f"{clock_s} > time_s AND {clock_s} <= {MAX_TIME_S}"
    return f"""UPDATE _slackwater_origin SET
    time_s = CASE WHEN {is_later} THEN {clock_s}
      WHEN sequence >= {MAX_SEQUENCE} THEN time_s + 1 ELSE time_s END,
    sequence = CASE WHEN {is_later} OR sequence >= {MAX_SEQUENCE} THEN 0
      ELSE sequence + 1 END"""


def _bytes(column: str) -> str:
    return f"coalesce(length(CAST(NEW.{column} AS BLOB)), 0)"


def _omitted(column: str) -> str:
    """In place of an image that no record can hold: how long it is."""
    return f"""'{{"whole row":' || {omitted_sql("NEW." + column)} || '}}'"""


CAPTURE_VIEW = "_slackwater_capture"
"""The view that captures."""

CAPTURE = {
    CAPTURE_VIEW: """CREATE VIEW _slackwater_capture (op, "table", key, before, after)
AS SELECT NULL, NULL, NULL, NULL, NULL WHERE 0""",
    "_slackwater_capture_begin": """CREATE TRIGGER _slackwater_capture_begin
INSTEAD OF INSERT ON _slackwater_capture WHEN NEW.op = 'begin'
BEGIN
  UPDATE _slackwater_origin SET depth = depth + 1;
END""",
    "_slackwater_capture_change": f"""CREATE TRIGGER _slackwater_capture_change
INSTEAD OF INSERT ON _slackwater_capture
  WHEN NEW.op IN ('insert', 'update', 'delete', 'truncate', 'snapshot')
BEGIN
  {next_csn_sql(sql.NOW_S)};
  UPDATE _slackwater_origin SET opno = opno + 1,
    prim_csn = CASE WHEN depth > 0 THEN coalesce(prim_csn, {CSN_SQL}) END;
  INSERT INTO _slackwater_journal
    (at, kind, csn, prim_csn, epoch, "table", key, op, before, after, opno, snapshot)
  SELECT {sql.NOW_MS}, 'change', {CSN_SQL}, prim_csn, epoch, NEW."table",
    CASE WHEN {_bytes("key")} + {OVERHEAD_BYTES} <= record_bytes THEN NEW.key
      ELSE {_omitted("key")} END,
    CASE NEW.op WHEN 'snapshot' THEN 'insert' ELSE NEW.op END,
    CASE WHEN {_bytes("key")} + {_bytes("before")} + {_bytes("after")} + {OVERHEAD_BYTES}
      <= record_bytes THEN NEW.before WHEN NEW.before IS NOT NULL THEN '{{}}' END,
    CASE WHEN NEW.after IS NULL
      OR {_bytes("key")} + {_bytes("after")} + {OVERHEAD_BYTES} <= record_bytes THEN NEW.after
      ELSE {_omitted("after")} END,
    opno,
    CASE NEW.op WHEN 'snapshot'
      THEN (SELECT id FROM _slackwater_snapshot s WHERE s."table" = NEW."table") END
  FROM _slackwater_origin;
END""",
    "_slackwater_capture_commit": f"""CREATE TRIGGER _slackwater_capture_commit
INSTEAD OF INSERT ON _slackwater_capture WHEN NEW.op = 'commit'
BEGIN
  UPDATE _slackwater_origin SET depth = max(depth - 1, 0);
  INSERT INTO _slackwater_journal (at, kind, prim_csn, epoch)
  SELECT {sql.NOW_MS}, 'commit', prim_csn, epoch FROM _slackwater_origin
  WHERE depth = 0 AND prim_csn IS NOT NULL;
  UPDATE _slackwater_origin SET prim_csn = NULL WHERE depth = 0;
END""",
    **cascades.VIEW,
    **local_writes.VIEW,
    "_slackwater_write": """CREATE VIEW _slackwater_write (op, "table", key, before, after)
AS SELECT NULL, NULL, NULL, NULL, NULL WHERE 0""",
    "_slackwater_write_forward": """CREATE TRIGGER _slackwater_write_forward
INSTEAD OF INSERT ON _slackwater_write WHEN NEW.op IN ('begin', 'commit', 'truncate')
BEGIN
  INSERT INTO _slackwater_capture (op, "table") VALUES (NEW.op, NEW."table");
END""",
    "_slackwater_write_truncate": """CREATE TRIGGER _slackwater_write_truncate
INSTEAD OF INSERT ON _slackwater_write WHEN NEW.op = 'truncate'
  AND NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = '_slackwater_truncate_' || NEW."table")
BEGIN
  SELECT RAISE(ABORT, 'truncate: this table is not replicated');
END""",
    "_slackwater_write_local": f"""CREATE TRIGGER _slackwater_write_local
INSTEAD OF INSERT ON _slackwater_write WHEN NEW.op = 'truncate' AND {local_writes.IS_LOCAL}
BEGIN
  SELECT RAISE(ABORT, 'truncate: DELETE the rows while writes stay in this database');
END""",
}
"""The view that captures, and the one that clients write to.

Of the first a row of op begin or commit opens or closes a group of changes, and one of op snapshot
is a row that was there before (snapshot.py). A row of op truncate in the second deletes all rows of
its table and is captured as one change (capture.py). SQLite compiles every trigger of a view with
each statement that writes to it, so those that empty the tables are none of the view that captures:
a client would need the functions and collations of all tables to write to one.

Of a row too large for a record only the size is kept, which the hub quarantines; of a before-image
that does not fit beside it nothing is told.
"""


def column_names(connection: sqlite3.Connection, table: str) -> set[str]:
    """The columns that one of the agent's tables has, which an older agent may have made."""
    return {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}


def lost_tables(connection: sqlite3.Connection) -> tuple[str, ...]:
    """Those of NEEDED_TABLES that are not there; empty if the database is no replica."""
    rows = connection.execute(
        "SELECT name FROM sqlite_schema WHERE substr(name, 1, ?) = ?", (len(PREFIX), PREFIX)
    )
    there = {str(name) for (name,) in rows}
    return tuple(name for name in NEEDED_TABLES if name not in there) if there else ()


def lost_tables_text(names: Sequence[str]) -> str:
    """What an agent says of a database that lacks these of its tables, and what to do."""
    what = "table" if len(names) == 1 else "tables"
    was = "was" if len(names) == 1 else "were"
    return (
        f"the agent's own {what} {', '.join(names)} {was} dropped: what the agent had not published"
        " yet may be lost, and statements of your applications that write replicated tables may"
        " fail. Stop the applications, keep saved rows with `slackwater agent saved --database FILE"
        " --export ROWS --forget`, make the file an ordinary database with `slackwater agent"
        " uninstall --database FILE --discard-unpublished`, run `slackwater reinit REPLICA"
        " --database FILE`, which saves the rows that the hub does not have and empties the tables,"
        " then start the agent, which fills them from the hub"
    )
