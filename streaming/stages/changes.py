"""Parse canonical changes with vectorized operations, in an eighth of the time that Spark needs.

Most records are changes as connectors/wire.py writes them: canonical, with their fields in that
order. Each record is split at the separators of a canonical change, and every part is validated by
itself. A wrong split therefore rejects the record and never changes a value. Records that are not
accepted here are left to the next step of stages/check.py.
"""

import re
from collections.abc import Mapping
from functools import lru_cache, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.core.model.change import CONTENT_FIELDS, FIELD_SEPARATOR, NULL_TEXT, Op, hash_of
from streaming.core.model.table import ColumnType, Table
from streaming.core.model.values import json_text
from streaming.core.records.check import VERSION, Limits
from streaming.core.records.form import ID_CHARS, LABEL_CHARS
from streaming.core.records.record import RecordKind
from streaming.stages.canonical import ImageForm, form_of, matches
from streaming.stages.checked import CSN_BYTES, NO_CHECKED, Bools, bools, checked, texts
from streaming.stages.csns import CSN, are_of_record

_START = f'{{"v":{VERSION},"kind":"{RecordKind.CHANGE}","session":"'
_SESSION = rf'[^"\\\x00-\x1f]{{1,{ID_CHARS}}}'
_EPOCH = "0|[1-9][0-9]{0,17}"
_OPNO = r"\A[1-9][0-9]{0,17}\z"
_HEAD = re.compile(f"{re.escape(_START)}({_SESSION})".encode())
_OP_BYTES = 6
_BEHIND_CSN = (
    r'\A",(?:"prim_csn":"(?P<prim_csn>[0-9a-f]{20})",)?'
    rf'(?:"app":"(?P<app>[ !#-\[\]-~]{{1,{LABEL_CHARS}}})",)?'
    rf'"epoch":(?P<epoch>{_EPOCH}),"table":"(?P<table>[^"]+)"\z'
)
_BEFORE_SEPARATOR, _AFTER_SEPARATOR, _OPNO_SEPARATOR = b'","before":', b'","after":', b',"opno":'
_OPS = pa.array([op.value.encode() for op in (Op.INSERT, Op.UPDATE, Op.DELETE)])
_DIGITS = pa.array([str(digit).encode() for digit in range(10)])
_NONE = pa.scalar(None, pa.binary())
_ALL = 2**31 - 1
"""The end of a slice that reaches to the end of its text."""


def parse_changes(
    placed: pa.Table, tables: Mapping[str, Table], limits: Limits
) -> tuple[pa.Table, Bools]:
    """Return (CHECKED of the valid canonical changes, a mask of them); `placed`: PLACED.

    The mask has one value per record of `placed`; CHECKED has the order of the records.
    """
    begins = bools(pc.starts_with(placed["value"], _START.encode()))
    if begins.all():
        return _parse_canonical(placed, tables, limits)
    if not begins.any():
        return NO_CHECKED, begins
    found, begins[begins] = _parse_canonical(placed.filter(pa.array(begins)), tables, limits)
    return found, begins


def _parse_canonical(
    placed: pa.Table, tables: Mapping[str, Table], limits: Limits
) -> tuple[pa.Table, Bools]:
    parts = _parts(_utf8(placed["value"].combine_chunks()))
    good, lacking = _validate(parts, _forms(tables))
    for csn in ("csn", "prim_csn") if parts["prim_csn"].null_count < len(good) else ("csn",):
        good &= are_of_record(placed, texts(pc.coalesce(parts[csn], parts["csn"])), limits)
    columns = {name: placed[name] for name in ("rid", "offset", "time")}
    columns |= {name: parts[name] for name in parts.schema.names}
    found = pa.table({**columns, "partial": lacking})
    return _checked(found if good.all() else found.filter(pa.array(good))), good


def _checked(parts: pa.Table) -> pa.Table:
    """Return CHECKED of canonical changes.

    `parts`: those of `_parts`, besides rid, offset, time and partial.
    """
    fields = [pc.fill_null(parts[name], NULL_TEXT) for name in CONTENT_FIELDS]
    joined = pc.binary_join_element_wise(*fields, FIELD_SEPARATOR.encode()).to_pylist()
    columns = {name: parts[name] for name in parts.column_names}
    columns |= {name: parts[name].cast(pa.string()) for name in ("epoch", "opno")}
    columns["content"] = pa.array([hash_of(text) for text in joined], pa.string())
    columns["kind"] = pa.repeat(RecordKind.CHANGE.value, parts.num_rows)
    return checked(columns, parts.num_rows)


