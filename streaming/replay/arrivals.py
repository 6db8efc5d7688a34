"""The records that a batch took, from what it left in the tables: the inverse of stages/log.py.

Each record left one row in the batch that took it: a change in the changelog if it was judged at
once, else in `pending`; what the hub could not use in the quarantine with its bytes; control
records and repeated changes in `events`. Of those rows only what the record itself said is used.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from checkpoints import pending
from checkpoints.commit.recorded import RecordedRows
from checkpoints.store import StateStore, among
from checkpoints.tables import CHANGE_FIELDS, QUARANTINE, TableName
from streaming.core.model.change import Op
from streaming.core.model.values import json_text
from streaming.core.records.arrival import ControlOutcome
from streaming.core.records.record import Reason, RecordKind
from streaming.hub.batch.settings import BatchSettings
from streaming.stages.checked import CHECKED, NO_CHECKED, Bools, bools, checked
from streaming.stages.log import CHANGE

INPUT = ("rid", "offset", "time", "session")
"""Where and when a record came, and who sent it."""

CHANGE_INPUT = (*INPUT, *(name for name, _ in CHANGE_FIELDS), "app", "snapshot")
"""The columns of changelog and `pending` that the change itself brought."""

Check = Callable[[pa.Table], pa.Table]
"""Records as topic, offset, timestamp, value -> CHECKED under the configuration of then."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Finds what arrived with each batch; `store` tells what was known before."""

    store: StateStore

    def of(self, rows: RecordedRows, settings: BatchSettings, check: Check) -> pa.Table:
        """The records that a batch took as CHECKED, in any order."""
        waited = rows.tables[TableName.PENDING]
        judged = _judged_at_once(rows.tables[TableName.CHANGELOG], waited, settings.hub_rid)
        opened = self._opened(waited, rows.batch)
        changes = pa.concat_tables([judged.select(CHANGE_INPUT), opened.select(CHANGE_INPUT)])
        events = rows.tables[TableName.EVENTS]
        kept = self._kept(rows.tables[TableName.QUARANTINE], changes, rows.batch)
        is_whole = pc.and_(pc.is_valid(kept["value"]), pc.is_null(kept["sha256"]))
        whole = kept.filter(is_whole)
        bytes_ = pa.concat_tables([_of_control(events), _records(whole, whole["value"])])
        cut = _not_kept_whole(kept.filter(pc.invert(is_whole)), settings)
        parts = [NO_CHECKED, _changes(changes, settings), _repeated(events), cut]
        return pa.concat_tables([*parts, check(bytes_)] if bytes_.num_rows else parts)

    def _opened(self, waited: pa.Table, batch: int) -> pa.Table:
        """The rows of `pending` of changes that came with this batch and were not judged in it.

        A change that was there before is written again when it is committed or ended.
        """
        there = pc.and_(pc.is_valid(waited["csn"]), pc.not_equal(waited["action"], pending.GONE))
        found = waited.filter(there)
        found = found.filter(pa.array(_first_of(found, _PLACE)))
        return self._without_known(found, TableName.PENDING, _PLACE, batch)

    def _kept(self, kept: pa.Table, changes: pa.Table, batch: int) -> pa.Table:
        """The records that went to quarantine as they were read, and not later with others.

        A record whose release was refused is written again.
        """
        read = pc.and_(pc.equal(kept["action"], "kept"), pc.is_valid(kept["topic"]))
        is_known = pc.or_(pc.is_valid(kept["value"]), pc.is_valid(kept["epoch"]))
        found = kept.filter(pc.and_(read, pc.or_(is_known, _is_unreadable(kept))))
        if not found.num_rows:
            return found
        found = _without(found, ("rid", "offset"), changes)
        found = self._without_known(found, TableName.PENDING, _PLACE, batch)
        return self._without_known(found, TableName.QUARANTINE, ("id",), batch)

    def _without_known(
        self, rows: pa.Table, name: TableName, names: tuple[str, ...], batch: int
    ) -> pa.Table:
        """The rows whose values in these columns the table did not have before this batch."""
        values = pc.unique(rows[names[0]]).drop_null().to_pylist()
        if not values:
            return rows
        where = (ds.field("batch") < batch) & among(names[0], values)
        if name is TableName.QUARANTINE:
            where &= ds.field("action") == "kept"
        return _without(rows, names, self.store.read(name, where, names))


_PLACE = ("csn", "rid", "offset")
"""What names the record of a change."""


def _judged_at_once(log: pa.Table, waited: pa.Table, hub_rid: int) -> pa.Table:
    """The judged changes that came with this batch: a waiting one leaves `pending` with it.

    The hub's own changes follow from the commands.
    """
    gone = waited.filter(pc.equal(waited["action"], pending.GONE))["csn"].combine_chunks()
    is_change = pc.and_(pc.equal(log["kind"], CHANGE), pc.not_equal(log["rid"], hub_rid))
    return log.filter(pc.and_(is_change, pc.invert(pc.is_in(log["csn"], gone))))


def _changes(changes: pa.Table, settings: BatchSettings) -> pa.Table:
    columns = {name: changes[name] for name in CHANGE_INPUT}
    columns["kind"] = pa.array([RecordKind.CHANGE.value] * changes.num_rows, pa.string())
    columns["partial"] = pa.array(_lacks_columns(changes, settings))
    return checked(columns, changes.num_rows)


