"""A copy of a state as one commit left it, made beside a running hub; and a state made of one.

The copy has the tables and no history of Delta: what they held at earlier hub epochs follows from
their rows. It is whole once its manifest is there, which is written last.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import DeltaError

from checkpoints import query
from checkpoints.commit.epochs import Checkpoint
from checkpoints.commit.protocol import KEY as EPOCHS_KEY
from checkpoints.config import KEY as CONFIG_KEY
from checkpoints.format_number import FORMAT
from checkpoints.query import open_table
from checkpoints.reading.reader import open_state
from checkpoints.root import exist, is_inside, read_file, replace_file, storage_says
from checkpoints.store import FILES, StateStore
from checkpoints.tables import SCHEMAS, TableName
from streaming.core.access.root import StateRoot
from streaming.core.model.errors import StateError

MANIFEST = "backup.json"
"""A file beside the tables."""

ROWS_AT_ONCE = 200_000
"""In memory, and in one file of the copy."""


@dataclass(frozen=True, slots=True)
class Backup:
    """What a backup holds: the state behind a batch, and the rows of each table; `at_ms`: when."""

    format: int
    generation: int
    batch: int
    hub_epoch: int
    at_ms: int
    rows: Mapping[str, int]


def back_up(root: StateRoot, place: StateRoot, at_ms: int) -> Backup:
    """Copy the state behind its last commit; StateError if there is none, or if `place` has one.

    A hub may be at work on it: what it commits meanwhile is left out.
    """
    _check_place(root, place)
    rows, commit = _cut(root)
    tables = {name: rows if name is TableName.ROWS else open_table(root, name) for name in SCHEMAS}
    counts = _copy_tables(tables, place, commit.state.batch)
    made = Backup(
        FORMAT, commit.state.generation, commit.state.batch, commit.state.hub_epoch, at_ms, counts
    )
    with writing(place):
        replace_file(place, MANIFEST, json.dumps(asdict(made)).encode())
    return made


def _cut(root: StateRoot) -> tuple[DeltaTable | None, Checkpoint]:
    """`rows` and a commit that belong together.

    What `rows` holds must reach the hub epoch that the commit names, and no further than the
    commit: so it is opened between two commits that name the same one.
    """
    before = open_state(root).commit
    while True:
        rows, commit = open_table(root, TableName.ROWS), open_state(root).commit
        if commit is None:
            raise StateError(
                f"the state in {root} has no committed batch: there is nothing to copy"
            )
        if before is not None and before.rows_epoch == commit.rows_epoch:
            return rows, commit
        before = commit


def restore(place: StateRoot, root: StateRoot) -> Backup:
    """Make a state of a backup; StateError if it is not whole, or if there is a state already."""
    made = manifest(place)
    tables = {name: open_table(place, name) for name in SCHEMAS}
    counts = _copy_tables(tables, root, made.batch)
    if counts != {**dict.fromkeys(counts, 0), **made.rows}:
        raise StateError(
            f"the backup in {place} was changed after it was made: its tables hold {counts}, and"
            f" {MANIFEST} says {made.rows}; remove what is in {root}, and restore another backup"
        )
    return made


def manifest(place: StateRoot) -> Backup:
    """What a backup says of itself; StateError if there is none, or it is of another format."""
    if exist(place, MANIFEST) != [True]:
        raise StateError(
            f"there is no whole backup in {place}: {MANIFEST}, which is written last, is not there"
        )
    try:
        made = Backup(**json.loads(read_file(place, MANIFEST)))
    except (ValueError, TypeError) as error:
        raise StateError(f"{MANIFEST} in {place} cannot be read: {error}") from error
    if made.format != FORMAT:
        raise StateError(
            f"the backup in {place} has format {made.format}, and this version restores {FORMAT}:"
            " restore it with the version that made it"
        )
    return made


def _check_place(root: StateRoot, place: StateRoot) -> None:
    """StateError if a copy of the state in `root` would be inside of it, or in a folder in use."""
    if is_inside(place, root):
        raise StateError(f"{place} is inside of the state, and would be lost with it: name another")
    if isinstance(place, Path) and place.is_dir() and any(place.iterdir()):
        raise StateError(f"{place} is not empty: name a folder for this copy alone")


@contextmanager
def writing(place: StateRoot) -> Iterator[None]:
    """StateError if something cannot be written in this block, with what to do."""
    try:
        yield
    except (DeltaError, OSError) as error:
        raise StateError(
            f"nothing can be written to {place} ({storage_says(error)}): check the name, its rights"
            " and the space; what is there by now is not whole and may be removed"
        ) from error


def _copy_tables(
    tables: Mapping[TableName, DeltaTable | None], place: StateRoot, batch: int
) -> dict[str, int]:
    """Copy what these tables hold up to a batch, `epochs` last; table -> its number of rows.

    StateError if there is a state in `place`, or if nothing can be written there.
    """
    with writing(place):
        if exist(place, TableName.EPOCHS, MANIFEST) != [False, False]:
            raise StateError(
                f"there is a state in {place} already, which would be lost: name another place, or"
                " move it away"
            )
        store = StateStore(place)
        store.create()
        return {
            name.value: _copy(store.table(name), name, tables[name], batch)
            for name in sorted(tables, key=lambda one: one is TableName.EPOCHS)
        }


def _copy(into: DeltaTable, name: TableName, table: DeltaTable | None, batch: int) -> int:
    taken = CommitProperties(app_transactions=list(_taken(name, table, batch)))
    count = 0
    for rows in _pieces(_rows_of(name, table, batch)):
        write_deltalake(into, rows, mode="append", writer_properties=FILES, commit_properties=taken)
        count += rows.num_rows
    return count


def _taken(name: TableName, table: DeltaTable | None, batch: int) -> Iterator[Transaction]:
    """The application transactions that the copy has to have: those whose numbers go on."""
    if name is TableName.EPOCHS:
        yield Transaction(EPOCHS_KEY, 2 * batch + 1)
    if name is TableName.CONFIG and table is not None:
        yield Transaction(CONFIG_KEY, table.transaction_version(CONFIG_KEY) or 0)


def _pieces(parts: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same rows, ROWS_AT_ONCE or a few more at a time."""
    gathered, count = list[pa.Table](), 0
    for part in parts:
        gathered.append(part)
        count += part.num_rows
        if count >= ROWS_AT_ONCE:
            yield pa.concat_tables(gathered)
            gathered, count = [], 0
    if count:
        yield pa.concat_tables(gathered)


def _rows_of(name: TableName, table: DeltaTable | None, batch: int) -> Iterator[pa.Table]:
    """The rows up to a batch, in the types of the table's schema, in pieces."""
    where = [f"batch <= {batch}"] if "batch" in SCHEMAS[name].names else []
    for part in query.scan(table, name, where=where):
        yield _without_versions(part) if name is TableName.EPOCHS else part


def _without_versions(rows: pa.Table) -> pa.Table:
    """Rows of `epochs` name versions of the tables, which the copy does not have."""
    place, field = rows.schema.get_field_index("versions"), rows.schema.field("versions")
    none = pa.array([[]] * rows.num_rows, field.type)
    return rows.set_column(place, field, none)