def _validate(parts: pa.RecordBatch, forms: Mapping[bytes, ImageForm]) -> tuple[Bools, Bools]:
    """Return (which changes are valid, which after-images lack columns).

    `parts`: those of `_parts`; a column is null where the change has no such part.
    """
    good = bools(pc.and_(pc.is_valid(parts["session"]), pc.is_in(parts["op"], _OPS)))
    deleted = pc.equal(parts["op"], Op.DELETE.value.encode())
    good &= bools(pc.equal(deleted, pc.is_null(parts["after"])))
    good &= matches(parts["csn"], CSN) & matches(parts["opno"], _OPNO)
    fits, lacking = np.zeros(len(good), dtype=np.bool_), np.zeros(len(good), dtype=np.bool_)
    named = parts["table"].dictionary_encode()
    for number, name in enumerate(named.dictionary.to_pylist()):
        if name in forms:
            there = bools(pc.equal(named.indices, number))
            rows = parts if there.all() else parts.filter(pa.array(there))
            fits[there], lacking[there] = forms[name].fits(rows)
    return good & fits, lacking


_Known = tuple[tuple[str, tuple[str, ...], tuple[tuple[str, ColumnType], ...]], ...]
"""Tables as hashable values, so that the patterns of each are compiled once."""


def _forms(tables: Mapping[str, Table]) -> dict[bytes, ImageForm]:
    return _forms_of(tuple((t.name, t.key, tuple(t.columns.items())) for t in tables.values()))


@lru_cache(maxsize=8)
def _forms_of(known: _Known) -> dict[bytes, ImageForm]:
    tables = [Table(name, key, dict(columns)) for name, key, columns in known]
    return {table.name.encode(): form_of(table) for table in tables if _is_simple(table.name)}


def _is_simple(name: str) -> bool:
    """Return whether the table's name needs no escape in JSON."""
    return json_text(name) == f'"{name}"'


def _parts(records: pa.Array) -> pa.RecordBatch:
    """Split each record into its parts, as binary columns.

    A record that is no canonical change has some part that is invalid or null.
    """
    head, rest = _split(records, b',"key":')
    key, op = _split(rest, b',"op":"')
    head, csn = _split(head, b'","csn":"')
    fields = pc.extract_regex(pc.binary_slice(csn, CSN_BYTES, _ALL), _BEHIND_CSN)
    prim_csn, app, epoch, table = (
        pc.struct_field(fields, n) for n in ("prim_csn", "app", "epoch", "table")
    )
    before, rest = _before(pc.binary_slice(op, _OP_BYTES, _ALL))
    after, opno = _after(rest)
    columns = {
        "session": _session(head),
        "csn": pc.binary_slice(csn, 0, CSN_BYTES),
        "prim_csn": _none_if(prim_csn, b""),
        "app": _none_if(app, b""),
        "epoch": epoch,
        "table": table,
        "key": key,
        "op": pc.binary_slice(op, 0, _OP_BYTES),
        "before": before,
        "after": after,
        "opno": opno,
    }
    return pa.record_batch(columns)


def _session(heads: pa.Array) -> pa.Array:
    """Parse the session in front of each CSN; a batch has few different ones."""
    different = heads.dictionary_encode()
    found = (_HEAD.fullmatch(text) for text in different.dictionary.to_pylist())
    return pa.array([hit and hit[1] for hit in found], pa.binary()).take(different.indices)


def _before(rests: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return (the before-image or null, the text from the after-image on)."""
    none = pc.starts_with(rests, _AFTER_SEPARATOR)
    behind = pc.binary_slice(rests, len(_AFTER_SEPARATOR), _ALL)
    if bools(none).all():
        return pa.nulls(len(rests), pa.binary()), behind
    image, other = _split(rests, b"}" + _AFTER_SEPARATOR[1:])
    image = pc.binary_join_element_wise(
        pc.binary_slice(image, len(_BEFORE_SEPARATOR), _ALL), b"}", b""
    )
    image = pc.if_else(pc.starts_with(rests, _BEFORE_SEPARATOR), image, b"")
    return pc.if_else(none, _NONE, image), pc.if_else(none, behind, other)


def _after(rests: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return (the after-image or null, the opno or null)."""
    image, opno = pc.binary_slice(rests, 0, -1), pa.nulls(len(rests), pa.binary())
    numbered = pc.is_in(pc.binary_slice(rests, -2, -1), _DIGITS)
    if bools(numbered).any():
        before, number = _split(image, _OPNO_SEPARATOR, last=True)
        image, opno = pc.if_else(numbered, before, image), pc.if_else(numbered, number, _NONE)
    ended = pc.if_else(pc.ends_with(rests, b"}"), image, b"")
    return _none_if(ended, b"null"), opno


def _split(column: pa.Array, separator: bytes, *, last: bool = False) -> tuple[pa.Array, pa.Array]:
    """Split each text at the first or the last separator; two empty texts if it has none."""
    split = partial(pc.split_pattern, pattern=separator, max_splits=1, reverse=last)
    halves = split(column)
    there = pc.equal(pc.list_value_length(halves), 2)
    if not bools(there).all():
        halves = split(pc.if_else(there, column, separator))
    return pc.list_element(halves, 0), pc.list_element(halves, 1)


def _none_if(column: pa.Array, none: bytes) -> pa.Array:
    return pc.if_else(pc.equal(column, none), _NONE, column)


def _utf8(records: pa.Array) -> pa.Array:
    """Return the records, with an empty text in place of each that is not UTF-8."""
    try:
        records.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([value if _is_utf8(value) else b"" for value in records.to_pylist()])
    return records


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
