"""Who wins: how each conflict function resolves a change that is concurrent with its row."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from streaming.core.model.change import Change, Op
from streaming.core.model.errors import WireError
from streaming.core.model.foreign_json import loads
from streaming.core.model.function import ConflictRule
from streaming.core.model.row import Arrived, RowState, deletes_twice, follows
from streaming.core.model.table import Table
from streaming.core.model.values import Value, comparable, from_json, json_text, to_json
from streaming.core.records.record import Reason

Image = Mapping[str, Value]
"""Column -> value, as Python has it; absent columns are unknown."""


class Winner(StrEnum):
    """Which of the two is kept."""

    ROW = "row"
    """the row as it stands at the hub"""
    CHANGE = "change"
    """the change"""


@dataclass(frozen=True, slots=True)
class Merged:
    """Neither: the row becomes this image, which has every column that either has."""

    image: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The change cannot be judged: the row stands, the change goes to quarantine for `reason`."""

    detail: str
    reason: Reason = Reason.FUNCTION


Resolution = Winner | Merged | Failed


@dataclass(frozen=True, slots=True)
class ConflictFacts:
    """What a user's function receives besides the two images.

    `before`: the change's before-image, if it came with one. `mre`: the hub epoch up to which
    `author` had seen everything; `row_epoch`: the one in which the row was written.
    """

    table: str
    key: str
    op: str
    csn: str
    author: int
    mre: int
    row_csn: str | None
    row_author: int
    row_epoch: int
    before: Image | None


UserFunction = Callable[[Image | None, Image | None, ConflictFacts], object]
"""(row, change, facts) -> Winner or the merged image; row or change is None where it is deleted."""


def winner(arrived: Arrived, row: RowState, table: Table, user: UserFunction | None) -> Resolution:
    """What the table's function decides; `user`: the function of rule USER."""
    if table.function.rule is ConflictRule.USER:
        return _by_user(arrived, row, table, user)
    return Winner.CHANGE if _wins(arrived, row, table) else Winner.ROW


def kept_hidden(arrived: Arrived, _: RowState, __: Table) -> Resolution:
    """A write that its table keeps from everybody, for its replica is not shown the row."""
    return Failed(
        f"its row is not shown to replica {arrived.change.rid} as it stands: release it to write"
        " the row nevertheless, or drop it",
        Reason.HIDDEN,
    )


def _wins(arrived: Arrived, row: RowState, table: Table) -> bool:
    change = arrived.change
    match table.function.rule:
        case ConflictRule.EPOCH | ConflictRule.EPOCH_TRANS | ConflictRule.USER:
            return False
        case ConflictRule.EPOCH2:  # a delete of a deleted row, or of the row's own author
            return deletes_twice(change, row) or follows(arrived, row)
        case (
            ConflictRule.OLD
            | ConflictRule.MAX
            | ConflictRule.MAX_DELETE_WIN
            | ConflictRule.MAX_INS
            | ConflictRule.MAX_DEL_WIN_INS
        ):
            return _by_column(change, row, table)
        case ConflictRule.CSN:
            return row.csn is None or change.csn > row.csn
        case ConflictRule.PRIMARY:
            return change.rid == table.function.replica
        case ConflictRule.PASS:
            return True


def missing(change: Change, table: Table) -> tuple[Reason, str] | None:
    """Return what the change lacks that its table's function needs; None: nothing.

    It is checked for every change, concurrent or not, so that the outcome does not depend on how
    the input is cut into batches. A before-image without the column is enough: the change corrects
    a value that no record can hold, and which is therefore not the row's.
    """
    column = table.function.column
    if column is None or change.op.is_of_table:
        return None
    if needs_before(table, change.op) and change.before is None:
        return Reason.BEFORE, f"{table.function} needs a before-image with column {column}"
    if change.op.has_image and column not in loads(change.after or "{}"):
        return Reason.BEFORE, f"{table.function} needs column {column} in after"
    return None


def needs_before(table: Table, op: Op) -> bool:
    """Return whether the table's function needs a before-image for this operation."""
    rule = table.function.rule
    if op is Op.UPDATE:
        return rule is ConflictRule.OLD
    return op is Op.DELETE and rule in (ConflictRule.OLD, ConflictRule.MAX, ConflictRule.MAX_INS)


