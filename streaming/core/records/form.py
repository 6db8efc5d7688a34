"""The form of a record: its version, its kind, and the type of each of its fields."""

import re

from streaming.core.model.change import Op
from streaming.core.model.csn import CSN_PATTERN, rid_of
from streaming.core.model.errors import RuvError
from streaming.core.model.ruv import parse_ruv
from streaming.core.records.kinds import KINDS, NUMBERS, Field, FieldType
from streaming.core.records.members import (
    Fields,
    RecordFault,
    expected,
    got,
    is_text,
    number,
    shown,
)
from streaming.core.records.record import Reason, RecordKind

LABEL_CHARS = 100
"""What `app` may have at most."""

ID_CHARS = 200
"""What a session may have at most: the state has those in force. FieldType says it in words."""

_VERSIONS, _NAMES, _NAME_CHARS = 100, 10_000, 400

_CSN = re.compile(CSN_PATTERN.removeprefix("^").removesuffix("$"))


def form_fault(fields: Fields, newest: int) -> RecordFault | None:
    """What is wrong with the form of a record; `newest`: the newest wire version that is read."""
    return (
        _version_fault(fields, newest)
        or _kind_fault(fields)
        or _session_form_fault(fields)
        or _number_fault(fields)
        or (
            _change_form_fault(fields)
            if fields["kind"] == RecordKind.CHANGE
            else _control_form_fault(fields)
        )
    )


def _version_fault(fields: Fields, newest: int) -> RecordFault | None:
    version = number(fields.get("v"))
    if version is None or version < 1:
        found = got(fields.get("v"))
        return RecordFault(Reason.VERSION, f"field v: expected an integer from 1 on, got {found}")
    if version > newest:
        return RecordFault(
            Reason.VERSION, f"field v: {version} is newer than {newest}: upgrade this side"
        )
    return None


def _kind_fault(fields: Fields) -> RecordFault | None:
    kind = fields.get("kind")
    if kind is None:
        return RecordFault(Reason.KIND, "missing: kind")
    if not is_text(kind) or kind not in _KIND_NAMES:
        return RecordFault(
            Reason.KIND, f"field kind: expected one of {_ALL_KINDS}, got {got(kind)}"
        )
    return None


_KIND_NAMES = frozenset(RecordKind)
_ALL_KINDS = ", ".join(RecordKind)


def _session_form_fault(fields: Fields) -> RecordFault | None:
    """What is wrong with the length of the session; whether it is there is asked at the end."""
    session = fields.get("session")
    if not is_text(session) or _is_text_upto(session, ID_CHARS):
        return None
    return expected("session", FieldType.ID, session)


def _number_fault(fields: Fields) -> RecordFault | None:
    """What is wrong with the first field that is no text, of this kind or of another one."""
    for name, type_ in NUMBERS.items():
        value = fields.get(name)
        if value is not None and not _is_of(value, type_):
            return expected(name, type_, value)
    return None


def _is_of(value: object, type_: FieldType) -> bool:
    if type_ is FieldType.BOOLEAN:
        return isinstance(value, bool)
    integer = number(value)
    return integer is not None and integer >= (type_ is FieldType.ORDINAL)


def _missing(fields: Fields, kind: RecordKind) -> RecordFault | None:
    missing = [name for name in KINDS[kind].required if fields.get(name) is None]
    return RecordFault(Reason.KIND, f"missing: {', '.join(missing)}") if missing else None


def _change_form_fault(fields: Fields) -> RecordFault | None:
    op, after, before = fields.get("op"), fields.get("after"), fields.get("before")
    missing = _missing(fields, RecordKind.CHANGE)
    if missing is not None:
        return missing
    if not is_text(op) or op not in _OPS:
        return RecordFault(Reason.KIND, f"field op: expected one of {', '.join(Op)}, got {got(op)}")
    if op != Op.TRUNCATE and fields.get("key") is None:
        return RecordFault(Reason.KIND, "missing: key")
    if op in _UPSERTS:
        if after is None:
            return RecordFault(Reason.KIND, "missing: after")
        if not isinstance(after, dict):
            return expected("after", FieldType.OBJECT, after)
    elif after is not None:
        return RecordFault(
            Reason.KIND, f"field after: expected null as op is {op}, got {got(after)}"
        )
    if before is not None and not isinstance(before, dict):
        return expected("before", FieldType.OBJECT, before)
    return _label_fault(fields)


