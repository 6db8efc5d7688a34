"""The Delta tables under one state root: opened once, appended to at most once per key."""

import fcntl
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import (
    ColumnProperties,
    CommitProperties,
    DeltaTable,
    Field,
    PostCommitHookProperties,
    Schema,
    Transaction,
    WriterProperties,
    write_deltalake,
)
from deltalake.exceptions import CommitFailedError, DeltaError

from checkpoints.comments import TABLE_COMMENTS, column_comments
from checkpoints.root import (
    exist,
    files_of_table,
    make_root,
    open_delta,
    storage_options,
    storage_says,
    table_uri,
    what_to_check,
)
from checkpoints.tables import SCHEMAS, TableName
from streaming.core.access.root import StateRoot
from streaming.core.model.errors import StateError

KEPT_HOURS = 168
"""How long files are kept that no log names, and the older versions of `rows`."""

LOCK = "maintenance.lock"
"""A file in the state root."""

_APPENDED = {
    "delta.checkpointInterval": "100",
    "delta.logRetentionDuration": "interval 3 minutes",
    "delta.deletedFileRetentionDuration": "interval 1 hours",
    "delta.dataSkippingNumIndexedCols": "9",
}
"""Of tables that are only appended to: their rows name their batch, so an older version
contains nothing more. A commit lists the log, 2 ms for 1,000 entries: a second for a day of them.
A checkpoint names the files that compaction replaced within that hour
(checkpoints/maintenance/background.py).
Reading skips files by their first columns, up to the CSN; more of them make commits slow."""


_MERGED = {"delta.checkpointInterval": "100", "delta.enableDeletionVectors": "true"}
"""Of `rows`. Without deletion vectors a MERGE of a thousand rows writes all files anew that hold
one of them."""


def _kept(hours: int) -> dict[str, str]:
    """Of `rows`, whose versions of so many hours can be read."""
    return {
        "delta.logRetentionDuration": f"interval {hours} hours",
        "delta.deletedFileRetentionDuration": f"interval {hours} hours",
    }


_DIFFERENT = (
    *("place", "offset", "csn", "prim_csn", "key", "before", "after", "content"),
    *("row_csn", "image"),
)
_PLAIN = {n: ColumnProperties(dictionary_enabled=False) for n in _DIFFERENT}
FILES = WriterProperties(
    compression="ZSTD",
    compression_level=1,
    statistics_truncate_length=64,
    column_properties=_PLAIN,
)
"""Columns that differ from row to row are not dictionary-encoded: writing takes two thirds of the
time and a third of the bytes of deltalake's defaults. A file's footer has the smallest and the
largest value of each column: cut short, they are bounds as good as the whole values, which may be
large and were written by anybody."""

SMALL_FILES = WriterProperties(
    compression="SNAPPY", statistics_truncate_length=64, column_properties=_PLAIN
)
"""Of appends of up to SMALL_ROWS_BYTES. ZSTD is set up anew for each column and its dictionary,
which for a row of `epochs` takes a fifth of the append's time and saves no byte. Compaction writes
them as FILES."""

SMALL_ROWS_BYTES = 2**16

SCAN = ds.ParquetFragmentScanOptions(pre_buffer=True, thrift_string_size_limit=2**31 - 1)
"""Arrow reads no footer with a value of 100 MB, and earlier versions wrote whole values there."""

LATER = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
"""Checkpoints and old log entries are the maintenance's work: no batch waits for them."""


class RemoteRows(Protocol):
    """Rows that are not on the driver; the executors that hold them append them."""

    @property
    def num_rows(self) -> int:
        """How many."""

    def append(self, uri: str, key: str, number: int) -> None:
        """Append them to the table there, with the application transaction, in one commit.

        CommitFailedError when another hub did so meanwhile, OSError if the storage fails.
        """


Rows: TypeAlias = "pa.Table | RemoteRows"


