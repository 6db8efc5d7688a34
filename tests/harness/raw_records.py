"""Records as replicas write them, field by field in raw JSON, so that any fault can be written."""

from collections.abc import Mapping

from streaming.core.model.table import ColumnType, Table

TOPICS = {"slackwater.changes.a": 1, "slackwater.changes.b": 2}
TOPIC = "slackwater.changes.a"
CSN = "65e0f1c0000a00010000"
TIME_S = 0x65E0F1C0
SESSION = "0b6f6c3e-54f5-4a5b-8a0e-1d2f6c3e54f5"

ORDERS = Table(
    "orders",
    ("id",),
    {"id": ColumnType.INT64, "name": ColumnType.TEXT, "qty": ColumnType.INT32},
)
LINES = Table(
    "lines",
    ("item", "order"),
    {"order": ColumnType.INT64, "item": ColumnType.TEXT, "price": ColumnType.DECIMAL},
)
TYPED = Table(
    "typed",
    ("id",),
    {"id": ColumnType.INT64, **{kind.value: kind for kind in ColumnType}},
)
KEYED = {
    kind: Table(f"by {kind}", ("k",), {"k": kind, "v": ColumnType.TEXT}) for kind in ColumnType
}
TABLES = {table.name: table for table in (ORDERS, LINES, TYPED, *KEYED.values())}

CHANGE = {
    "v": "1",
    "kind": '"change"',
    "session": f'"{SESSION}"',
    "csn": f'"{CSN}"',
    "epoch": "3",
    "table": '"orders"',
    "key": '{"id":"1"}',
    "op": '"insert"',
    "after": '{"id":"1","name":"a","qty":5}',
}
POSITION = {
    "epoch": "3",
    "covers": "7",
    "generation": "1",
    "ruv": f'["{{replicageneration}} 5f00","{{replica 1}} {CSN} {CSN}"]',
}
CONTROL: dict[str, dict[str, str]] = {
    "commit": {"prim_csn": f'"{CSN}"'},
    "abort": {"prim_csn": f'"{CSN}"'},
    "applied": POSITION,
    "hello": {**POSITION, "own": f'"{CSN}"', "lost": "false"},
    "heartbeat": {"epoch": "3"},
    "goodbye": {"epoch": "3", "unpublished": "0"},
    "refused": {
        "hub_epoch": "4",
        "csn": '"65e0f1c0000a00020000"',
        "table": '"orders"',
        "key": '{"id":"1"}',
        "code": '"check"',
        "text": '"no"',
    },
    "snapshot": {"begin": '{"id":"s1","table":"orders"}'},
    "schema": {"digest": '"6f1c2a"'},
    "local_writes": {"tables": '{"orders":{"rows":3,"last_ms":1700000000000}}'},
}
"""Kind -> the fields of a good record, as raw JSON; every kind but `change`."""


def change(**altered: str | None) -> bytes:
    """A good insert with some fields set to raw JSON, or left out (None)."""
    return joined({**CHANGE, **altered})


def control(kind: str, **altered: str | None) -> bytes:
    """A good control record with some fields set to raw JSON, or left out (None)."""
    head = {"v": "1", "kind": f'"{kind}"', "session": f'"{SESSION}"', **CONTROL[kind]}
    return joined({**head, **altered})


def joined(fields: Mapping[str, str | None]) -> bytes:
    """A record of raw fields."""
    members = [f'"{name}":{text}' for name, text in fields.items() if text is not None]
    return f"{{{','.join(members)}}}".encode()


def typed(kind: ColumnType, token: str, *, blank: str = "") -> bytes:
    """An insert into `typed` with this value; with a blank it is canonical no more."""
    others = {other.value: "null" for other in ColumnType}
    values = {"id": '"1"', **others, kind.value: token}
    members = [f'"{name}":{blank}{value}' for name, value in values.items()]
    return change(table='"typed"', after=f"{{{','.join(members)}}}")


def keyed(kind: ColumnType, token: str, *, blank: str = "") -> bytes:
    """A delete of the row with this key."""
    return change(table=f'"by {kind}"', key=f'{{"k":{blank}{token}}}', op='"delete"', after=None)
