"""SQL over everything as of a hub epoch, in this process: by DuckDB, in a second.

Only what a query names is opened. `rows` has deletion vectors and is read by deltalake; the hub's
other tables are scanned where they are. The session reads nothing else: no file, no other database,
and it changes nothing. Its memory, its scratch files, its time and its answer are bounded.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

import duckdb
import pyarrow as pa

from checkpoints.commit.recorded import BatchMark
from checkpoints.query import equals, literal, open_table, quoted, scan
from checkpoints.reading.past import PastStore
from checkpoints.reading.sql_values import value_in_duckdb
from checkpoints.reading.truncates import last_truncates
from checkpoints.tables import SCHEMAS, TableName
from streaming.core.model.errors import QuestionError
from streaming.core.model.table import Table
from streaming.replay.sql.answer import SqlAnswer, answer_within
from streaming.replay.sql.tables import HUB, NEVER, STANDING, VIEWS

MEMORY = "1GB"
"""What a query may hold in memory; more of it is written to a scratch folder."""

SCRATCH = "4GB"
"""What it may write there; both are gone at its end."""
ANSWER_BYTES = 64_000_000
"""What the shown rows may hold."""
ROWS_AT_ONCE = 100
"""How many rows of the answer are fetched before it is looked at what they hold."""

_SPARK = "--engine spark reads any amount"
_SELECT = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)


def query(
    store: PastStore,
    tables: Sequence[Table],
    last: BatchMark,
    text: str,
    limit: int,
    timeout_s: float,
) -> SqlAnswer:
    """The first rows of the answer; QuestionError says in a line why there is none.

    `last`: the last batch that it sees, to which the store must have travelled.
    """
    with _session() as session:

        def answer() -> SqlAnswer:
            with _question_errors():
                opened = _OpenTables(session, store, {one.name: one for one in tables}, last)
                for name in sorted(_named(session, text)):
                    opened.open(name)
                reader = session.sql(text).to_arrow_reader(min(limit, ROWS_AT_ONCE))
                return SqlAnswer(tuple(reader.schema.names), _first(reader, limit))

        return answer_within(timeout_s, answer, session.interrupt)


@contextmanager
def _session() -> Iterator[duckdb.DuckDBPyConnection]:
    """An empty database in memory that reads and writes no file but its scratch."""
    settings = {"python_enable_replacements": False, "autoinstall_known_extensions": False}
    with tempfile.TemporaryDirectory(prefix="slackwater-", ignore_cleanup_errors=True) as scratch:
        session = duckdb.connect(":memory:", config=dict[str, Any](settings))
        for setting in (
            "TimeZone = 'UTC'",
            f"memory_limit = '{MEMORY}'",
            f"temp_directory = {literal(scratch)}",
            f"max_temp_directory_size = '{SCRATCH}'",
            "enable_external_access = false",
            "lock_configuration = true",
        ):
            session.execute(f"SET {setting}")
        yield session


@contextmanager
def _question_errors() -> Iterator[None]:
    """What goes wrong in a query is a QuestionError."""
    try:
        yield
    except duckdb.OutOfMemoryException:
        raise QuestionError(
            f"the query needs more than {MEMORY} of memory and {SCRATCH} of scratch: {_SPARK}"
        ) from None
    except (duckdb.Error, pa.ArrowException) as error:
        raise QuestionError(_one_line(str(error))) from None
    except (ValueError, OverflowError) as error:
        raise QuestionError(
            f"a value of the answer cannot be shown ({_one_line(str(error))}): cast it to VARCHAR"
        ) from None


def _named(session: duckdb.DuckDBPyConnection, text: str) -> set[str]:
    """The tables that a query names; QuestionError if it is not one query."""
    statements = session.extract_statements(text)
    if len(statements) != 1 or statements[0].type not in _SELECT:
        raise QuestionError("give one query that reads, a SELECT: nothing is written here")
    return set(session.get_table_names(text))


class _OpenTables:
    """The tables of a session, each opened when it is first named."""

    def __init__(
        self,
        session: duckdb.DuckDBPyConnection,
        store: PastStore,
        tables: Mapping[str, Table],
        last: BatchMark,
    ) -> None:
        self._session, self._store, self._tables, self._last = session, store, tables, last
        self._hub = {f"{HUB}{name.value}": name for name in TableName}
        known = (*tables, *self._hub, *VIEWS)
        self._known = {name.lower(): name for name in known}
        self._there = set[str]()

    def open(self, named: str) -> None:
        """Make a table readable; QuestionError, with those that are there, for any other name."""
        name = self._known.get(named.lower())
        if name is None:
            close = get_close_matches(named.lower(), self._known, n=1)
            meant = f": did you mean {self._known[close[0]]}?" if close else ""
            listed = ", ".join(self._known.values())
            raise QuestionError(f"there is no table {named!r}{meant or f': use one of {listed}'}")
        if name in self._there:
            return
        self._there.add(name)
        if name in self._tables:
            self._view(name, self._typed(self._tables[name]))
        elif name in VIEWS:
            self.open(f"{HUB}{'conflicts' if 'conflicts' in name else 'epochs'}")
            self._view(name, VIEWS[name])
        else:
            self._open_hub(name, self._hub[name])

    def _view(self, name: str, sql: str) -> None:
        self._session.execute(f"CREATE TEMP VIEW {quoted(name)} AS {sql}")

    def _open_hub(self, name: str, table: TableName) -> None:
        """A table of the hub's up to the batch; `rows` at its version."""
        if table is TableName.ROWS:
            self._copy_rows(name, [])
            return
        raw = f"_whole_{name}"
        is_there = open_table(self._store.root, table) is not None
        found = self._store.dataset(table) if is_there else SCHEMAS[table].empty_table()
        self._session.register(raw, found)
        bound = f" WHERE batch <= {self._last.batch}" if "batch" in SCHEMAS[table].names else ""
        self._view(name, f"SELECT * FROM {quoted(raw)}{bound}")  # noqa: S608

    def _copy_rows(self, name: str, where: Sequence[str]) -> None:
        """Rows of `rows` in the session's own memory, some thousand at a time."""
        parts = scan(self._store.table(TableName.ROWS), TableName.ROWS, where=where)
        batches = (batch for part in parts for batch in part.to_batches())
        reader = pa.RecordBatchReader.from_batches(SCHEMAS[TableName.ROWS], batches)
        self._session.register("_arriving", reader)
        self._session.execute(f"CREATE TABLE {quoted(name)} AS SELECT * FROM _arriving")  # noqa: S608
        self._session.unregister("_arriving")

    def _typed(self, table: Table) -> str:
        """The query for the rows as they stood, typed column by column."""
        self.open(f"{HUB}{TableName.CHANGELOG}")
        rows, after = f"_rows_of_{table.name}", self._store.rows_epoch
        self._copy_rows(rows, equals({"table": table.name}))
        truncates = last_truncates(self._store, after, self._last.hub_epoch)
        truncate, place = truncates.get(table.name, (NEVER, -1))
        standing = STANDING.format(
            rows=quoted(rows),
            table=literal(table.name),
            after=after,
            truncated=truncate.hub_epoch,
            place=place,
        )
        columns = ", ".join(
            f"{value_in_duckdb(table.name, name, kind)} AS {quoted(name)}"
            for name, kind in table.columns.items()
        )
        return (
            f"SELECT {columns}, author AS _author, hub_epoch AS _hub_epoch, csn AS _csn"  # noqa: S608
            f" FROM ({standing})"
        )


def _first(reader: pa.RecordBatchReader, limit: int) -> list[tuple[Any, ...]]:
    """The first rows; what follows is not computed."""
    found, size = list[tuple[Any, ...]](), 0
    for batch in _batches(reader):
        part = batch.slice(0, limit - len(found))
        size += part.nbytes
        if size > ANSWER_BYTES:
            raise QuestionError(
                f"the answer has more than {ANSWER_BYTES:,} bytes: ask for fewer columns or rows"
            )
        found += zip(*(column.to_pylist() for column in part.columns), strict=True)
        if len(found) >= limit:
            break
    return found


def _batches(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """The batches of an answer; Arrow tells an error of the query as one of reading a file."""
    try:
        yield from reader
    except OSError as error:
        raise QuestionError(_one_line(str(error))) from error


def _one_line(text: str) -> str:
    """DuckDB's message without its picture of the query."""
    return " ".join(text.split("\n\nLINE", maxsplit=1)[0].split())