def _lacks_columns(changes: pa.Table, settings: BatchSettings) -> Bools:
    """Mark the after-images that lack columns. Text is canonical: see stages/intake.py."""
    lacking = np.zeros(changes.num_rows, dtype=np.bool_)
    written = bools(pc.not_equal(changes["op"], Op.DELETE.value))
    for name, table in settings.topology.tables.items():
        here = bools(pc.equal(changes["table"], name)) & written
        if here.any():
            for column in table.columns:
                there = bools(pc.match_substring(changes["after"], json_text(column) + ":"))
                lacking |= here & ~there
    return lacking


def _repeated(events: pa.Table) -> pa.Table:
    """Changes that were known already: their CSN and content say so again.

    A truncate at which an earlier version stopped its replica is one too.
    """
    bare = pc.and_(pc.equal(events["kind"], RecordKind.CHANGE.value), pc.equal(events["value"], ""))
    found = events.filter(pc.and_(bare, pc.is_valid(events["csn"])))
    columns = {name: found[name] for name in (*INPUT, "kind", "csn", "content")}
    stops = pc.equal(found["outcome"], ControlOutcome.STOPPED.value)
    columns["op"] = pc.if_else(stops, Op.TRUNCATE.value, Op.UPDATE.value)
    columns["epoch"] = pa.array(np.zeros(found.num_rows, dtype=np.int64))
    columns["partial"] = pa.array(np.zeros(found.num_rows, dtype=np.bool_))
    return checked(columns, found.num_rows).cast(CHECKED)


def _of_control(events: pa.Table) -> pa.Table:
    """The bytes of control records, and of repeated changes that were not valid."""
    found = events.filter(pc.not_equal(events["value"], ""))
    return _records(found, found["value"].cast(pa.binary()))


def _is_unreadable(kept: pa.Table) -> pa.ChunkedArray:
    """Mark the records that nobody could read."""
    return pc.equal(kept["reason"], Reason.UNREADABLE.value)


def _not_kept_whole(kept: pa.Table, settings: BatchSettings) -> pa.Table:
    """Records whose bytes are not all there, by what was found out about them.

    Invalid ones are so for the reason that is recorded, and control records count as such. A valid
    change is quarantined once more by what came before it, whatever its images hold; where their
    columns or its snapshot are looked at first, others stand for them that have the same effect.
    """
    columns = {name: kept[name] for name in _OF_CHANGE}
    is_given = pc.or_(_is_invalid(kept), pc.is_null(kept["op"]))
    for name in ("reason", "detail"):
        columns[name] = pc.if_else(is_given, kept[name], _NO_TEXT)
    kind = pa.scalar(RecordKind.CHANGE.value)
    columns["kind"] = pc.if_else(pc.is_valid(kept["op"]), kind, _NO_TEXT)
    columns["before"] = columns["after"] = _stand_ins(kept, settings)
    of_session = pc.equal(kept["reason"], Reason.SESSION.value)
    columns["snapshot"] = pc.if_else(of_session, "not kept", _NO_TEXT)
    columns["partial"] = pa.array(np.zeros(kept.num_rows, dtype=np.bool_))
    return checked(columns, kept.num_rows)


_NO_TEXT = pa.scalar(None, pa.string())


def _is_invalid(kept: pa.Table) -> pa.ChunkedArray:
    """Mark the records that are invalid by themselves; earlier versions cut no others."""
    is_cut = pc.or_(pc.is_valid(kept["sha256"]), _is_unreadable(kept))
    return pc.coalesce(kept["invalid"], is_cut)


def _stand_ins(kept: pa.Table, settings: BatchSettings) -> pa.ChunkedArray:
    """Images with all columns, where a function needs some, but of what is known to lack them."""
    found = pa.chunked_array([pa.nulls(kept.num_rows, pa.string())])
    is_lacking = pc.equal(kept["reason"], Reason.BEFORE.value)
    for name, table in settings.topology.tables.items():
        if table.function.column is not None:
            image = json_text(dict.fromkeys(table.columns))
            here = pc.and_(pc.equal(kept["table"], name), pc.invert(is_lacking))
            found = pc.if_else(here, image, found)
    return found


_OF_CHANGE = [name for name in CHANGE_INPUT if name in QUARANTINE.names]
"""What quarantine has of a change besides its bytes."""


def _records(rows: pa.Table, value: pa.ChunkedArray) -> pa.Table:
    columns = {"topic": rows["topic"], "offset": rows["offset"], "timestamp": rows["time"]}
    return pa.table({**columns, "value": value})


def _first_of(rows: pa.Table, names: Sequence[str]) -> Bools:
    """Mark the first row of each combination of values."""
    seen, first = set[tuple[object, ...]](), np.zeros(rows.num_rows, dtype=np.bool_)
    for number, values in enumerate(_values(rows, names)):
        first[number] = values not in seen
        seen.add(values)
    return first


def _without(rows: pa.Table, names: Sequence[str], known: pa.Table) -> pa.Table:
    """The rows whose values in these columns are in no row of the other table."""
    if not (rows.num_rows and known.num_rows):
        return rows
    there = set(_values(known, names))
    return rows.filter(pa.array([one not in there for one in _values(rows, names)], pa.bool_()))


def _values(rows: pa.Table, names: Sequence[str]) -> Iterator[tuple[object, ...]]:
    return zip(*(rows[name].to_pylist() for name in names), strict=True)
