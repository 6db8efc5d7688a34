"""The schema `slackwater`: the position, what is published, what was attached, rows only here.

Its tables are in no publication, and most of them have one row. The position is written in the
transaction that applies a batch; the capture row when the topic is known to hold what the log has
up to it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from psycopg.rows import dict_row

from connectors.postgres.sql import Session
from streaming.core.delivery.consumer import Position
from streaming.core.model.errors import StateError
from streaming.core.model.ruv import parse_ruv

SCHEMA = "slackwater"

DDL = (
    "CREATE SCHEMA IF NOT EXISTS slackwater",
    """CREATE TABLE IF NOT EXISTS slackwater.attachment (
  id integer PRIMARY KEY DEFAULT 1 CHECK (id = 1),
  format integer NOT NULL,  -- of these tables
  replica text NOT NULL,
  server_name text NOT NULL  -- of the slot and of the origin
)""",
    """CREATE TABLE IF NOT EXISTS slackwater.identity (
  "table" text PRIMARY KEY,  -- with its schema, as SQL has it
  identity "char" NOT NULL,  -- pg_class.relreplident before it was attached
  index text  -- of REPLICA IDENTITY USING INDEX
)""",
    """CREATE TABLE IF NOT EXISTS slackwater.position (
  id integer PRIMARY KEY DEFAULT 1 CHECK (id = 1),
  rid integer NOT NULL,
  session text,
  last bigint NOT NULL DEFAULT 0,
  covers bigint NOT NULL DEFAULT 0,
  epoch bigint NOT NULL DEFAULT 0,  -- the epoch in which covers was stored
  ruv text[] NOT NULL DEFAULT '{}',  -- its lines
  generation bigint NOT NULL DEFAULT 0,
  reached bigint NOT NULL DEFAULT 0,  -- the hub epoch that was applied last
  agreement text NOT NULL DEFAULT '',  -- the one that brought the position; '': nobody knows
  updates_offset bigint NOT NULL DEFAULT 0,  -- of the next record of the updates topic
  replica_epoch bigint NOT NULL DEFAULT 1,  -- each batch that is applied raises it by one
  reinit boolean NOT NULL DEFAULT false,  -- emptied, and nothing applied since
  answered bigint NOT NULL DEFAULT -1  -- the last hello says what an applied up to this epoch says
)""",
    """CREATE TABLE IF NOT EXISTS slackwater.capture (
  id integer PRIMARY KEY DEFAULT 1 CHECK (id = 1),
  system_id text NOT NULL,
  timeline integer NOT NULL,
  slot text NOT NULL,
  lsn pg_lsn NOT NULL,  -- the end of a commit: the topic has everything before it
  time_s bigint NOT NULL DEFAULT 0,  -- from here to epoch: the state of the fold at lsn
  sequence integer NOT NULL DEFAULT -1,
  opno bigint NOT NULL DEFAULT 0,
  epoch bigint NOT NULL DEFAULT 1,
  csn text,  -- the largest own CSN that database and topic share
  published text NOT NULL DEFAULT '0',  -- the last entry behind lsn that the topic has
  numbering text NOT NULL DEFAULT '',  -- what was decided about numbers, as JSON
  changes_offset bigint NOT NULL DEFAULT 0,  -- the own topic was compared up to here
  changes_session text,  -- the session in force there
  own text,  -- the largest own CSN in the topic below changes_offset
  schema text NOT NULL DEFAULT '',  -- the schema whose document the topic has
  publication bigint NOT NULL DEFAULT 0  -- its oid: one that was made again is another; 0: unknown
)""",
    """CREATE TABLE IF NOT EXISTS slackwater.captured (
  "table" text PRIMARY KEY,
  oid bigint NOT NULL,  -- of its row in the publication: a table that was made again has another
  columns text NOT NULL  -- those that are replicated with their types, as JSON
)""",
    """CREATE TABLE IF NOT EXISTS slackwater.logged (
  "table" text NOT NULL,
  columns text NOT NULL,  -- those of rows that the log may have, with other types, as JSON
  is_told boolean NOT NULL,  -- the rows of the table were told again since
  PRIMARY KEY ("table", columns)
)""",
    """CREATE TABLE IF NOT EXISTS slackwater.uncarried (
  "table" text NOT NULL,
  key text NOT NULL,
  csn text NOT NULL,
  since_ms bigint NOT NULL,
  faults text NOT NULL,  -- why no replica can take the row
  PRIMARY KEY ("table", key)
)""",
    """CREATE TABLE IF NOT EXISTS slackwater.saved (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  "table" text NOT NULL,
  key text NOT NULL,  -- as the wire has it
  why text NOT NULL,
  row json NOT NULL  -- column -> its text in PostgreSQL, null for null
)""",
    """CREATE TABLE IF NOT EXISTS slackwater.local_writes (
  "table" text PRIMARY KEY,
  rows bigint NOT NULL,  -- so many were written that stay in this database
  last_ms bigint NOT NULL  -- since 1970
)""",
    """CREATE TABLE IF NOT EXISTS slackwater.snapshot (
  "table" text PRIMARY KEY,  -- whose rows are told: they are older than its capture
  id text NOT NULL,  -- of the snapshot, the same for all its tables
  last text[],  -- the key of the last row that was told, as text
  told bigint NOT NULL DEFAULT 0,
  is_complete boolean NOT NULL DEFAULT false
)""",
)
"""The schema first; each may run again: what is there stays."""


@dataclass(frozen=True, slots=True)
class StoredPosition:
    """The row `slackwater.position`; `replica_epoch`: of the next batch that is applied.

    `answered`: the epoch of the last hello; -1: there was none.
    """

    rid: int
    position: Position = field(default_factory=Position)
    updates_offset: int = 0
    replica_epoch: int = 1
    reinit: bool = False
    answered: int = -1


@dataclass(frozen=True, slots=True)
class Capture:
    """The row `slackwater.capture`; `lsn` as PostgreSQL writes it."""

    system_id: str
    timeline: int
    slot: str
    lsn: str
    time_s: int = 0
    sequence: int = -1
    opno: int = 0
    epoch: int = 1
    csn: str | None = None
    published: str = "0"
    numbering: str = ""
    changes_offset: int = 0
    changes_session: str | None = None
    own: str | None = None
    schema: str = ""
    publication: int = 0


def create(connection: Session) -> None:
    """Create the schema and its tables where they are not there."""
    for statement in missing_ddl(connection):
        connection.execute(statement.encode())


def missing_ddl(connection: Session) -> tuple[str, ...]:
    """The statements for what is not there: to run others takes rights that an agent may lack."""
    (has_schema,) = connection.execute(
        "SELECT to_regnamespace('slackwater') IS NOT NULL"
    ).fetchone() or (False,)
    rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'slackwater'")
    there = {row[0] for row in rows.fetchall()}
    schema, *tables = DDL
    lacking = [one for one in tables if _table_of(one) not in there]
    return (*([] if has_schema else [schema]), *lacking)


def _table_of(statement: str) -> str:
    """The table that a statement of DDL creates."""
    return statement.partition(f"{SCHEMA}.")[2].partition(" ")[0]


def read_position(connection: Session, *, locks: bool = False) -> StoredPosition:
    """The position row; StateError: there is none. `locks`: until the transaction ends."""
    query = f"SELECT * FROM slackwater.position{' FOR UPDATE' if locks else ''}"  # noqa: S608
    with connection.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(query.encode()).fetchone()
    if row is None:
        raise StateError(
            "slackwater.position is empty: the agent's own row was deleted; detach the database"
            " (`slackwater detach`), empty its tables and attach it anew: the hub fills it"
        )
    position = Position(
        row["session"],
        row["last"],
        row["covers"],
        row["epoch"],
        parse_ruv(row["ruv"]),
        row["generation"],
        row["reached"],
        row["agreement"],
    )
    return StoredPosition(
        row["rid"],
        position,
        row["updates_offset"],
        row["replica_epoch"],
        row["reinit"],
        row["answered"],
    )


def write_position(connection: Session, stored: StoredPosition) -> None:
    """Write the position row, whether it is there or not."""
    position = stored.position
    values = {
        "rid": stored.rid,
        "session": position.session,
        "last": position.last,
        "covers": position.covers,
        "epoch": position.epoch,
        "ruv": list(position.ruv.text()),
        "generation": position.generation,
        "reached": position.reached,
        "agreement": position.agreement,
        "updates_offset": stored.updates_offset,
        "replica_epoch": stored.replica_epoch,
        "reinit": stored.reinit,
        "answered": stored.answered,
    }
    _write(connection, "position", values)


def read_capture(connection: Session) -> Capture | None:
    """The capture row; None: nothing was captured yet."""
    with connection.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute("SELECT * FROM slackwater.capture").fetchone()
    if row is None:
        return None
    del row["id"]
    return Capture(**row)


def write_capture(connection: Session, capture: Capture) -> None:
    """Write the capture row, whether it is there or not."""
    names = Capture.__dataclass_fields__
    _write(connection, "capture", {name: getattr(capture, name) for name in names})


def _write(connection: Session, table: str, values: Mapping[str, object]) -> None:
    names = ", ".join(values)
    marks = ", ".join(f"%({name})s" for name in values)
    sets = ", ".join(f"{name} = EXCLUDED.{name}" for name in values)
    statement = (
        f"INSERT INTO {SCHEMA}.{table} ({names}) VALUES ({marks})"  # noqa: S608 our own names
        f" ON CONFLICT (id) DO UPDATE SET {sets}"
    )
    connection.execute(statement.encode(), values)
