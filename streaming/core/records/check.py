"""The rule of a record: its bytes and its topic -> canonical texts, or what is wrong.

The rule is written here and in the modules that this one names: members.py, form.py, images.py.
Whatever hurries it (stages/check.py) may only say that a record is surely good, and must give the
same texts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from streaming.core.model.change import Change, Op, content_of
from streaming.core.model.column_filter import ColumnFilter
from streaming.core.model.csn import rid_of
from streaming.core.model.errors import WireError
from streaming.core.model.ruv import parse_ruv
from streaming.core.model.table import Table
from streaming.core.model.truncation import ALL_KEYS
from streaming.core.model.values import is_utf8, raw_text
from streaming.core.records.form import csn_fault, form_fault, has_id, rid_fault
from streaming.core.records.images import CanonicalImages, images_of
from streaming.core.records.kinds import KINDS, FieldType
from streaming.core.records.members import Fields, RecordFault, got, is_text, number, parse
from streaming.core.records.record import (
    RECORD_BYTES,
    WIRE_VERSIONS,
    Reason,
    Record,
    RecordKind,
    Snapshot,
)
from streaming.core.records.snapshot_row import snapshot_row

VERSION = WIRE_VERSIONS[-1]
"""The wire's newest version that is read here."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a record may be at most: its wire version and its bytes; and what it may write.

    `writes`: rid -> the tables that this replica may write; a replica that is absent may write all.
    `columns`: rid -> table -> the columns that this replica has; of a table that is absent all.
    """

    version: int = VERSION
    record_bytes: int = RECORD_BYTES
    writes: Mapping[int, frozenset[str]] = field(default_factory=dict)
    columns: Mapping[int, Mapping[str, ColumnFilter]] = field(default_factory=dict)


LIMITS = Limits()

PARSED_TIMES = 4
"""A record of up to so many times `record_bytes` is parsed, so that its row can be named. Agents
write none above `record_bytes`, unless that was lowered."""


class CheckedRecord(NamedTuple):
    """A record in canonical texts; `reason` and `detail` are set if it goes to quarantine.

    Of a record with a reason the other fields hold what could be parsed of it.
    `content`: of a change, its content hash (Change.content). `partial`: `after` lacks columns of
    its table. `snapshot`: of a row of a snapshot, its id; the row is a change.
    """

    reason: Reason | None = None
    detail: str | None = None
    kind: str | None = None
    session: str | None = None
    csn: str | None = None
    prim_csn: str | None = None
    epoch: int | None = None
    table: str | None = None
    key: str | None = None
    op: str | None = None
    before: str | None = None
    after: str | None = None
    opno: int | None = None
    content: str | None = None
    partial: bool = False
    app: str | None = None
    snapshot: str | None = None


def check(
    value: bytes, rid: int, tables: Mapping[str, Table], limits: Limits = LIMITS
) -> CheckedRecord:
    """Check one record of the topic of replica `rid`.

    The rules stand in the order of their reasons: json, version, kind, csn, rid, rights, table,
    key, size, session; the first that is broken is the reason. One of many times the size is not
    parsed.
    """
    if len(value) > PARSED_TIMES * limits.record_bytes:
        return CheckedRecord(*size_fault(len(value), limits))
    fields = parse(value)
    if isinstance(fields, RecordFault):
        return CheckedRecord(*fields)
    row = snapshot_row(fields)
    fields = row.fields if row else fields
    fault = form_fault(fields, limits.version) or csn_fault(fields) or rid_fault(fields, rid)
    images = None
    if fault is None and fields["kind"] == RecordKind.CHANGE:
        found = images_of(fields, tables)
        images = found if isinstance(found, CanonicalImages) else None
        fault = _rights_fault(fields, rid, tables, limits)
        fault = fault or (found if isinstance(found, RecordFault) else None)
    fault = fault or _size_fault(value, limits) or _session_fault(fields)
    if fault is not None:
        return _quarantined(fields, fault, images)
    if images is not None:
        checked = _checked_change(fields, images, row.id if row else None)
        return _with_own_columns(checked, limits.columns.get(rid, {}).get(fields["table"]))
    return CheckedRecord(
        kind=fields["kind"],
        session=fields["session"],
        epoch=number(fields.get("epoch")),
        prim_csn=fields.get("prim_csn"),
    )


def decode(value: bytes) -> tuple[str, Record]:
    """A record of any changes topic as (session, record); WireError if it is none.

    Key and images are compact text as they were written; they are not checked against a table.
    """
    fields = parse(value)
    if isinstance(fields, RecordFault):
        raise WireError(fields.detail)
    row = snapshot_row(fields)
    fields = row.fields if row else fields
    fault = form_fault(fields, VERSION) or csn_fault(fields) or _session_fault(fields)
    if fault is not None:
        raise WireError(fault.detail)
    record = _record(fields)
    if row is not None and isinstance(record, Change):
        record = record._replace(snapshot=row.id)
    return fields["session"], record


def decode_checked(value: bytes) -> Record:
    """A control record in which `check` found no fault: its form is not checked again."""
    fields = parse(value)
    if isinstance(fields, RecordFault):
        raise WireError(fields.detail)
    return _record(fields)


# -- rights, size, session -------------------------------------------------------------------------


def _rights_fault(
    fields: Fields, rid: int, tables: Mapping[str, Table], limits: Limits
) -> RecordFault | None:
    table, allowed = fields["table"], limits.writes.get(rid)
    if allowed is None or not is_text(table) or table in allowed or table not in tables:
        return None
    names = ", ".join(sorted(allowed)) or "none"
    return RecordFault(Reason.RIGHTS, f"replica {rid} may not write table {table}, but: {names}")


def _size_fault(value: bytes, limits: Limits) -> RecordFault | None:
    return size_fault(len(value), limits) if len(value) > limits.record_bytes else None


def size_fault(size: int, limits: Limits) -> RecordFault:
    """The fault of a record of so many bytes, which are too many."""
    return RecordFault(Reason.SIZE, f"{size} bytes, {limits.record_bytes} are allowed")


def _session_fault(fields: Fields) -> RecordFault | None:
    session = fields.get("session")
    if session is None or session == "":
        return RecordFault(Reason.SESSION, "missing: session")
    if not is_text(session):
        found = got(session)
        return RecordFault(Reason.SESSION, f"field session: expected {FieldType.TEXT}, got {found}")
    return None


# -- what is made of the fields --------------------------------------------------------------------


def _change(fields: Fields, images: CanonicalImages) -> Change:
    return Change(
        fields["csn"],
        0,
        number(fields["epoch"]) or 0,
        fields["table"],
        images.key,
        fields["op"],
        images.after,
        images.before,
        fields.get("prim_csn"),
        number(fields.get("opno")),
    )


def _checked_change(fields: Fields, images: CanonicalImages, snapshot: str | None) -> CheckedRecord:
    change = _change(fields, images)
    return CheckedRecord(
        None,
        None,
        RecordKind.CHANGE.value,
        fields["session"],
        change.csn,
        change.prim_csn,
        change.epoch,
        change.table,
        images.key,
        change.op,
        images.before,
        images.after,
        change.opno,
        change.content,
        images.partial,
        fields.get("app"),
        snapshot,
    )


def _with_own_columns(change: CheckedRecord, known: ColumnFilter | None) -> CheckedRecord:
    """A change without the columns that its replica is not sent (docs/protocol.md, Filters).

    Its database may have got them before it was sent them, with a default that nobody wrote
    (docs/traps.md, A hidden column has a default). The hash of its content stays that of its
    record, by which a repeat is known under any filter.
    """
    if known is None:
        return change
    before, after = known.shown(change.before), known.shown(change.after)
    return change._replace(before=before, after=after, partial=after is not None)


def _quarantined(
    fields: Fields, fault: RecordFault, images: CanonicalImages | None
) -> CheckedRecord:
    """What an operator sees of a bad record, and by what a repeat of it is known.

    `images`: of a change that may not be written, or is too large, now; it may have been accepted
    before that, and then this is a repeat of it.
    """
    kind = _known(fields, "kind")
    values: dict[str, Any] = {name: _known(fields, name) for name in _TEXTS}
    epoch, opno = number(fields.get("epoch")), number(fields.get("opno"))
    content = None
    if images is not None:
        content = _change(fields, images).content
    elif kind == RecordKind.CHANGE and values["csn"] is not None:
        key = ALL_KEYS if values["op"] == Op.TRUNCATE else values["key"]
        content = content_of({**values, "key": key, "epoch": epoch, "opno": opno})
    return CheckedRecord(
        *fault,
        kind=kind,
        session=_known(fields, "session"),
        epoch=epoch,
        opno=opno,
        content=content,
        app=_known(fields, "app"),
        **values,
    )


_TEXTS = ("csn", "prim_csn", "table", "key", "op", "before", "after")


def _known(fields: Fields, name: str) -> str | None:
    """A field as text, whatever it is; None if it is missing, null, or cannot be stored."""
    value = fields.get(name)
    if value is None:
        return None
    text = str(value) if isinstance(value, str) else raw_text(value)
    return text if is_utf8(text) else None


def _record(fields: Fields) -> Record:
    """A record whose form was checked."""
    kind = RecordKind(fields["kind"])
    form = KINDS[kind]
    values = {field.name: _value(fields.get(field.name), field.type) for field in form.fields}
    if kind is RecordKind.CHANGE:
        rid, op = rid_of(fields["csn"]), Op(fields["op"])
        return Change(**{**values, "rid": rid, "op": op, "key": values["key"] or ""})
    if kind is RecordKind.SNAPSHOT:
        phase = next(name for name in form.alternatives if has_id(fields.get(name)))
        part = fields[phase]
        table = part["table"] if is_text(part.get("table")) else None
        return Snapshot(phase, part["id"], table, number(part.get("count")))
    return form.type(**values)


def _value(value: object, type_: FieldType) -> Any:  # noqa: ANN401 - of many types
    match type_:
        case FieldType.COUNTER | FieldType.ORDINAL:
            return number(value)
        case FieldType.RUV if isinstance(value, list):
            return parse_ruv(value)
        case FieldType.VERSIONS if isinstance(value, list):
            return tuple(number(one) for one in value)
        case FieldType.NAMES if isinstance(value, list):
            return tuple(value)
        case FieldType.OBJECT | FieldType.WRITES if value is not None:
            return raw_text(value)
        case _:
            return value
