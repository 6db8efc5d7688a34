"""The Delta tables under the state root, with their explicit schemas.

checkpoints/comments.py says what each table and column holds.
"""

from enum import StrEnum

import pyarrow as pa

_TIME = pa.timestamp("us", tz="UTC")


class TableName(StrEnum):
    """The tables under the state root (docs/protocol.md, Commit and recovery)."""

    CHANGELOG = "changelog"
    EPOCHS = "epochs"
    ROWS = "rows"
    CONFLICTS = "conflicts"
    QUARANTINE = "quarantine"
    PENDING = "pending"
    EVENTS = "events"
    DELAYS = "delays"
    CONFIG = "config"


APPLIED = "applied"
"""The argument of a configuration that `config apply` stored, and no hub at its start."""

_POSITION = [("batch", pa.int64()), ("hub_epoch", pa.int64())]

_INPUT = [("rid", pa.int32()), ("offset", pa.int64()), ("time", _TIME), ("session", pa.string())]

CHANGE_FIELDS = [
    ("csn", pa.string()),
    ("prim_csn", pa.string()),
    ("epoch", pa.int64()),
    ("table", pa.string()),
    ("key", pa.string()),
    ("op", pa.string()),
    ("before", pa.string()),
    ("after", pa.string()),
    ("opno", pa.int64()),
    ("content", pa.string()),
]
"""What a change brought itself; some tables have its app and snapshot too."""

CHANGELOG = pa.schema(
    [
        *_POSITION,
        ("place", pa.int64()),
        ("kind", pa.string()),
        *_INPUT,
        *CHANGE_FIELDS,
        ("verdict", pa.string()),
        ("concurrent", pa.bool_()),
        ("mre", pa.int64()),
        ("mre_same", pa.int64()),
        ("row_author", pa.int32()),
        ("row_epoch", pa.int64()),
        ("row_csn", pa.string()),
        ("realign_epoch", pa.int64()),
        ("image", pa.string()),
        ("to", pa.int32()),
        ("cause", pa.string()),
        ("app", pa.string()),
        ("key_after", pa.string()),
        ("snapshot", pa.string()),
    ]
)

CONFLICTS = pa.schema(
    [
        *_POSITION,
        ("place", pa.int64()),
        ("id", pa.string()),
        ("kind", pa.string()),
        ("cause", pa.string()),
        ("function", pa.string()),
        ("table", pa.string()),
        ("key", pa.string()),
        ("lost", pa.string()),
        ("loser_csn", pa.string()),
        ("loser_rid", pa.int32()),
        ("loser_epoch", pa.int64()),
        ("loser_hub_epoch", pa.int64()),
        ("winner_csn", pa.string()),
        ("winner_rid", pa.int32()),
        ("winner_hub_epoch", pa.int64()),
        ("row_epoch", pa.int64()),
        ("mre", pa.int64()),
        ("reflected_epoch", pa.int64()),
        ("realign_epoch", pa.int64()),
        ("same_epoch_only", pa.bool_()),
        ("op", pa.string()),
        ("before", pa.string()),
        ("after", pa.string()),
        ("winner_image", pa.string()),
        ("prim_csn", pa.string()),
        ("resolution", pa.string()),
        ("resolved_by", pa.string()),
        ("app", pa.string()),
        ("time", _TIME),
        ("at", _TIME),
        ("loser", pa.string()),
        ("winner", pa.string()),
        ("offset", pa.int64()),
        ("code", pa.string()),
        ("text", pa.string()),
        ("attempts", pa.int64()),
        ("sent_epoch", pa.int64()),
    ]
)

QUARANTINE = pa.schema(
    [
        ("batch", pa.int64()),
        ("id", pa.string()),
        ("action", pa.string()),
        ("reason", pa.string()),
        ("detail", pa.string()),
        ("topic", pa.string()),
        *_INPUT,
        ("csn", pa.string()),
        ("prim_csn", pa.string()),
        ("table", pa.string()),
        ("key", pa.string()),
        ("content", pa.string()),
        ("value", pa.binary()),
        ("epoch", pa.int64()),
        ("op", pa.string()),
        ("opno", pa.int64()),
        ("bytes", pa.int64()),
        ("sha256", pa.string()),
        ("kind", pa.string()),
        ("invalid", pa.bool_()),
        ("mre", pa.int64()),
    ]
)

PENDING = pa.schema(
    [
        ("batch", pa.int64()),
        ("place", pa.int64()),
        ("action", pa.string()),
        ("reason", pa.string()),
        ("dataset", pa.string()),
        *_INPUT,
        *CHANGE_FIELDS,
        ("mre", pa.int64()),
        ("mre_same", pa.int64()),
        ("app", pa.string()),
        ("snapshot", pa.string()),
    ]
)

