"""A state of an older format, copied into one of this format; the old one stays as it is.

So a migration is undone by naming the old state again, until a hub has judged a batch on the new
one: from then on the old one is behind what was sent, and a hub refuses it as restored.

True of every format, beside what checkpoints/commit/state_format.py reads: a table whose rows
belong to a batch names it `batch`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import NamedTuple

import pyarrow as pa
from deltalake import DeltaTable

from checkpoints.commit.epochs import check_format
from checkpoints.commit.state_format import Newest, newest
from checkpoints.format_number import FORMAT
from checkpoints.maintenance.backup import check_place, copy_tables, upto, without_versions
from checkpoints.query import execute, open_table, parts, records
from checkpoints.tables import SCHEMAS, TableName
from streaming.core.access.root import StateRoot
from streaming.core.model.errors import StateError


class Migration(NamedTuple):
    """The step from one format to the next.

    says: what it changes, for the operator. tables: table -> its rows in the format before -> its
    rows in this one, as many. A column that only one of the formats has needs no step: it is left
    out, or null.
    """

    says: str
    tables: Mapping[TableName, Callable[[pa.Table], pa.Table]]


MIGRATIONS: Mapping[int, Migration] = {}
"""Format -> the step that makes it of the one before. Who raises FORMAT adds one."""


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """A state of an older format: its last hub epoch, its steps, the rows of each table."""

    format: int
    to: int
    batch: int
    hub_epoch: int
    steps: tuple[str, ...]
    rows: Mapping[str, int]

    def document(self) -> dict[str, object]:
        """The same for JSON."""
        return asdict(self)


def plan_migration(root: StateRoot) -> MigrationPlan | None:
    """What `migrate` would do; None: the state has this format already.

    StateError: there is no state, or its format is newer or cannot be migrated.
    """
    return _plan(root, newest(root))


def _plan(root: StateRoot, last: Newest | None) -> MigrationPlan | None:
    if last is None:
        raise StateError(f"there is no state in {root}: name it in hub.state")
    if last.format == FORMAT:
        return None
    if last.format > FORMAT:
        check_format(last.format)
    steps = range(last.format + 1, FORMAT + 1)
    if missing := [number for number in steps if number not in MIGRATIONS]:
        raise StateError(
            f"this version cannot make format {missing[0]} of the state in {root}, which has"
            f" {last.format}: migrate it with an earlier version first, see the CHANGELOG"
        )
    counts = {name.value: _count(open_table(root, name), last.batch) for name in SCHEMAS}
    says = tuple(MIGRATIONS[number].says for number in steps)
    return MigrationPlan(last.format, FORMAT, last.batch, last.hub_epoch, says, counts)


def migrate(root: StateRoot, place: StateRoot) -> MigrationPlan | None:
    """Make a state of this format in `place`; None: `root` has it already, nothing is written.

    No hub may be at work on `root`. StateError as `plan_migration`, `check_place` and
    `copy_tables`, and if a batch is not finished.
    """
    last = newest(root)
    plan = _plan(root, last)
    if last is None or plan is None:
        return None
    check_place(root, place)
    if last.is_plan:
        raise StateError(
            f"batch {last.batch} of the state in {root} is not finished: start the version that"
            " wrote it once, which finishes it, and stop it"
        )
    steps = [MIGRATIONS[number] for number in range(plan.format + 1, FORMAT + 1)]

    def rows_of(name: TableName, table: DeltaTable | None, batch: int) -> Iterator[pa.Table]:
        if table is not None:
            for part in parts(table, _sql("*", table, batch)):
                yield _migrated(name, part, steps)

    tables = {name: open_table(root, name) for name in SCHEMAS}
    counts = copy_tables(tables, place, plan.batch, rows_of)
    if counts != plan.rows:
        raise StateError(
            f"the tables in {root} hold {plan.rows}, and {counts} were copied to {place}: a hub is"
            f" at work on it, or a step is wrong; remove what is in {place}"
        )
    return plan


def _count(table: DeltaTable | None, batch: int) -> int:
    if table is None:
        return 0
    (row,) = records(execute(table, _sql("count(*) AS count", table, batch)))
    return int(row["count"])


def _sql(chosen: str, table: DeltaTable, batch: int) -> str:
    """A query of the rows up to a batch, in the columns that the table has."""
    conditions = upto((field.name for field in table.schema().fields), batch)
    return " WHERE ".join([f"SELECT {chosen} FROM t", *conditions])  # noqa: S608


def _migrated(name: TableName, rows: pa.Table, steps: list[Migration]) -> pa.Table:
    for step in steps:
        if name in step.tables:
            rows = step.tables[name](rows)
    schema = SCHEMAS[name]
    columns = [
        rows[field.name].cast(field.type)
        if field.name in rows.column_names
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    made = pa.table(columns, schema=schema)
    if name is not TableName.EPOCHS:
        return made
    place, field = schema.get_field_index("format"), schema.field("format")
    made = made.set_column(place, field, pa.array([FORMAT] * made.num_rows, field.type))
    return without_versions(name, made)
