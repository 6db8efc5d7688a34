"""The wire: records, updates and column values as JSON; the one definition for readers and writers.

Every record is a JSON object in UTF-8 with `v`, `kind` and `session` (docs/wire.md). Keys and
images are objects on the wire and canonical text inside: no spaces, columns in schema order,
nothing escaped that need not be.
"""

import re

import pyarrow as pa
import pyarrow.compute as pc

from streaming.core.model import foreign_json
from streaming.core.model.change import Change, Op
from streaming.core.model.csn import CSN_PATTERN
from streaming.core.model.errors import RuvError, WireError
from streaming.core.model.ruv import Ruv, parse_ruv
from streaming.core.model.table import Table
from streaming.core.model.truncation import ALL_KEYS
from streaming.core.model.values import Value, from_json, json_text
from streaming.core.records import check
from streaming.core.records.check import VERSION
from streaming.core.records.kinds import KIND_OF, KINDS, Field, FieldPresence, FieldType
from streaming.core.records.record import (
    Item,
    ItemType,
    PacketMarker,
    RangeItem,
    Record,
    RecordKind,
    Snapshot,
    Stopped,
    Update,
    UpdateKind,
)
from streaming.core.records.snapshot_row import MEMBERS

_CSN = re.compile(CSN_PATTERN)


def loads(text: str | bytes) -> dict[str, object]:
    """The members of a JSON object; WireError if it is none."""
    try:
        found = foreign_json.loads(text, foreign_json.as_written)
    except ValueError as error:
        raise WireError(f"not JSON in UTF-8: {error}") from error
    if not isinstance(found, dict):
        raise WireError("not a JSON object")
    return found


# -- images -----------------------------------------------------------------------------------


def image_values(text: str, table: Table) -> dict[str, Value]:
    """The values of an image or key text, in its order; WireError names the column."""
    return {name: _value(name, json_, table) for name, json_ in loads(text).items()}


def _value(name: str, json_: object, table: Table) -> Value:
    if name not in table.columns:
        raise WireError(f"column {name} is not in table {table.name}: add it to its columns")
    try:
        return from_json(json_, table.columns[name])
    except WireError as error:
        raise WireError(f"column {name}: {error}") from error


# -- records of replicas ---------------------------------------------------------------------


def encode(session: str, record: Record) -> bytes:
    """A record as a replica writes it to its own topic in this session."""
    kind = KIND_OF[type(record)]
    head = f'"v":{VERSION},"kind":"{kind}","session":{json_text(session)}'
    if isinstance(record, Snapshot):
        return f'{{{head},"{record.phase}":{json_text(_snapshot_part(record))}}}'.encode()
    if isinstance(record, Change) and record.snapshot is not None:
        return _snapshot_row(session, record)
    members = "".join(_member_text(field, record) for field in KINDS[kind].fields)
    return f"{{{head}{members}}}".encode()


def _snapshot_part(part: Snapshot) -> dict[str, object]:
    members = {"id": part.id, "table": part.table, "count": part.count}
    return {name: value for name, value in members.items() if value is not None}


def _snapshot_row(session: str, row: Change) -> bytes:
    members = "".join(
        _member_text(field, row)
        for field in KINDS[RecordKind.CHANGE].fields
        if field.name in MEMBERS
    )
    head = f'"v":{VERSION},"kind":"{RecordKind.SNAPSHOT}","session":{json_text(session)}'
    return f'{{{head},"row":{{"id":{json_text(row.snapshot)}{members}}}}}'.encode()


def _member_text(field: Field, record: Record) -> str:
    """A field with a comma in front; empty if it is not written. Keys and images are JSON text."""
    value = getattr(record, field.name)
    if value is None or (value == "" and field.type is FieldType.OBJECT):
        return "" if field.need is FieldPresence.OPTIONAL else f',"{field.name}":null'
    match field.type:
        case FieldType.OBJECT | FieldType.WRITES | FieldType.COUNTER | FieldType.ORDINAL:
            return f',"{field.name}":{value}'
        case FieldType.VERSIONS | FieldType.NAMES:
            return f',"{field.name}":{json_text(list(value))}'
        case FieldType.RUV:
            return f',"{field.name}":{json_text(value.text())}'
        case _:
            return f',"{field.name}":{json_text(value)}'