def _by_column(change: Change, row: RowState, table: Table) -> bool:
    """The column functions (NDB: ndb_conflict.cc, decision table)."""
    rule = table.function.rule
    if not row.exists:  # nothing to compare with: only an insert makes sense
        return change.op is Op.INSERT
    if not change.op.has_image:
        always = rule in (ConflictRule.MAX_DELETE_WIN, ConflictRule.MAX_DEL_WIN_INS)
        return always or _was_as(change, row, table)
    if change.op is Op.INSERT and rule not in (ConflictRule.MAX_INS, ConflictRule.MAX_DEL_WIN_INS):
        return False
    match rule:
        case ConflictRule.OLD:
            return _was_as(change, row, table)
        case (
            ConflictRule.MAX
            | ConflictRule.MAX_DELETE_WIN
            | ConflictRule.MAX_INS
            | ConflictRule.MAX_DEL_WIN_INS
        ):
            return _value(change.after, table) > _value(row.image, table)
        case _:
            raise AssertionError(f"{rule} compares no column")


def _was_as(change: Change, row: RowState, table: Table) -> bool:
    """Return whether the change was made on the row's value; one that is not told is another."""
    is_known = table.function.column in loads(change.before or "{}")
    return is_known and _value(change.before, table) == _value(row.image, table)


def _value(image: str | None, table: Table) -> tuple[Any, ...]:
    """The compared column's value; one that is unknown counts as null."""
    column = table.function.column or ""
    return comparable(from_json(loads(image or "{}").get(column), table.columns[column]))


def _by_user(
    arrived: Arrived, row: RowState, table: Table, user: UserFunction | None
) -> Resolution:
    """Call the user's function. Whatever it does, the hub continues."""
    change = arrived.change
    if user is None:
        return Failed(f"conflict function {table.function} was not loaded")
    facts = ConflictFacts(
        change.table,
        change.key,
        change.op.value,
        change.csn,
        change.rid,
        arrived.mre,
        row.csn,
        row.author,
        row.hub_epoch,
        _image(change.before, table),
    )
    after = None if not change.op.has_image else _image(change.after, table)
    standing = _image(row.image, table)
    known = frozenset([*(standing or {}), *(after or {})])
    try:
        return _validated(user(standing, after, facts), arrived, table, known)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it is not our code
        return Failed(f"{table.function} failed: {type(error).__name__}: {_error_text(error)}")


def _validated(
    answer: object, arrived: Arrived, table: Table, known: Collection[str]
) -> Resolution:
    """Validate what a user's function returned; inspecting it may run the user's code too."""
    if isinstance(answer, Winner):
        return answer
    if not isinstance(answer, Mapping):
        return Failed(f"{table.function} returned {answer!r}: neither a Winner nor an image")
    return _merged(answer, arrived, table, known)


def _error_text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - it is not our code either
        return "str() of the error failed"


def _merged(
    answer: Mapping[str, Value], arrived: Arrived, table: Table, known: Collection[str]
) -> Resolution:
    """The image that a user's function made, if it is a row of this table under this key.

    `known`: the columns that the row or the change has; it may leave out the others alone.
    """
    if not arrived.change.op.has_image:
        return Failed(f"{table.function} returned an image for a delete: return a Winner")
    unknown = [name for name in answer if name not in table.columns]
    lacking = [name for name in table.columns if name in known and name not in answer]
    if unknown or lacking:
        names = ", ".join(map(str, [*unknown, *lacking]))
        return Failed(f"{table.function} returned another set of columns: see {names}")
    try:
        image = {
            name: to_json(answer[name], kind)
            for name, kind in table.columns.items()
            if name in answer
        }
    except WireError as error:
        return Failed(f"{table.function} returned what does not fit: {error}")
    if json_text({name: image[name] for name in table.key}) != arrived.change.key:
        return Failed(f"{table.function} returned another key than {arrived.change.key}")
    return Merged(json_text(image))


def _image(text: str | None, table: Table) -> Image | None:
    if text is None:
        return None
    values = loads(text)
    return {name: from_json(value, table.columns[name]) for name, value in values.items()}
