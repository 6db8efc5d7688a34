"""The rule of a record: its bytes, its topic and its time -> canonical texts, or what is wrong.

This is the only place where the rule is written. Whatever hurries it (stages/check.py) may only say
that a record is surely good, and must say the same texts.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Any, NamedTuple, NoReturn

from streaming.core.model.change import Change, Op
from streaming.core.model.csn import CSN_PATTERN, MAX_SKEW_S, rid_of, time_of
from streaming.core.model.errors import RuvError, WireError
from streaming.core.model.kinds import KINDS, NUMBERS, FieldType
from streaming.core.model.record import (
    RECORD_BYTES,
    WIRE_VERSIONS,
    Reason,
    Record,
    RecordKind,
    Snapshot,
)
from streaming.core.model.ruv import parse_ruv
from streaming.core.model.table import Table
from streaming.core.model.values import (
    EXPECTED,
    Number,
    canonical_text,
    is_utf8,
    json_text,
    raw_text,
)

VERSION = WIRE_VERSIONS[-1]
"""The wire's newest version that is read here."""

LABEL_CHARS = 100
"""What `app` may have at most."""

SHOWN_CHARS = 100
"""No more of a value is shown in a message."""

_CSN = re.compile(CSN_PATTERN.removeprefix("^").removesuffix("$"))
_DIGITS = re.compile(r"-?[0-9]{1,19}")


@dataclass(frozen=True, slots=True)
class Limits:
    """What a record may be at most: its wire version, its bytes, its CSN ahead of its time."""

    version: int = VERSION
    record_bytes: int = RECORD_BYTES
    skew_s: int = MAX_SKEW_S


LIMITS = Limits()


class CheckedRecord(NamedTuple):
    """A record in canonical texts; `reason` and `detail` are set if it goes to quarantine.

    Of a record with a reason the other fields are what it has of them, as far as they can be told.
    `content`: of a change, its content hash (Change.content). `partial`: `after` lacks columns of
    its table.
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


class Fault(NamedTuple):
    """The first rule that a record breaks, and how."""

    reason: Reason
    detail: str


Fields = Mapping[str, Any]
"""The members of a record as JSON has them, numbers as Number."""


def check(
    value: bytes, rid: int, time_ms: int, tables: Mapping[str, Table], limits: Limits = LIMITS
) -> CheckedRecord:
    """Check one record of the topic of replica `rid` that came at `time_ms`.

    The rules stand in the order of their reasons: json, version, kind, csn, rid, table, key, size,
    skew, session; the first that is broken is the reason.
    """
    fields = parse(value)
    if isinstance(fields, Fault):
        return CheckedRecord(*fields)
    fault = _form_fault(fields, limits.version) or _csn_fault(fields) or _rid_fault(fields, rid)
    images = None
    if fault is None and fields["kind"] == RecordKind.CHANGE:
        images = _images(fields, tables)
        fault = images if isinstance(images, Fault) else None
    fault = fault or (
        _size_fault(value, limits) or _skew_fault(fields, time_ms, limits) or _session_fault(fields)
    )
    if fault is not None:
        return _quarantined(fields, fault)
    if isinstance(images, _Images):
        return _change(fields, images)
    return CheckedRecord(
        kind=fields["kind"],
        session=fields["session"],
        epoch=_number(fields.get("epoch")),
        prim_csn=fields.get("prim_csn"),
    )


def decode(value: bytes) -> tuple[str, Record]:
    """A record of any changes topic as (session, record); WireError if it is none.

    Key and images are compact text as they were written: whether they fit a table is not asked.
    """
    fields = parse(value)
    if isinstance(fields, Fault):
        raise WireError(fields.detail)
    fault = _form_fault(fields, VERSION) or _csn_fault(fields) or _session_fault(fields)
    if fault is not None:
        raise WireError(fault.detail)
    return fields["session"], _record(fields)


# -- JSON ------------------------------------------------------------------------------------------


class Repeated(dict[str, Any]):
    """An object in which a member stands twice; the last counts."""


def parse(value: bytes) -> Fields | Fault:
    """The members of a record; a Fault if it is not one JSON object in UTF-8."""
    try:
        found = json.loads(
            value.decode("utf-8"),
            object_pairs_hook=_object,
            parse_int=Number,
            parse_float=Number,
            parse_constant=_no_json,
        )
    except (ValueError, RecursionError) as error:
        return Fault(
            Reason.JSON, f"the value is not one JSON object in UTF-8: {_shown(str(error))}"
        )
    if not isinstance(found, dict):
        return Fault(Reason.JSON, f"the value is not one JSON object: got {_got(found)}")
    return found


def _object(members: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    return found if len(found) == len(members) else Repeated(found)


def _no_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _got(value: object) -> str:
    """A JSON value for a message."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case Number():
            return f"the number {_shown(value)}"
        case str():
            return f"the string {_shown(json.dumps(value, ensure_ascii=not is_utf8(value)))}"
        case dict():
            return f"the object {_shown(raw_text(value))}"
        case _:
            return f"the array {_shown(raw_text(value))}"


