"""Records as nobody should write them: mutated at every seam, spelled otherwise, or both."""

import json
import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from connectors import wire
from streaming.core.model.change import Change, Op
from streaming.core.model.far_time import FarTime
from streaming.core.model.ruv import Ruv
from streaming.core.model.table import ColumnType, Table
from streaming.core.model.values import Value
from streaming.core.records.record import Abort, Applied, Commit, Goodbye, Heartbeat, Hello, Record
from tests.harness.far_times import FAR
from tests.harness.raw_records import CSN, SESSION, TABLES, TIME_S, keyed, typed
from tests.harness.record_cases import BAD, FIRST, GOOD, NO_OBJECT, TOKENS
from tests.reference.wire import image_text, key_text

WILD = Table(
    'a "wild" täble|',
    ("id", 'k "1"'),
    {
        'k "1"': ColumnType.TEXT,
        "after": ColumnType.TEXT,
        "id": ColumnType.INT64,
        **{f"{kind}\\ ü.*": kind for kind in ColumnType},
    },
)
PLAIN = Table(
    "plain", ("id",), {"id": ColumnType.INT64, **{kind.value: kind for kind in ColumnType}}
)
KNOWN = {**TABLES, WILD.name: WILD, PLAIN.name: PLAIN}

_SEAMS = b'"{}[],:\\'
_BYTES = b'"{}[],:\\ \n\t0129-+.eEaX\x00\x1f\x7f\xc3\xa9\xed\xff'
_TEXTS = ("", "a", "é 😀", 'quo"te\\', "\x1f\n\x7f", "a,b:c{}", "-0", "1.10", '":-0,"', "\u2028")


def value_of(rng: random.Random, kind: ColumnType) -> Value:
    """A value of this type, often one at an edge."""
    match kind:
        case ColumnType.BOOL:
            return rng.random() < 0.5
        case ColumnType.INT32:
            return rng.choice([0, 5, -1, 2**31 - 1, -(2**31), rng.randrange(-(2**31), 2**31)])
        case ColumnType.INT64:
            return rng.choice([0, -1, 2**63 - 1, -(2**63), rng.randrange(-(2**63), 2**63)])
        case ColumnType.FLOAT64:
            floats = [0.0, -0.0, 1.5, 1e16, 1e-5, 1e300, float("nan"), float("inf"), rng.random()]
            return rng.choice(floats)
        case ColumnType.DECIMAL:
            few = ("0", "-0", "1.50", "-12345678901234567890.123", "NaN", "Infinity", "-Infinity")
            return Decimal(rng.choice(few))
        case ColumnType.TEXT:
            return rng.choice(_TEXTS)
        case ColumnType.BYTES:
            return rng.randbytes(rng.randrange(5))
        case ColumnType.TIMESTAMP:
            far: list[Value] = [FarTime(text) for text in FAR]
            return rng.choice([*far, datetime.fromtimestamp(rng.randrange(4 * 10**9), UTC)])


def change(rng: random.Random) -> Change:
    """A good change of any table."""
    table = rng.choice(list(KNOWN.values()))
    key = {name: value_of(rng, table.columns[name]) for name in table.key}
    op = rng.choice([Op.INSERT, Op.UPDATE, Op.DELETE])
    images = [
        {
            name: rng.choice([None, value_of(rng, kind)])
            for name, kind in table.columns.items()
            if rng.random() < rng.choice([1, 0.7])
        }
        | key
        for _ in range(2)
    ]
    csn = f"{TIME_S - rng.randrange(10**8):08x}{rng.randrange(2**16):04x}00010000"
    return Change(
        csn,
        1,
        rng.choice([0, 3, 2**63 - 1]),
        table.name,
        key_text(key, table),
        op,
        None if op is Op.DELETE else image_text(images[0], table),
        rng.choice([None, image_text(images[1], table)]),
        rng.choice([None, csn]),
        rng.choice([None, 1, 10**17]),
        rng.choice([None, None, "billing 2.1", 'a "quoted" é']),
    )