EVENTS = pa.schema(
    [
        *_POSITION,
        ("topic", pa.string()),
        *_INPUT,
        ("kind", pa.string()),
        ("outcome", pa.string()),
        ("value", pa.string()),
        ("csn", pa.string()),
        ("content", pa.string()),
    ]
)

DELAYS = pa.schema(
    [
        ("batch", pa.int64()),
        ("day", pa.date32()),
        ("origin", pa.int32()),
        ("consumer", pa.int32()),
        ("complete_to", _TIME),
        ("covers", pa.int64()),
        ("known_since", _TIME),
        ("at", _TIME),
        ("last_ms", pa.int64()),
        ("worst_ms", pa.int64()),
        ("above_minute_ms", pa.int64()),
        ("lacking", pa.bool_()),
        ("known", pa.bool_()),
    ]
)

CONFIG = pa.schema(
    [
        ("number", pa.int64()),
        ("kind", pa.string()),
        ("at", _TIME),
        ("document", pa.string()),
        ("command", pa.string()),
        ("argument", pa.string()),
        ("seen", pa.int64()),
    ]
)

_REALIGN = [
    ("rid", pa.int32()),
    ("hub_epoch", pa.int64()),
    ("offset", pa.int64()),
    ("rejects_transaction", pa.bool_()),  # it went with its transaction
]

ROWS = pa.schema(
    [
        ("table", pa.string()),
        ("key", pa.string()),
        ("author", pa.int32()),
        ("hub_epoch", pa.int64()),
        ("csn", pa.string()),
        ("image", pa.string()),
        ("realign", pa.list_(pa.struct(_REALIGN))),
    ]
)

_LINES = pa.list_(pa.string())

_SESSION = pa.struct(
    [
        ("id", pa.string()),
        ("hello_epoch", pa.int64()),
        ("reflections", pa.list_(pa.struct([("epoch", pa.int64()), ("covers", pa.int64())]))),
    ]
)

_FLOOR = pa.struct(
    [
        ("hub_epoch", pa.int64()),
        ("offset", pa.int64()),
        ("after", pa.string()),
        ("upto", pa.string()),
    ]
)

_REPLICA = pa.struct(
    [
        ("rid", pa.int32()),
        ("state", pa.string()),
        ("sessions", pa.list_(_SESSION)),
        ("known_sessions", pa.list_(pa.string())),
        ("epoch", pa.int64()),
        ("seen_at", _TIME),
        ("opno", pa.int64()),
        ("opno_above", pa.list_(pa.int64())),
        ("floors", pa.list_(_FLOOR)),
        ("stop_offset", pa.int64()),
        ("last_conflict_epoch", pa.int64()),
        ("last_stable_epoch", pa.int64()),
        ("snapshot", pa.string()),
        ("ended", pa.struct([("at", _TIME), ("unpublished", pa.int64())])),
        ("unpublished", pa.int64()),
        ("believed", pa.string()),
    ]
)

_RANGE = pa.struct(
    [
        ("table", pa.string()),
        ("after", pa.string()),
        ("to", pa.string()),
    ]
)

_PIECE = pa.struct(
    [
        ("table", pa.string()),
        ("kind", pa.string()),
        ("after", pa.string()),
        ("total", pa.int64()),
        ("sent", pa.int64()),
        ("closed", pa.bool_()),
    ]
)

_RESYNC = pa.struct(
    [
        ("end", pa.int64()),
        ("held_covers", pa.int64()),
        ("held_ruv", pa.list_(pa.string())),
        ("started_at", _TIME),
        ("mode", pa.string()),
        ("pieces", pa.list_(_PIECE)),
        (
            "unacked",
            pa.list_(pa.struct([("hub_epoch", pa.int64()), ("before", pa.list_(_PIECE))])),
        ),
        ("last_page", pa.int64()),
    ]
)

_AGREEMENT = pa.struct(
    [
        ("name", pa.string()),
        ("consumer", pa.int32()),
        ("state", pa.string()),
        ("session", pa.string()),
        ("own", pa.string()),
        ("sent_epoch", pa.int64()),
        ("sent_covers", pa.int64()),
        ("sent_ruv", pa.list_(pa.string())),
        ("scanned", pa.int64()),
        ("sent_at", _TIME),
        ("acked_covers", pa.int64()),
        ("acked_ruv", pa.list_(pa.string())),
        ("acked_at", _TIME),
        ("send_after", pa.int64()),
        ("send_to", pa.int64()),
        ("send_prev", pa.int64()),
        ("send_ruv", pa.list_(pa.string())),
        ("send_covers", pa.int64()),
        ("send_covers_ruv", pa.list_(pa.string())),
        ("send_ranges", pa.list_(_RANGE)),
        ("published", pa.int64()),
        ("behind_at", _TIME),
        ("away_at", _TIME),
        ("full", pa.bool_()),
        ("scans", pa.list_(pa.string())),
        ("resync", _RESYNC),
    ]
)