def _shown(text: str) -> str:
    """The start of a text, such as can be stored."""
    text = text.encode(errors="backslashreplace").decode()
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}..."


# -- version, kind and the form of each field ------------------------------------------------------


def _form_fault(fields: Fields, newest: int) -> Fault | None:
    return (
        _version_fault(fields, newest)
        or _kind_fault(fields)
        or _number_fault(fields)
        or (
            _change_form_fault(fields)
            if fields["kind"] == RecordKind.CHANGE
            else _control_form_fault(fields)
        )
    )


def _version_fault(fields: Fields, newest: int) -> Fault | None:
    version = _number(fields.get("v"))
    if version is None or version < 1:
        got = _got(fields.get("v"))
        return Fault(Reason.VERSION, f"field v: expected an integer from 1 on, got {got}")
    if version > newest:
        return Fault(
            Reason.VERSION, f"field v: {version} is newer than {newest}: upgrade this side"
        )
    return None


def _kind_fault(fields: Fields) -> Fault | None:
    kind = fields.get("kind")
    if kind is None:
        return Fault(Reason.KIND, "missing: kind")
    if not _is_text(kind) or kind not in _KIND_NAMES:
        return Fault(Reason.KIND, f"field kind: expected one of {_ALL_KINDS}, got {_got(kind)}")
    return None


_KIND_NAMES = frozenset(RecordKind)
_ALL_KINDS = ", ".join(RecordKind)


def _number_fault(fields: Fields) -> Fault | None:
    """What is wrong with the first field that is no text, of this kind or of another one."""
    for name, type_ in NUMBERS.items():
        value = fields.get(name)
        if value is not None and not _is_of(value, type_):
            return _expected(name, type_, value)
    return None


def _is_of(value: object, type_: FieldType) -> bool:
    if type_ is FieldType.BOOLEAN:
        return isinstance(value, bool)
    number = _number(value)
    return number is not None and number >= (type_ is FieldType.ORDINAL)


def _expected(name: str, type_: FieldType, value: object) -> Fault:
    return Fault(Reason.KIND, f"field {name}: expected {type_}, got {_got(value)}")


def _number(value: object) -> int | None:
    """An integer below 2^63; None: it is none."""
    if isinstance(value, Number) and _DIGITS.fullmatch(value):
        number = int(value)
        return number if number < 2**63 else None
    return None


def _missing(fields: Fields, kind: RecordKind) -> Fault | None:
    missing = [name for name in KINDS[kind].required if fields.get(name) is None]
    return Fault(Reason.KIND, f"missing: {', '.join(missing)}") if missing else None


def _change_form_fault(fields: Fields) -> Fault | None:
    op, after, before = fields.get("op"), fields.get("after"), fields.get("before")
    missing = _missing(fields, RecordKind.CHANGE)
    if missing is not None:
        return missing
    if not _is_text(op) or op not in _OPS:
        return Fault(Reason.KIND, f"field op: expected one of {', '.join(Op)}, got {_got(op)}")
    if op != Op.TRUNCATE and fields.get("key") is None:
        return Fault(Reason.KIND, "missing: key")
    if op in _UPSERTS:
        if after is None:
            return Fault(Reason.KIND, "missing: after")
        if not isinstance(after, dict):
            return _expected("after", FieldType.OBJECT, after)
    elif after is not None:
        return Fault(Reason.KIND, f"field after: expected null as op is {op}, got {_got(after)}")
    if before is not None and not isinstance(before, dict):
        return _expected("before", FieldType.OBJECT, before)
    return _label_fault(fields)


def _label_fault(fields: Fields) -> Fault | None:
    app = fields.get("app")
    if app is None or (_is_text(app) and len(app) <= LABEL_CHARS):
        return None
    return _expected("app", FieldType.LABEL, app)


_OPS = frozenset(Op)
_UPSERTS = (Op.INSERT, Op.UPDATE)


def _control_form_fault(fields: Fields) -> Fault | None:
    kind = RecordKind(fields["kind"])
    missing = _missing(fields, kind)
    if missing is not None:
        return missing
    for field in KINDS[kind].fields:
        value = fields.get(field.name)
        if value is None or field.name in NUMBERS:
            continue
        match field.type:
            case FieldType.RUV:
                fault = _ruv_fault(value)
            case FieldType.VERSIONS if not _is_versions(value):
                fault = _expected(field.name, field.type, value)
            case FieldType.OBJECT if not isinstance(value, dict):
                fault = _expected(field.name, field.type, value)
            case FieldType.TEXT if not _is_text(value):
                fault = _expected(field.name, field.type, value)
            case FieldType.CSN if field.name == "own" and not _is_csn(value):
                fault = _expected(field.name, field.type, value)
            case _:
                fault = None
        if fault is not None:
            return fault
    one_of = KINDS[kind].alternatives
    if one_of and not any(_has_id(fields.get(name)) for name in one_of):
        names = " or ".join(one_of)
        return Fault(Reason.KIND, f"field {names}: one must be an object with a string as its id")
    return None