def record(rng: random.Random) -> bytes:
    """A record that is good, or a case of the hand-made lists."""
    ruv = Ruv("5f00").with_csn(CSN)
    control: list[Record] = [
        *(Commit(CSN), Abort(CSN), Heartbeat(3, 2), Goodbye(3, 2), Applied(3, 2, 1, ruv)),
        Hello(3, 2, 1, ruv, CSN, lost=False),
        Hello(3, 2, 1, ruv, None, lost=True, versions=(1, 2)),
    ]
    match rng.randrange(12):
        case 0:
            return wire.encode(SESSION, rng.choice(control))
        case 1:
            return rng.choice(list(GOOD.values()))
        case 2:
            return rng.choice([*BAD.values()])[2]
        case 3:
            return rng.choice([*FIRST.values(), *NO_OBJECT.values()])
        case 4:
            make = rng.choice([typed, keyed])
            blank = rng.choice(["", " "])
            return make(rng.choice(list(ColumnType)), rng.choice(TOKENS), blank=blank)
        case _:
            return wire.encode(SESSION, change(rng))


# -- other spellings -------------------------------------------------------------------------------


def spelled(rng: random.Random, value: bytes) -> bytes:
    """The record as another library might write it; as it is if it is no JSON object."""
    try:
        fields = json.loads(value)
    except (ValueError, RecursionError):
        return value
    if not isinstance(fields, dict):
        return value
    for name in ("after", "before"):
        if isinstance(fields.get(name), dict) and rng.random() < 0.5:
            fields[name] = _shuffled(rng, fields[name])
    if rng.random() < 0.5:
        fields = _shuffled(rng, fields)
    if rng.random() < 0.3:
        fields.setdefault(rng.choice(["prim_csn", "before", "opno", "after", "more"]), None)
    separators = rng.choice([(",", ":"), (", ", ": "), (" ,\n", "\t:  ")])
    indent = rng.choice([None, None, 1])
    escapes = rng.random() < 0.5
    try:
        text = json.dumps(fields, separators=separators, indent=indent, ensure_ascii=escapes)
        return text.encode()
    except ValueError:
        return value


def _shuffled(rng: random.Random, members: dict[str, Any]) -> dict[str, Any]:
    names = list(members)
    rng.shuffle(names)
    return {name: members[name] for name in names}


# -- mutations -------------------------------------------------------------------------------------


def _place(rng: random.Random, value: bytes) -> int:
    """A place in the record, at a seam more often than not."""
    seams = [place for place, byte in enumerate(value) if byte in _SEAMS]
    if seams and rng.random() < 0.7:
        return rng.choice(seams)
    return rng.randrange(len(value) or 1)


def _flip(rng: random.Random, value: bytes) -> bytes:
    place = _place(rng, value)
    return value[:place] + bytes([rng.choice(_BYTES)]) + value[place + 1 :]


def _insert(rng: random.Random, value: bytes) -> bytes:
    place = _place(rng, value)
    return value[:place] + bytes([rng.choice(_BYTES)]) + value[place:]


def _remove(rng: random.Random, value: bytes) -> bytes:
    place = _place(rng, value)
    return value[:place] + value[place + rng.choice([1, 1, 2, 7]) :]


def _cut(rng: random.Random, value: bytes) -> bytes:
    return value[: _place(rng, value)]


def _copy(rng: random.Random, value: bytes) -> bytes:
    """A piece is repeated, often a whole member."""
    start = _place(rng, value)
    end = min(len(value), start + rng.randrange(1, 60))
    return value[:end] + value[start:end] + value[end:]


def _member_twice(rng: random.Random, value: bytes) -> bytes:
    name = rng.choice([b'"v":1,', b'"kind":"change",', b'"id":"1",', b'"epoch":-0,', b'"x":1.10,'])
    place = value.find(b"{", rng.randrange(len(value) or 1)) + 1
    return value[:place] + name + value[place:]


def _number(rng: random.Random, value: bytes) -> bytes:
    """Another number in place of one: such as a library would print otherwise."""
    places = [place for place, byte in enumerate(value) if byte in b"0123456789"]
    if not places:
        return value
    place = rng.choice(places)
    other = rng.choice([b"-0", b"1.10", b"1E5", b"1e400", b"18446744073709551616", b"0.1e1", b"01"])
    return value[:place] + other + value[place + 1 :]


_MUTATIONS: Sequence[Callable[[random.Random, bytes], bytes]] = (
    *(_flip, _flip, _insert, _remove, _cut, _copy, _member_twice, _number),
)


def mutated(rng: random.Random) -> bytes:
    """A record, perhaps spelled otherwise, perhaps mutated once or twice."""
    value = record(rng)
    if rng.random() < 0.5:
        value = spelled(rng, value)
    for _ in range(rng.choice([0, 1, 1, 1, 2])):
        value = rng.choice(_MUTATIONS)(rng, value)
    if rng.random() < 0.1:
        value = spelled(rng, value)
    return value
