"""The Delta tables under the state root, with their explicit schemas."""

from enum import StrEnum

import pyarrow as pa

FORMAT = 1
"""The format number of this state; a hub refuses state of a larger one."""

_TIME = pa.timestamp("us", tz="UTC")


class TableName(StrEnum):
    """The tables under the state root (docs/protocol.md, Commit and recovery)."""

    CHANGELOG = "changelog"
    """every judged change with its verdict, every refresh, in hub order"""
    EPOCHS = "epochs"
    """plans and commits: the state of the hub after each batch"""
    ROWS = "rows"
    """the full state of every row up to the materialized epoch"""
    CONFLICTS = "conflicts"
    """every loser with its winner"""
    QUARANTINE = "quarantine"
    """records that the hub could not process, with their original bytes, and the action taken"""
    PENDING = "pending"
    """changes of transactions that are pending, waiting or ended"""
    EVENTS = "events"
    """control records: hello, applied, commit, abort, heartbeat ..."""
    CONFIG = "config"
    """configuration versions and operator commands"""


_POSITION = [
    ("batch", pa.int64()),
    ("hub_epoch", pa.int64()),
]

_INPUT = [
    ("rid", pa.int32()),
    ("offset", pa.int64()),
    ("time", _TIME),
    ("session", pa.string()),
]

