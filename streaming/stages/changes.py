"""Plain changes, told in columns: an eighth of what Spark takes, and it need not plan them.

Nearly every record is a change as connectors/wire.py writes it, canonical and with its fields in
that order. Only what is surely good is told; whatever else there is, is left to the rules. A record
is cut where a canonical one has its seams, and each part is asked whether it is what belongs there.
So it does not matter for what is told where the seams were found.
"""

import re
from collections.abc import Mapping
from functools import lru_cache, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.core.intake.check import VERSION, Limits
from streaming.core.intake.form import LABEL_CHARS
from streaming.core.model.change import CONTENT_FIELDS, FIELD_SEPARATOR, NULL_TEXT, Op, content_of
from streaming.core.model.record import RecordKind
from streaming.core.model.table import ColumnType, Table
from streaming.core.model.values import json_text
from streaming.stages.canonical import ImageForm, form_of, matches
from streaming.stages.checked import CHECKED, CSN_BYTES, NO_CHECKED, Bools, bools, texts
from streaming.stages.csns import CSN, are_of_record

_PARTS = (
    *(
        "session",
        "csn",
        "prim_csn",
        "app",
        "epoch",
        "table",
        "key",
        "op",
        "before",
        "after",
        "opno",
    ),
)
_START = f'{{"v":{VERSION},"kind":"{RecordKind.CHANGE}","session":"'
_SESSION = r'[^"\\\x00-\x1f]+'
_EPOCH = "0|[1-9][0-9]{0,17}"
_OPNO = r"\A[1-9][0-9]{0,17}\z"
_HEAD = re.compile(f"{re.escape(_START)}({_SESSION})".encode())
_OP_BYTES = 6
_BEHIND_CSN = (
    r'\A",(?:"prim_csn":"(?P<prim_csn>[0-9a-f]{20})",)?'
    rf'(?:"app":"(?P<app>[ !#-\[\]-~]{{1,{LABEL_CHARS}}})",)?'
    rf'"epoch":(?P<epoch>{_EPOCH}),"table":"(?P<table>[^"]+)"\z'
)
_BEFORE_SEAM, _AFTER_SEAM, _OPNO_SEAM = b'","before":', b'","after":', b',"opno":'
_OPS = pa.array([op.value.encode() for op in (Op.INSERT, Op.UPDATE, Op.DELETE)])
_DIGITS = pa.array([str(digit).encode() for digit in range(10)])
_NONE = pa.scalar(None, pa.binary())
_ALL = 2**31 - 1
"""Where a slice ends that has no end."""


def changes(
    placed: pa.Table, tables: Mapping[str, Table], limits: Limits
) -> tuple[pa.Table, Bools]:
    """(CHECKED of the canonical changes, which of the records they are); `placed`: PLACED."""
    begins = bools(pc.starts_with(placed["value"], _START.encode()))
    if begins.all():
        return _changes(placed, tables, limits)
    if not begins.any():
        return NO_CHECKED, begins
    found, begins[begins] = _changes(placed.filter(pa.array(begins)), tables, limits)
    return found, begins


def _changes(
    placed: pa.Table, tables: Mapping[str, Table], limits: Limits
) -> tuple[pa.Table, Bools]:
    parts = _parts(_utf8(placed["value"].combine_chunks()))
    good, lacking = _fit(parts, _forms(tables))
    for csn in ("csn", "prim_csn") if parts["prim_csn"].null_count < len(good) else ("csn",):
        good &= are_of_record(placed, texts(pc.coalesce(parts[csn], parts["csn"])), limits)
    columns = {name: placed[name] for name in ("rid", "offset", "time")}
    columns |= {**{name: parts[name] for name in _PARTS}, "partial": lacking}
    found = pa.table(columns)
    return _checked(found if good.all() else found.filter(pa.array(good))), good


def _checked(parts: pa.Table) -> pa.Table:
    """CHECKED of canonical changes."""
    count, absent = parts.num_rows, pa.nulls(parts.num_rows)
    fields = [pc.fill_null(parts[name], NULL_TEXT) for name in CONTENT_FIELDS]
    joined = pc.binary_join_element_wise(*fields, FIELD_SEPARATOR.encode()).to_pylist()
    columns = {name: parts[name] for name in parts.column_names}
    columns |= {name: parts[name].cast(pa.string()) for name in ("epoch", "opno")}
    columns["content"] = pa.array([content_of(text) for text in joined], pa.string())
    columns["kind"] = pa.repeat(RecordKind.CHANGE.value, count)
    arrays = [columns.get(field.name, absent) for field in CHECKED]
    return pa.table(arrays, names=CHECKED.names).cast(CHECKED)