class StateStore:
    """The tables of one hub. Only one process appends at a time; any number may read.

    `kept_hours`: how long older versions of `rows` can be read.
    """

    def __init__(self, root: StateRoot, kept_hours: int = KEPT_HOURS) -> None:
        self.root = root
        self.kept_hours = kept_hours
        self._open: dict[TableName, DeltaTable] = {}
        self._appended: dict[TableName, tuple[int, str, int]] = {}

    def create(self) -> None:
        """Create the tables that are missing, empty; `epochs` last, for it makes a state root.

        Tables that an earlier hub created get the columns, comments and settings added since.
        """
        make_root(self.root)
        for name in sorted(SCHEMAS, key=lambda n: n is TableName.EPOCHS):
            is_rows = name is TableName.ROWS
            settings = _MERGED if is_rows else _APPENDED
            DeltaTable.create(
                self.uri(name),
                schema=_commented(name),
                mode="ignore",
                description=TABLE_COMMENTS[name],
                configuration={**settings, **(_kept(self.kept_hours) if is_rows else {})},
                storage_options=storage_options(self.root),
            )
            table = open_delta(self.root, name)
            _set(table, settings)
            self._update_schema(name, table)

    def keep_rows(self, hours: int) -> None:
        """Let `rows` keep its versions for so long from now on; nothing is committed if it does."""
        _set(open_delta(self.root, TableName.ROWS), _kept(hours))

    def _update_schema(self, name: TableName, table: DeltaTable) -> None:
        """Add the columns and comments that the table lacks."""
        known = {field.name: field for field in table.schema().fields}
        added = [field for field in _commented(name).fields if field.name not in known]
        if added:
            table.alter.add_columns(added)
        for column, comment in column_comments(name).items():
            if column in known and known[column].metadata.get("comment") != comment:
                table.alter.set_column_metadata(column, {"comment": comment})
        if table.metadata().description != TABLE_COMMENTS[name]:
            table.alter.set_table_description(TABLE_COMMENTS[name])

    def uri(self, name: TableName) -> str:
        """Where a table is."""
        return table_uri(self.root, name.value)

    def table(self, name: TableName) -> DeltaTable:
        """The table at the version that this process last read; see `refreshed`."""
        if name not in self._open:
            self._open[name] = open_delta(self.root, name)
        return self._open[name]

    def refreshed(self, name: TableName) -> DeltaTable:
        """The table at its newest version."""
        table = self.table(name)
        if self.is_behind(name, table.version()):
            table.update_incremental()
        return table

    def is_behind(self, name: TableName, version: int) -> bool:
        """Whether the table may have a newer version: two looks at its log, no list of it.

        Old entries go before newer ones: while that of a version is there, so is the next.
        """
        entries = (f"{name}/_delta_log/{v:020}.json" for v in (version + 1, version))
        is_newer, is_there = exist(self.root, *entries)
        return is_newer or not is_there

    def reopen(self) -> None:
        """Reopen the tables at their newest versions: loaded versions slow down each commit."""
        self._open = {name: open_delta(self.root, name) for name in self._open}

    @contextmanager
    def locked(self) -> Iterator[bool]:
        """Hold the lock of the maintenance; False when another process or thread holds it.

        A bucket has no locks: there Delta alone refuses the second of two compactions.
        """
        if not isinstance(self.root, Path):
            yield True
            return
        with (self.root / LOCK).open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True

    def append_once(
        self, name: TableName, rows: Rows, key: str, number: int, *, first: int | None = None
    ) -> bool:
        """Append unless (key, number) was appended before; False when it was.

        `first`: the rows take all numbers from this one on, and none of them may have been taken.
        The key is an application transaction; Delta refuses a concurrent one, and we look at it
        before appending, because deltalake alone does not.
        """
        table = self.refreshed(name)
        while self._last_number(name, table, key) < (first or number):
            try:
                append(table, rows, key, number)
            except CommitFailedError:
                table.update_incremental()
            else:
                self._appended[name] = table.version(), key, number
                return True
        return False

    def drop_batch(self, name: TableName, key: str, number: int, check: Callable[[], None]) -> None:
        """Delete the rows of this batch if (key, number) was appended, so that it can be again.

        One Delta commit deletes them and sets the application transaction back. It fails if another
        process wrote under the key after `check`, which raises if the batch is no longer ours.
        """
        table = self.refreshed(name)
        if (table.transaction_version(key) or 0) < number:
            return
        check()
        properties = CommitProperties(app_transactions=[Transaction(key, number - 1)])
        delete_rows(table, name, f"batch = {number}", properties)
        self._appended.pop(name, None)

    def _last_number(self, name: TableName, table: DeltaTable, key: str) -> int:
        """The number of the key's last append; reading it from the table takes milliseconds."""
        version, last_key, number = self._appended.get(name, (None, "", 0))
        if (version, last_key) == (table.version(), key):
            return number
        return table.transaction_version(key) or 0

    def read(
        self,
        name: TableName,
        where: pc.Expression | None = None,
        columns: Sequence[str] | None = None,
        keep: Callable[[pa.RecordBatch], np.ndarray] | None = None,
    ) -> pa.Table:
        """Rows of the table as last seen, in the schema's types; for `rows` see lookup.py.

        `keep`: marks the rows of each part that are kept; the others are never in memory at once.
        """
        dataset = self.dataset(name)
        names = list(columns) if columns else None
        if keep is None:
            return dataset.to_table(filter=where, columns=names)
        parts = dataset.to_batches(filter=where, columns=names)
        kept = [part.filter(pa.array(keep(part))) for part in parts]
        return pa.Table.from_batches(kept, dataset.schema)

    def dataset(self, name: TableName) -> ds.Dataset:
        """The table as last seen, to be scanned; not `rows`, which has deletion vectors."""
        files = files_of_table(self.root, name)
        found = self.table(name).to_pyarrow_dataset(filesystem=files)
        found.format.default_fragment_scan_options = SCAN
        return found

    def versions(self) -> dict[str, int]:
        """Table -> Delta version as last seen, `epochs` apart."""
        return {n.value: self.table(n).version() for n in SCHEMAS if n is not TableName.EPOCHS}