def _label_fault(fields: Fields) -> RecordFault | None:
    app = fields.get("app")
    if app is None or (is_text(app) and len(app) <= LABEL_CHARS):
        return None
    return expected("app", FieldType.LABEL, app)


_OPS = frozenset(Op)
_UPSERTS = (Op.INSERT, Op.UPDATE)


def _control_form_fault(fields: Fields) -> RecordFault | None:
    kind = RecordKind(fields["kind"])
    missing = _missing(fields, kind)
    if missing is not None:
        return missing
    for field in KINDS[kind].fields:
        value = fields.get(field.name)
        if value is None or field.name in NUMBERS:
            continue
        if not _fits(value, field):
            return expected(field.name, field.type, value)
        fault = _ruv_fault(value) if field.type is FieldType.RUV else None
        if fault is not None:
            return fault
    one_of = KINDS[kind].alternatives
    if one_of and not any(has_id(fields.get(name)) for name in one_of):
        names = " or ".join(one_of)
        return RecordFault(
            Reason.KIND,
            f"field {names}: one must be an object with an id of at most {ID_CHARS} characters",
        )
    return None


def _fits(value: object, field: Field) -> bool:
    """Return whether a value has the form of its field; a RUV's lines are looked at apart."""
    match field.type:
        case FieldType.VERSIONS:
            return _is_versions(value)
        case FieldType.NAMES:
            return _is_names(value)
        case FieldType.OBJECT:
            return isinstance(value, dict)
        case FieldType.WRITES:
            return isinstance(value, dict) and all(_is_writes(*one) for one in value.items())
        case FieldType.TEXT:
            return is_text(value)
        case FieldType.ID:
            return _is_text_upto(value, ID_CHARS)
        case FieldType.CSN if field.name == "own":
            return is_csn(value)
        case _:
            return True


def _is_text_upto(value: object, chars: int) -> bool:
    return isinstance(value, str) and is_text(value) and len(value) <= chars


def _is_versions(value: object) -> bool:
    if not isinstance(value, list) or len(value) > _VERSIONS:
        return False
    return all(_is_of(one, FieldType.ORDINAL) for one in value)


def _is_names(value: object) -> bool:
    if not isinstance(value, list) or len(value) > _NAMES:
        return False
    return all(_is_text_upto(one, _NAME_CHARS) for one in value)


def _is_writes(table: object, value: object) -> bool:
    if not is_text(table) or not isinstance(value, dict):
        return False
    return all(_is_of(value.get(name), FieldType.COUNTER) for name in ("rows", "last_ms"))


def has_id(part: object) -> bool:
    """Return whether this is the part of a snapshot that a record names by its id."""
    return isinstance(part, dict) and _is_text_upto(part.get("id"), ID_CHARS)


def _ruv_fault(value: object) -> RecordFault | None:
    if not isinstance(value, list) or not all(is_text(line) for line in value):
        return expected("ruv", FieldType.RUV, value)
    try:
        parse_ruv(value)
    except RuvError as error:
        return RecordFault(Reason.KIND, f"field ruv: {shown(str(error))}")
    return None


# -- CSNs and who made them ------------------------------------------------------------------------


def own_csns(fields: Fields) -> tuple[str, ...]:
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


def csn_fault(fields: Fields) -> RecordFault | None:
    """What is wrong with the CSNs of a record whose form is good."""
    names = ("csn",) if fields["kind"] == RecordKind.REFUSED else own_csns(fields)
    for name in names:
        if not is_csn(fields[name]):
            found = got(fields[name])
            return RecordFault(Reason.CSN, f"field {name}: expected {FieldType.CSN}, got {found}")
    return None


def is_csn(value: object) -> bool:
    """Return whether this is a CSN in a JSON string."""
    return type(value) is str and _CSN.fullmatch(value) is not None


def rid_fault(fields: Fields, rid: int) -> RecordFault | None:
    """What is wrong if a CSN is not of the replica whose topic the record stands in."""
    names = own_csns(fields)
    if fields["kind"] == RecordKind.HELLO and fields.get("own") is not None:
        names = ("own",)
    for name in names:
        if rid_of(fields[name]) != rid:
            of = rid_of(fields[name])
            return RecordFault(
                Reason.RID, f"field {name}: it is of rid {of}, the topic of rid {rid}"
            )
    return None