def _fit(parts: pa.RecordBatch, forms: Mapping[bytes, ImageForm]) -> tuple[Bools, Bools]:
    """(whether all parts are what they must be, whether the after-image lacks columns)."""
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
"""Tables by value: the patterns of each are made once."""


def _forms(tables: Mapping[str, Table]) -> dict[bytes, ImageForm]:
    return _forms_of(tuple((t.name, t.key, tuple(t.columns.items())) for t in tables.values()))


@lru_cache(maxsize=8)
def _forms_of(known: _Known) -> dict[bytes, ImageForm]:
    tables = [Table(name, key, dict(columns)) for name, key, columns in known]
    return {table.name.encode(): form_of(table) for table in tables if _is_simple(table.name)}


def _is_simple(name: str) -> bool:
    """Claim that this table's name stands in JSON as it is."""
    return json_text(name) == f'"{name}"'


def _parts(records: pa.Array) -> pa.RecordBatch:
    """Each record cut into _PARTS, as bytes; in what is no plain change some part is none."""
    head, rest = _cut(records, b',"key":')
    key, op = _cut(rest, b',"op":"')
    head, csn = _cut(head, b'","csn":"')
    received = pc.extract_regex(pc.binary_slice(csn, CSN_BYTES, _ALL), _BEHIND_CSN)
    prim_csn, app, epoch, table = (
        pc.struct_field(received, n) for n in ("prim_csn", "app", "epoch", "table")
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
    """What stands before the CSN: of a whole batch it is the same few."""
    different = heads.dictionary_encode()
    found = (_HEAD.fullmatch(text) for text in different.dictionary.to_pylist())
    return pa.array([hit and hit[1] for hit in found], pa.binary()).take(different.indices)


def _before(rests: pa.Array) -> tuple[pa.Array, pa.Array]:
    """(the before-image, null where there is none, what stands behind the name of the other)."""
    none = pc.starts_with(rests, _AFTER_SEAM)
    behind = pc.binary_slice(rests, len(_AFTER_SEAM), _ALL)
    if bools(none).all():
        return pa.nulls(len(rests), pa.binary()), behind
    image, other = _cut(rests, b"}" + _AFTER_SEAM[1:])
    image = pc.binary_join_element_wise(pc.binary_slice(image, len(_BEFORE_SEAM), _ALL), b"}", b"")
    image = pc.if_else(pc.starts_with(rests, _BEFORE_SEAM), image, b"")
    return pc.if_else(none, _NONE, image), pc.if_else(none, behind, other)


def _after(rests: pa.Array) -> tuple[pa.Array, pa.Array]:
    """(the after-image, the opno), null where there is none."""
    image, opno = pc.binary_slice(rests, 0, -1), pa.nulls(len(rests), pa.binary())
    numbered = pc.is_in(pc.binary_slice(rests, -2, -1), _DIGITS)
    if bools(numbered).any():
        before, number = _cut(image, _OPNO_SEAM, last=True)
        image, opno = pc.if_else(numbered, before, image), pc.if_else(numbered, number, _NONE)
    ended = pc.if_else(pc.ends_with(rests, b"}"), image, b"")
    return _none_if(ended, b"null"), opno


def _cut(column: pa.Array, seam: bytes, *, last: bool = False) -> tuple[pa.Array, pa.Array]:
    """What stands before and behind the first seam, or the last; nothing where there is none."""
    cut = partial(pc.split_pattern, pattern=seam, max_splits=1, reverse=last)
    halves = cut(column)
    there = pc.equal(pc.list_value_length(halves), 2)
    if not bools(there).all():
        halves = cut(pc.if_else(there, column, seam))
    return pc.list_element(halves, 0), pc.list_element(halves, 1)


def _none_if(column: pa.Array, none: bytes) -> pa.Array:
    return pc.if_else(pc.equal(column, none), _NONE, column)


def _utf8(records: pa.Array) -> pa.Array:
    """The records; nothing in place of one that is not UTF-8."""
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