def delete_rows(
    table: DeltaTable, name: TableName, condition: str, properties: CommitProperties | None = None
) -> None:
    """Delete the rows for which a condition in SQL is true, in one commit.

    By putting nothing in their place: what deltalake's own DELETE leaves of a file has texts as
    string views, on which Arrow's filters fail.
    """
    write_deltalake(
        table,
        SCHEMAS[name].empty_table(),
        mode="overwrite",
        predicate=condition,
        writer_properties=FILES,
        commit_properties=properties,
        post_commithook_properties=LATER,
    )


@contextmanager
def storage_errors(root: StateRoot) -> Iterator[None]:
    """Raise a failure of the state root's storage as a StateError that names the remedy.

    Connection errors are not the storage's: streaming/jvm/session.py handles those of Spark's JVM.
    """
    try:
        yield
    except ConnectionError:
        raise
    except (DeltaError, OSError) as error:
        raise StateError(
            f"the state in {root} cannot be used ({storage_says(error)}): check its"
            f" {what_to_check(root)}, then start the hub again; nothing is lost, it resumes where"
            " it stopped"
        ) from error


def _set(table: DeltaTable, settings: Mapping[str, str]) -> None:
    """Set what is set otherwise; nothing is committed if nothing is."""
    known = table.metadata().configuration
    if changed := {key: value for key, value in settings.items() if known.get(key) != value}:
        table.alter.set_table_properties(changed)


def _commented(name: TableName) -> Schema:
    """The schema of a table in Delta, with a comment on every column."""
    comments = column_comments(name)
    fields = Schema.from_arrow(SCHEMAS[name]).fields
    return Schema(
        [
            Field(f.name, f.type, nullable=f.nullable, metadata={"comment": comments[f.name]})
            for f in fields
        ]
    )


def append(table: DeltaTable, rows: Rows, key: str, number: int) -> None:
    """Append rows and the application transaction in one Delta commit."""
    if not isinstance(rows, pa.Table):
        rows.append(table.table_uri, key, number)
        table.update_incremental()
        return
    marks = CommitProperties(app_transactions=[Transaction(key, number)])
    write_deltalake(
        table,
        rows,
        mode="append",
        writer_properties=SMALL_FILES if rows.nbytes <= SMALL_ROWS_BYTES else FILES,
        commit_properties=marks,
        post_commithook_properties=LATER,
    )


_NO_ROWS = {name: schema.empty_table() for name, schema in SCHEMAS.items()}


def rows_of(name: TableName, rows: Iterable[Mapping[str, object]]) -> pa.Table:
    """Rows as a table of this table's schema; absent columns are null."""
    found = list(rows)
    return pa.Table.from_pylist(found, schema=SCHEMAS[name]) if found else _NO_ROWS[name]


def among(column: str, values: Sequence[object]) -> pc.Expression:
    """Column in values, as a filter that statistics can prune: its range comes first."""
    ordered = sorted(values)  # type: ignore[type-var]
    field = ds.field(column)
    return (field >= ordered[0]) & (field <= ordered[-1]) & field.isin(ordered)