def decode(value: bytes) -> tuple[str, Record]:
    """A record of a replica's topic as (session, record); WireError names the field."""
    return check.decode(value)


# -- updates of the hub ----------------------------------------------------------------------


def update_of(header: Update, items: bytes) -> bytes:
    """A chunk composed of ready items, separated by commas; those of `header` are ignored."""
    head, tail = update_ends(header)
    return b"".join((head.encode(), items, tail.encode()))


def update_ends(header: Update) -> tuple[str, str]:
    """The text before and after the items of a chunk."""
    epochs = f'"epochs":{json_text(header.epochs)},' if header.epochs else ""
    head = (
        f'{{"v":{VERSION},"kind":"{UpdateKind.UPDATE}","session":{json_text(header.session)},'
        f'"agreement":{json_text(header.agreement)},"generation":{header.generation},'
        f'"hub_epoch":{header.hub_epoch},"prev":{header.prev},"covers":{header.covers},'
        f'"ruv":{json_text(header.ruv.text())},"chunk":{header.chunk},"chunks":{header.chunks},'
        f'{epochs}"items":['
    )
    return head, "]}"


def item_text(item: Item | RangeItem) -> str:
    """The JSON text of an item; members that are None are left out."""
    if isinstance(item, RangeItem):
        return _range_text(item)
    key = f',"key":{item.key}' if item.key else ""
    after = "" if item.after is None else f',"after":{item.after}'
    csn = "" if item.csn is None else f',"csn":{json_text(item.csn)}'
    prim = "" if item.prim_csn is None else f',"prim_csn":{json_text(item.prim_csn)}'
    cause = "" if item.cause is None else f',"cause":{json_text(item.cause)}'
    unset = f',"unset":{json_text(item.unset)}' if item.unset else ""
    return (
        f'{{"type":"{item.type}","table":{json_text(item.table)}{key},"op":{json_text(item.op)}'
        f'{after}{csn},"author":{item.author}{prim}{cause}{unset}}}'
    )


def _range_text(item: RangeItem) -> str:
    after = "" if item.after is None else f',"from":{item.after}'
    to = "" if item.to is None else f',"to":{item.to}'
    hidden = f',"hidden":{item.hidden}' if item.hidden else ""
    table = json_text(item.table)
    return f'{{"type":"{item.type}","table":{table}{after}{to},"count":{item.count}{hidden}}}'


CHANGE_ITEM_SQL = """concat(
    '{"type":"change","table":"', `table`, '"',
    coalesce(concat(',"key":', nullif(key, '')), ''), ',"op":"', op, '"',
    coalesce(concat(',"after":', after), ''), ',"csn":"', csn, '","author":', rid,
    coalesce(concat(',"prim_csn":"', prim_csn, '"'), ''), '}'
)"""
"""`item_text` of an accepted change whose table's name needs no escape, in Spark's SQL."""


def items_text(items: pa.Table) -> pa.Array:
    """`item_text` vectorized, of columns with the names of an item's members.

    `key`, `after` and `unset` hold JSON text, a truncate has an empty key, `unset` is null where no
    column is; every column but `author` is of strings.
    """
    parts = [
        _member('{"type":', _quoted(items["type"])),
        _member(',"table":', _quoted(items["table"])),
        _member(',"key":', _none_if_empty(_strings(items["key"]))),
        _member(',"op":', _quoted(items["op"])),
        _member(',"after":', _strings(items["after"])),
        _member(',"csn":', _quoted_without_escapes(items["csn"])),
        _member(',"author":', _strings(items["author"])),
        _member(',"prim_csn":', _quoted_without_escapes(items["prim_csn"])),
        _member(',"cause":', _quoted(items["cause"])),
        _member(',"unset":', _strings(items["unset"])),
    ]
    return pc.binary_join_element_wise(
        *parts, _text("}"), _text(""), null_handling="replace", null_replacement=""
    )