def _is_versions(value: object) -> bool:
    return isinstance(value, list) and all(_is_of(one, FieldType.ORDINAL) for one in value)


def _has_id(part: object) -> bool:
    return isinstance(part, dict) and _is_text(part.get("id"))


def _ruv_fault(value: object) -> Fault | None:
    if not isinstance(value, list) or not all(_is_text(line) for line in value):
        return _expected("ruv", FieldType.RUV, value)
    try:
        parse_ruv(value)
    except RuvError as error:
        return Fault(Reason.KIND, f"field ruv: {_shown(str(error))}")
    return None


def _is_text(value: object) -> bool:
    return isinstance(value, str) and not isinstance(value, Number) and is_utf8(value)


# -- CSNs and who made them ------------------------------------------------------------------------


def _csns(fields: Fields) -> tuple[str, ...]:
    """The names of the fields whose CSN is of the topic's own replica."""
    match fields["kind"]:
        case RecordKind.CHANGE if fields.get("prim_csn") is None:
            return ("csn",)
        case RecordKind.CHANGE:
            return ("csn", "prim_csn")
        case RecordKind.COMMIT | RecordKind.ABORT:
            return ("prim_csn",)
        case _:
            return ()


def _csn_fault(fields: Fields) -> Fault | None:
    names = ("csn",) if fields["kind"] == RecordKind.REFUSED else _csns(fields)
    for name in names:
        if not _is_csn(fields[name]):
            got = _got(fields[name])
            return Fault(Reason.CSN, f"field {name}: expected {FieldType.CSN}, got {got}")
    return None


def _is_csn(value: object) -> bool:
    return isinstance(value, str) and not isinstance(value, Number) and bool(_CSN.fullmatch(value))


def _rid_fault(fields: Fields, rid: int) -> Fault | None:
    names = _csns(fields)
    if fields["kind"] == RecordKind.HELLO and fields.get("own") is not None:
        names = ("own",)
    for name in names:
        if rid_of(fields[name]) != rid:
            of = rid_of(fields[name])
            return Fault(Reason.RID, f"field {name}: it is of rid {of}, the topic of rid {rid}")
    return None


# -- key and images --------------------------------------------------------------------------------


class _Images(NamedTuple):
    """Key and images of a change in canonical text; a truncate has none."""

    key: str | None
    before: str | None
    after: str | None
    partial: bool


_Members = dict[str, str]
"""Column -> the canonical text of its value."""


def _images(fields: Fields, tables: Mapping[str, Table]) -> _Images | Fault:
    name, op, key = fields["table"], fields["op"], fields.get("key")
    table = tables.get(name) if _is_text(name) else None
    if table is None:
        return Fault(Reason.TABLE, f"table {_got(name)} is not in the configuration")
    after = _image(fields, "after", table)
    if isinstance(after, Fault):
        return after
    before = _image(fields, "before", table)
    if isinstance(before, Fault):
        return before
    if op == Op.TRUNCATE:
        if key is not None and key != {}:
            return Fault(Reason.KEY, f"a truncate has no key: got {_got(key)}")
        return _Images(None, _object_text(before, table), None, partial=False)
    values = _key(key, table)
    if isinstance(values, Fault):
        return values
    if after is not None:
        other = [n for n in table.key if after.get(n, values[n]) != values[n]]
        if other:
            return Fault(
                Reason.KEY,
                f"column {other[0]} of table {table.name}: after has {after[other[0]]}, key has"
                f" {values[other[0]]}",
            )
        after = {**after, **values}
    return _Images(
        "{" + ",".join(f"{encode_basestring(n)}:{text}" for n, text in values.items()) + "}",
        _object_text(before, table),
        _object_text(after, table),
        partial=after is not None and len(after) < len(table.columns),
    )


def _image(fields: Fields, name: str, table: Table) -> _Members | Fault | None:
    image = fields.get(name)
    if image is None:
        return None
    found: _Members = {}
    for column, value in image.items():
        kind = table.columns.get(column)
        if kind is None:
            continue
        text = "null" if value is None and column not in table.key else canonical_text(value, kind)
        if text is None:
            return _misfit(Reason.TABLE, table, column, value)
        found[column] = text
    if isinstance(image, Repeated):
        return Fault(Reason.TABLE, f"a column stands twice in {name} of table {table.name}")
    unknown = [column for column in image if column not in table.columns]
    if unknown:
        names = _shown(", ".join(map(json.dumps, unknown)))
        return Fault(
            Reason.TABLE,
            f"unknown columns in {name} of table {table.name}: {names}; add them to its columns",
        )
    return found