_CHANGE = [
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

CHANGELOG = pa.schema(
    [
        *_POSITION,
        ("place", pa.int64()),  # from 0 within the hub epoch: the hub order
        ("kind", pa.string()),  # change | refresh
        *_INPUT,  # of a refresh: rid = the row's author, offset = behind which it realigns
        *_CHANGE,  # of a refresh: csn of the row, op update or delete, after = the row
        ("verdict", pa.string()),  # accepted | rejected | quarantined; of a refresh null
        ("concurrent", pa.bool_()),
        ("mre", pa.int64()),
        ("mre_same", pa.int64()),  # counting reflections of the change's own epoch too
        (
            "row_author",
            pa.int32(),
        ),  # the row judged against, or as it is sent; 0: nobody
        ("row_epoch", pa.int64()),
        ("row_csn", pa.string()),
        ("realign_epoch", pa.int64()),  # largest realign or floor that blocked it; else 0
        ("image", pa.string()),  # the row after an accepted change or in a refresh; null: deleted
        ("to", pa.int32()),  # the receiver of a refresh
        ("cause", pa.string()),  # of a refresh: conflict | late ...; of a change: why in conflict
        ("app", pa.string()),  # who wrote the change, as stated by its origin; null: not stated
    ]
)

CONFLICTS = pa.schema(
    [
        *_POSITION,
        ("place", pa.int64()),  # of the change in the changelog
        ("id", pa.string()),  # <hub epoch>-<place>; the newest row of one counts
        ("kind", pa.string()),  # insert_exists | update_origin_change | ... | transaction
        ("cause", pa.string()),  # author | realign | floor | transaction
        ("function", pa.string()),
        ("table", pa.string()),
        ("key", pa.string()),
        ("lost", pa.string()),  # change | row: which of the two is the loser
        ("loser_csn", pa.string()),
        ("loser_rid", pa.int32()),
        ("loser_epoch", pa.int64()),  # the origin's epoch of a change, the hub epoch of a row
        ("winner_csn", pa.string()),
        ("winner_rid", pa.int32()),
        ("winner_epoch", pa.int64()),  # hub epoch of the winner's row
        ("row_epoch", pa.int64()),  # hub epoch of the row that the change was judged against
        ("mre", pa.int64()),
        ("reflected_epoch", pa.int64()),  # the MRE, had its own epoch's reflection counted
        ("realign_epoch", pa.int64()),
        ("same_epoch_only", pa.bool_()),  # not concurrent if its own epoch's reflection counted
        ("op", pa.string()),  # of the change
        ("before", pa.string()),  # the loser's images; of a row only `after` is known
        ("after", pa.string()),
        ("winner_image", pa.string()),  # null: deleted
        ("prim_csn", pa.string()),  # the change's transaction
        ("resolution", pa.string()),  # open | accepted | overridden
        ("resolved_by", pa.string()),  # the hub's change by which the loser won after all
        ("app", pa.string()),  # who wrote the change, be it loser or winner
    ]
)

QUARANTINE = pa.schema(
    [
        ("batch", pa.int64()),
        ("id", pa.string()),  # <rid>-<offset>; of a change of the hub itself <rid>-<csn>
        ("action", pa.string()),  # kept | released | dropped
        ("reason", pa.string()),
        ("detail", pa.string()),
        ("topic", pa.string()),
        *_INPUT,
        ("csn", pa.string()),
        ("prim_csn", pa.string()),
        ("table", pa.string()),
        ("key", pa.string()),
        ("content", pa.string()),
        ("value", pa.binary()),  # the original bytes
    ]
)

PENDING = pa.schema(
    [
        ("batch", pa.int64()),
        ("place", pa.int64()),  # within the batch: a later row of one (rid, csn) counts
        ("action", pa.string()),  # pending | waiting | ended | gone
        ("reason", pa.string()),  # of an ended one: aborted | hello | operator | ended | late ...
        ("dataset", pa.string()),
        *_INPUT,
        *_CHANGE,
        ("mre", pa.int64()),
        ("mre_same", pa.int64()),
        ("app", pa.string()),
    ]
)

EVENTS = pa.schema(
    [
        *_POSITION,
        ("topic", pa.string()),
        *_INPUT,
        ("kind", pa.string()),
        ("outcome", pa.string()),  # taken | duplicate | unknown | unsupported
        ("value", pa.string()),  # the record as received
    ]
)

CONFIG = pa.schema(
    [
        ("number", pa.int64()),  # 1, 2, 3 ... over both kinds
        ("kind", pa.string()),  # config | command
        ("at", _TIME),
        ("document", pa.string()),  # of a config: the whole configuration as JSON, no secrets
        ("command", pa.string()),  # see CommandName
        ("argument", pa.string()),  # of a command: the id of what it is about, or null
        ("seen", pa.int64()),  # of a command: the hub epoch that the operator looked at
    ]
)

ROWS = pa.schema(
    [
        ("table", pa.string()),
        ("key", pa.string()),
        ("author", pa.int32()),
        ("epoch", pa.int64()),
        ("csn", pa.string()),
        ("image", pa.string()),  # null: a tombstone
        (
            "realign",
            pa.list_(
                pa.struct(
                    [
                        ("rid", pa.int32()),
                        ("epoch", pa.int64()),
                        ("offset", pa.int64()),
                        ("whole", pa.bool_()),  # it went with its transaction
                    ]
                )
            ),
        ),
    ]
)

_SESSION = pa.struct(
    [
        ("id", pa.string()),
        ("hello_epoch", pa.int64()),
        (
            "reflections",
            pa.list_(pa.struct([("epoch", pa.int64()), ("covers", pa.int64())])),
        ),
    ]
)

_FLOOR = pa.struct(
    [
        ("epoch", pa.int64()),
        ("offset", pa.int64()),  # of the hello that reported the loss
        ("after", pa.string()),  # its own changes above this one, and up to `upto`, are given back
        ("upto", pa.string()),
    ]
)

_REPLICA = pa.struct(
    [
        ("rid", pa.int32()),
        ("state", pa.string()),  # ReplicaStatus, and its detail: "unsupported: refused"
        ("sessions", pa.list_(_SESSION)),  # oldest first; the last is the one in force
        ("known_sessions", pa.list_(pa.string())),
        ("epoch", pa.int64()),
        ("seen_at", _TIME),  # time of its last record
        ("opno", pa.int64()),  # no hole up to here
        ("opno_above", pa.list_(pa.int64())),
        ("floors", pa.list_(_FLOOR)),
        ("stop_offset", pa.int64()),  # where reading stopped, for a replica that is stopped
        ("last_conflict_epoch", pa.int64()),
        ("last_stable_epoch", pa.int64()),  # reflected when no conflict was open
    ]
)

_AGREEMENT = pa.struct(
    [
        ("name", pa.string()),
        ("consumer", pa.int32()),
        ("state", pa.string()),  # AgreementStatus, and its detail likewise
        ("session", pa.string()),
        ("own", pa.string()),
        ("sent_epoch", pa.int64()),  # hub epoch of the last batch sent in this session: prev
        ("sent_covers", pa.int64()),
        ("sent_ruv", pa.list_(pa.string())),
        ("scanned", pa.int64()),  # nothing for it in (sent_covers, scanned]
        ("sent_at", _TIME),
        ("acked_covers", pa.int64()),
        ("acked_ruv", pa.list_(pa.string())),
        ("acked_at", _TIME),
        (
            "send_after",
            pa.int64(),
        ),  # this batch publishes (send_after, send_to], or 0: none
        ("send_to", pa.int64()),
        ("send_prev", pa.int64()),
        ("send_ruv", pa.list_(pa.string())),
    ]
)

EPOCHS = pa.schema(
    [
        ("kind", pa.string()),  # plan | commit
        ("batch", pa.int64()),
        ("hub_epoch", pa.int64()),
        ("format", pa.int32()),
        ("generation", pa.int64()),
        ("replicageneration", pa.string()),
        ("hub", pa.string()),  # the process that wrote it
        ("at", _TIME),  # the hub's clock, fixed by the plan
        ("config_version", pa.int64()),
        ("commands", pa.list_(pa.int64())),  # operator commands taken by this batch
        ("command_number", pa.int64()),  # the last one ever taken
        ("offsets_from", pa.map_(pa.string(), pa.int64())),  # topic -> first offset of the batch
        ("offsets", pa.map_(pa.string(), pa.int64())),  # topic -> next offset after the batch
        ("topic_ids", pa.map_(pa.string(), pa.string())),
        ("ruv", pa.map_(pa.string(), pa.list_(pa.string()))),  # data set -> its lines
        ("purge_ruv", pa.map_(pa.string(), pa.list_(pa.string()))),
        ("purge_epoch", pa.int64()),
        ("rows_epoch", pa.int64()),  # `rows` is materialized up to here
        ("replicas", pa.list_(_REPLICA)),
        ("agreements", pa.list_(_AGREEMENT)),
        ("counts", pa.map_(pa.string(), pa.int64())),  # of this batch
        ("totals", pa.map_(pa.string(), pa.int64())),  # since the beginning
        ("versions", pa.map_(pa.string(), pa.int64())),  # Delta version of every other table
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
    TableName.CONFIG: CONFIG,
}