def _text(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def _member(name: str, values: pa.Array) -> pa.Array:
    """A member of an object in front of its values; null where the value is null."""
    return pc.binary_join_element_wise(_text(name), values, _text(""))


def _strings(column: pa.ChunkedArray) -> pa.Array:
    return column.cast(pa.large_string()).combine_chunks()


def _none_if_empty(column: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column)


def _quoted_without_escapes(column: pa.ChunkedArray) -> pa.Array:
    """Strings in which nothing needs an escape, in quotes."""
    return pc.binary_join_element_wise(_text('"'), _strings(column), _text('"'), _text(""))


def _quoted(column: pa.ChunkedArray) -> pa.Array:
    """Strings as JSON; each distinct one is escaped once."""
    encoded = _strings(column).dictionary_encode()
    escaped = [json_text(text) for text in encoded.dictionary.to_pylist()]
    return pa.array(escaped, pa.large_string()).take(encoded.indices)


def encode_stopped(stopped: Stopped) -> bytes:
    """The answer to a stopped replica as it stands in an updates topic."""
    return (
        f'{{"v":{VERSION},"kind":"{UpdateKind.STOPPED}","session":{json_text(stopped.session)},'
        f'"agreement":{json_text(stopped.agreement)},"generation":{stopped.generation},'
        f'"state":{json_text(stopped.state)},"remedy":{json_text(stopped.remedy)}}}'
    ).encode()


def encode_packet_marker(marker: PacketMarker) -> bytes:
    """The note of an exported packet as it stands in an updates topic."""
    before, after = (dict(sorted(row.items())) for row in (marker.row_before, marker.row_after))
    return (
        f'{{"v":{VERSION},"kind":"{UpdateKind.PACKET}","session":{json_text(marker.session)},'
        f'"agreement":{json_text(marker.agreement)},"generation":{marker.generation},'
        f'"number":{marker.number},"hub_epoch":{marker.hub_epoch}'
        f',"row_before":{json_text(before)},"row_after":{json_text(after)}}}'
    ).encode()


def decode_answer(value: bytes) -> Update | Stopped | PacketMarker:
    """A record of an updates topic; WireError names the field."""
    fields = _record(value)
    if fields.get("kind") == UpdateKind.PACKET:
        return _packet_marker(fields)
    if fields.get("kind") != UpdateKind.STOPPED:
        return _update(fields)
    return Stopped(
        fields.text("agreement"),
        fields.number("generation"),
        fields.text("session"),
        fields.text("state"),
        fields.text("remedy"),
    )


def _packet_marker(fields: "_Fields") -> PacketMarker:
    return PacketMarker(
        fields.text("agreement"),
        fields.number("generation"),
        None if fields.get("session") is None else fields.text("session"),
        fields.number("number"),
        fields.number("hub_epoch"),
        fields.numbers("row_before"),
        fields.numbers("row_after"),
    )


def _update(fields: "_Fields") -> Update:
    items = fields.get("items")
    if not isinstance(items, list):
        raise WireError("field items: it must be an array")
    return Update(
        fields.text("agreement"),
        fields.number("generation"),
        fields.text("session"),
        fields.number("hub_epoch"),
        fields.number("prev"),
        fields.number("covers"),
        fields.ruv(),
        fields.number("chunk"),
        fields.number("chunks"),
        tuple(_decode_item(item) for item in items),
        fields.epochs(len(items)),
    )


def _decode_item(item: object) -> Item | RangeItem:
    if not isinstance(item, dict):
        raise WireError("field items: each must be an object")
    fields = _Fields(item)
    kind = fields.text("type")
    if kind not in list(ItemType):
        raise WireError(f"field type of an item: {kind!r} is not known: upgrade this side")
    if kind in (ItemType.RANGE, ItemType.UPSERTS):
        return RangeItem(
            fields.text("table"),
            fields.image_or_none("from"),
            fields.image_or_none("to"),
            fields.number("count"),
            0 if fields.get("hidden") is None else fields.number("hidden"),
            deletes=kind == ItemType.RANGE,
        )
    op = fields.text("op")
    return Item(
        ItemType(kind),
        fields.text("table"),
        ALL_KEYS if op == Op.TRUNCATE else fields.image("key"),
        op,
        fields.image_or_none("after"),
        fields.csn_or_none("csn"),
        fields.number("author"),
        fields.csn_or_none("prim_csn"),
        None if fields.get("cause") is None else fields.text("cause"),
        fields.names("unset"),
    )


# -- fields ----------------------------------------------------------------------------------


def _record(value: bytes) -> "_Fields":
    fields = _Fields(loads(value))
    version = fields.number("v")
    if version > VERSION:
        raise WireError(f"field v: {version} is newer than {VERSION}: upgrade this side")
    return fields


class _Fields:
    """The fields of one object, each read with the form that it must have."""

    __slots__ = ("get",)

    def __init__(self, values: dict[str, object]) -> None:
        self.get = values.get

    def text(self, name: str) -> str:
        found = self.get(name)
        if not isinstance(found, str):
            raise WireError(f"field {name}: {found!r} must be a string")
        return found

    def number(self, name: str) -> int:
        found = self.get(name)
        if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found < 2**63:
            raise WireError(f"field {name}: {found!r} must be an integer from 0 on")
        return found

    def numbers(self, name: str) -> dict[str, int]:
        found = self.get(name)
        if not isinstance(found, dict):
            raise WireError(f"field {name}: {found!r} must be an object")
        members = _Fields(found)
        return {key: members.number(key) for key in found}

    def epochs(self, items: int) -> tuple[tuple[int, int], ...]:
        """How many of the items are of which hub epoch; empty: nobody says."""
        found = self.get("epochs")
        if found is None:
            return ()
        runs = found if isinstance(found, list) else [found]
        pairs = [one for one in runs if isinstance(one, list) and len(one) == 2]
        if len(pairs) < len(runs):
            raise WireError("field epochs: it must be an array of [hub epoch, count]")
        named = [_Fields({"hub_epoch": epoch, "count": count}) for epoch, count in pairs]
        known = tuple((one.number("hub_epoch"), one.number("count")) for one in named)
        if sum(count for _, count in known) != items:
            raise WireError(f"field epochs: {known!r} must count the {items} items of the record")
        return known

    def csn_or_none(self, name: str) -> str | None:
        found = self.get(name)
        if found is None:
            return None
        if not isinstance(found, str) or not _CSN.fullmatch(found):
            raise WireError(f"field {name}: {found!r} must be a CSN, 20 lower-case hex digits")
        return found

    def names(self, name: str) -> tuple[str, ...]:
        """An array of strings; empty if it is absent."""
        found = self.get(name)
        if found is None:
            return ()
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            raise WireError(f"field {name}: {found!r} must be an array of strings")
        return tuple(found)

    def image(self, name: str) -> str:
        found = self.get(name)
        if not isinstance(found, dict):
            raise WireError(f"field {name}: {found!r} must be an object")
        return json_text(found)

    def image_or_none(self, name: str) -> str | None:
        return None if self.get(name) is None else self.image(name)

    def ruv(self) -> Ruv:
        lines = self.get("ruv")
        if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
            raise WireError("field ruv: it must be an array of strings")
        try:
            return parse_ruv(lines)
        except RuvError as error:
            raise WireError(f"field ruv: {error}") from error