def _key(key: object, table: Table) -> _Members | Fault:
    if not isinstance(key, dict):
        return _at_key(table, f"key is not an object: got {_got(key)}")
    if isinstance(key, Repeated) or tuple(key) != table.key:
        names = ", ".join(map(json_text, table.key))
        return _at_key(table, f"the columns of its key must be {names}, got {_got(key)}")
    found: _Members = {}
    for column, value in key.items():
        text = None if value is None else canonical_text(value, table.columns[column])
        if text is None:
            return _misfit(Reason.KEY, table, column, value)
        found[column] = text
    return found


def _at_key(table: Table, text: str) -> Fault:
    return Fault(Reason.KEY, f"table {table.name}: {text}")


def _misfit(reason: Reason, table: Table, column: str, value: object) -> Fault:
    expected = EXPECTED[table.columns[column]]
    what = "" if reason is Reason.TABLE else "the key's "
    return Fault(
        reason,
        f"{what}column {column} of table {table.name}: expected {expected}, got {_got(value)}",
    )


def _object_text(members: _Members | None, table: Table) -> str | None:
    if members is None:
        return None
    texts = (f"{encode_basestring(n)}:{members[n]}" for n in table.columns if n in members)
    return "{" + ",".join(texts) + "}"


# -- size, time, session ---------------------------------------------------------------------------


def _size_fault(value: bytes, limits: Limits) -> Fault | None:
    if len(value) <= limits.record_bytes:
        return None
    return Fault(Reason.SIZE, f"{len(value)} bytes, {limits.record_bytes} are allowed")


def _skew_fault(fields: Fields, time_ms: int, limits: Limits) -> Fault | None:
    """A CSN's time against the record's own time, so that every run says the same."""
    for name in _csns(fields):
        ahead_ms = time_of(fields[name]) * 1000 - time_ms
        if ahead_ms > limits.skew_s * 1000:
            return Fault(
                Reason.SKEW,
                f"field {name}: it is {ahead_ms} ms ahead of its record, {limits.skew_s * 1000} are"
                " allowed: correct the clock of its replica",
            )
    return None


def _session_fault(fields: Fields) -> Fault | None:
    session = fields.get("session")
    if session is None or session == "":
        return Fault(Reason.SESSION, "missing: session")
    if not _is_text(session):
        return Fault(
            Reason.SESSION, f"field session: expected {FieldType.TEXT}, got {_got(session)}"
        )
    return None


# -- what is made of the fields --------------------------------------------------------------------


def _change(fields: Fields, images: _Images) -> CheckedRecord:
    change = Change(
        fields["csn"],
        0,
        _number(fields["epoch"]) or 0,
        fields["table"],
        images.key,  # type: ignore[arg-type] # null in a truncate
        fields["op"],
        images.after,
        images.before,
        fields.get("prim_csn"),
        _number(fields.get("opno")),
    )
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
    )


def _quarantined(fields: Fields, fault: Fault) -> CheckedRecord:
    """What an operator sees of a bad record, and by what a repeat of it is known."""
    known = CheckedRecord(
        *fault,
        _known(fields, "kind"),
        _known(fields, "session"),
        _known(fields, "csn"),
        _known(fields, "prim_csn"),
        _number(fields.get("epoch")),
        _known(fields, "table"),
        _known(fields, "key"),
        _known(fields, "op"),
        _known(fields, "before"),
        _known(fields, "after"),
        _number(fields.get("opno")),
        app=_known(fields, "app"),
    )
    if known.kind != RecordKind.CHANGE or known.csn is None:
        return known
    values = {name: getattr(known, name) for name in _CONTENT}
    return known._replace(content=Change(rid=0, **values).content)


_CONTENT = ("csn", "prim_csn", "epoch", "table", "key", "op", "before", "after", "opno")


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
        phase = next(name for name in form.alternatives if _has_id(fields.get(name)))
        return Snapshot(phase, fields[phase]["id"])
    return form.type(**values)


def _value(value: object, type_: FieldType) -> Any:  # noqa: ANN401 - of many types
    match type_:
        case FieldType.COUNTER | FieldType.ORDINAL:
            return _number(value)
        case FieldType.RUV if isinstance(value, list):
            return parse_ruv(value)
        case FieldType.VERSIONS if isinstance(value, list):
            return tuple(_number(one) for one in value)
        case FieldType.OBJECT if value is not None:
            return raw_text(value)
        case _:
            return value