_PLACE = [("outbox", pa.string()), ("place", pa.int64())]

_FEED = pa.struct(
    [
        ("agreement", pa.string()),
        ("number", pa.int64()),
        ("batch", pa.int64()),
        ("exported_at", _TIME),
        ("ordered", pa.bool_()),
        ("open", pa.bool_()),
        ("unwritten", pa.bool_()),
        *_PLACE,
        ("csn", pa.string()),
    ]
)

_HELD_BACK = pa.struct(
    [
        ("agreement", pa.string()),
        ("after", pa.int64()),  # the hub epochs behind it wait
        ("since", _TIME),  # when the first of them was committed
        ("released", pa.int64()),  # up to this hub epoch an operator lets them go at once
        ("copies", pa.bool_()),  # he let a copy begin, which is not done
    ]
)

_ELSEWHERE = pa.struct(
    [
        ("rid", pa.int32()),
        ("session", pa.string()),
        ("agreement", pa.string()),
        ("hub_epoch", pa.int64()),
        ("reflections", pa.list_(pa.struct([("epoch", pa.int64()), ("ruv", _LINES)]))),
        ("judged", pa.list_(pa.struct([("hub_epoch", pa.int64()), ("csn", pa.string())]))),
    ]
)

EPOCHS = pa.schema(
    [
        ("kind", pa.string()),
        ("batch", pa.int64()),
        ("hub_epoch", pa.int64()),
        ("format", pa.int32()),
        ("generation", pa.int64()),
        ("replicageneration", pa.string()),
        ("hub", pa.string()),
        ("at", _TIME),
        ("config_version", pa.int64()),
        ("commands", pa.list_(pa.int64())),
        ("command_number", pa.int64()),
        ("offsets_from", pa.map_(pa.string(), pa.int64())),
        ("offsets", pa.map_(pa.string(), pa.int64())),
        ("topic_ids", pa.map_(pa.string(), pa.string())),
        ("input_lost", pa.map_(pa.string(), pa.string())),
        ("recreated", pa.map_(pa.string(), pa.int64())),
        ("ruv", pa.map_(pa.string(), pa.list_(pa.string()))),
        ("purge_ruv", pa.map_(pa.string(), pa.list_(pa.string()))),
        ("purge_epoch", pa.int64()),
        ("rows_epoch", pa.int64()),
        ("replicas", pa.list_(_REPLICA)),
        ("agreements", pa.list_(_AGREEMENT)),
        ("counts", pa.map_(pa.string(), pa.int64())),
        ("totals", pa.map_(pa.string(), pa.int64())),
        ("versions", pa.map_(pa.string(), pa.int64())),
        ("pages", pa.list_(pa.struct([("agreement", pa.string()), ("parts", pa.list_(_RANGE))]))),
        ("undelivered", pa.list_(pa.string())),
        ("writable", pa.list_(pa.string())),
        ("ranges", pa.list_(pa.struct([*_REALIGN, ("keys", _RANGE)]))),
        (
            "truncates",
            pa.list_(
                pa.struct(
                    [
                        ("table", pa.string()),
                        ("author", pa.int32()),
                        ("hub_epoch", pa.int64()),
                        ("csn", pa.string()),
                        ("incarnation", pa.int64()),  # how many truncates there were
                    ]
                )
            ),
        ),
        ("numbers", pa.map_(pa.int32(), pa.int64())),
        ("places", pa.list_(pa.struct([("agreement", pa.string()), *_PLACE]))),
        ("feeds", pa.list_(_FEED)),
        ("elsewhere", pa.list_(_ELSEWHERE)),
        ("purge_batch", pa.int64()),
        ("away_since", pa.map_(pa.string(), _TIME)),
        ("held_back", pa.list_(_HELD_BACK)),
        ("throttled", pa.list_(pa.string())),
        ("paused_tables", pa.map_(pa.string(), pa.list_(pa.string()))),
        ("leaving", pa.map_(pa.int32(), pa.int64())),
        ("left_epoch", pa.int64()),
        ("lacking", pa.map_(pa.int32(), pa.list_(pa.string()))),
        ("tombstone_epoch", pa.int64()),
    ]
)

SCHEMAS: dict[TableName, pa.Schema] = {
    TableName.CHANGELOG: CHANGELOG,
    TableName.EPOCHS: EPOCHS,
    TableName.ROWS: ROWS,
    TableName.CONFLICTS: CONFLICTS,
    TableName.QUARANTINE: QUARANTINE,
    TableName.PENDING: PENDING,
    TableName.EVENTS: EVENTS,
    TableName.DELAYS: DELAYS,
    TableName.CONFIG: CONFIG,
}
