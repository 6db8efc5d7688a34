"""Rules: the first thing that is wrong with a record by itself, as a reason and a detail.

Only records that are not plain (stages/plain.py) are asked rule by rule.
"""

import json
from collections.abc import Iterable
from functools import reduce
from operator import or_

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from streaming.core.model.change import Op
from streaming.core.model.record import Reason, RecordKind
from streaming.stages.parse import FIELDS, raw
from streaming.stages.plain import CSN, RUV, Limits, is_kind, rid_of, stands_quoted, time_ms_of
from streaming.stages.tokens import quoted

REQUIRED: dict[RecordKind, tuple[str, ...]] = {
    RecordKind.CHANGE: ("csn", "epoch", "table", "op"),
    RecordKind.COMMIT: ("prim_csn",),
    RecordKind.ABORT: ("prim_csn",),
    RecordKind.APPLIED: ("epoch", "covers", "generation", "ruv"),
    RecordKind.HELLO: ("epoch", "covers", "generation", "ruv", "lost"),
    RecordKind.HEARTBEAT: ("epoch",),
    RecordKind.REFUSED: ("hub_epoch", "csn", "table", "key", "code", "text"),
}
"""The fields without which a record of the kind says nothing; those of an op come on top."""

SEPARATOR = ": "
"""Stands between reason and detail."""

_NO_STRING = r"\A(?:[\[{].*|-?[0-9.eE+-]+|true|false)\z"
"""The text of a JSON value that is no string."""

_COUNTERS = ("epoch", "covers", "generation", "hub_epoch")
_TYPED = [name for name, kind in FIELDS.items() if kind != "string"]


Rule = tuple[Reason, Column, list[Column | str]]
"""The reason, the claim that the rule is broken, and the parts of what to say then."""


def fault(looked: Column, limits: Limits) -> Column:
    """What is wrong, as reason, SEPARATOR, detail; or null.

    The rules stand in the order of their reasons: json, version, kind, csn, rid, table, key, size,
    skew, session. `looked` is what a closer look at a change found (stages/tokens.py).
    """
    csn, prim_csn, own = F.col("csn"), F.col("prim_csn"), F.col("own")
    ended = F.when(is_kind(RecordKind.COMMIT, RecordKind.ABORT), prim_csn)
    change = [
        *_change_form(),
        _no_csn("csn", csn),
        _no_csn("prim_csn", prim_csn),
        _other_rid("csn", csn),
        _other_rid("prim_csn", prim_csn),
        *_images(looked),
        _size(limits),
        _ahead("csn", csn, limits),
        _ahead("prim_csn", prim_csn, limits),
        *_session(),
    ]
    control = [
        *_control_form(),
        _no_csn("csn", F.when(is_kind(RecordKind.REFUSED), csn)),
        _no_csn("prim_csn", ended),
        _other_rid("prim_csn", ended),
        _other_rid("own", F.when(is_kind(RecordKind.HELLO), own)),
        _size(limits),
        _ahead("prim_csn", ended, limits),
        *_session(),
    ]
    by_kind = F.when(is_kind(RecordKind.CHANGE), _case(change)).otherwise(_case(control))
    return _case(_of_any_kind(limits)).otherwise(by_kind)


def _case(rules: Iterable[Rule]) -> Column:
    """The complaint of the first broken rule; may be continued."""
    (broken, text), *rest = [
        (broken, F.concat_ws("", F.lit(reason + SEPARATOR), *map(_column, parts)))
        for reason, broken, parts in rules
    ]
    return reduce(lambda case, one: case.when(*one), rest, F.when(broken, text))


def _column(part: Column | str) -> Column:
    return F.lit(part) if isinstance(part, str) else part


# -- records of any kind ---------------------------------------------------------------------------


def _of_any_kind(limits: Limits) -> list[Rule]:
    v, kind = F.col("v"), F.col("kind")
    too_small = F.least(*map(F.col, _COUNTERS), F.col("opno") - 1) < 0
    counters = ", ".join(_COUNTERS)
    return [
        (Reason.JSON, ~F.col("well_formed"), ["the value is not one JSON object in UTF-8"]),
        (Reason.VERSION, v.isNull() | (v < 1), ["v is missing or no version of the wire"]),
        (Reason.VERSION, v > limits.version, ["v is ", v.cast("string"), ": upgrade the hub"]),
        (Reason.KIND, kind.isNull(), ["kind is missing"]),
        (Reason.KIND, ~kind.isin(*RecordKind), ["unknown kind ", quoted(kind)]),
        (Reason.KIND, F.col("mistyped"), ["of the wrong type: ", _mistyped_fields()]),
        (Reason.KIND, too_small, [f"one of {counters} is below 0, or opno is below 1"]),
    ]


def _mistyped_fields() -> Column:
    """The fields of which there is a value that was not read."""
    unread = F.array(*[F.when(F.col(name).isNull(), F.lit(name)) for name in _TYPED])
    return F.array_join(F.filter(unread, _stands), ", ")


def _stands(name: Column) -> Column:
    """Claim that the record has a value for this field."""
    path = F.concat(F.lit("$."), name)
    return F.call_function("get_json_object", raw(), path).isNotNull()


def _size(limits: Limits) -> Rule:
    size = F.octet_length("value")
    limit = f" bytes, {limits.record_bytes} are allowed"
    return Reason.SIZE, size > limits.record_bytes, [size.cast("string"), limit]


def _session() -> list[Rule]:
    session = F.col("session")
    no_string = ~stands_quoted(session) & session.rlike(_NO_STRING)
    return [
        (Reason.SESSION, session.isNull() | (session == ""), ["session is missing"]),
        (Reason.SESSION, no_string, ["session is no string: ", quoted(session)]),
    ]


def _no_csn(name: str, csn: Column) -> Rule:
    """Twenty digits without quotes are a JSON number, and no CSN either."""
    broken = ~(csn.rlike(CSN) & stands_quoted(csn))
    return Reason.CSN, broken, [f"{name} is not 20 lower-case hex digits: ", quoted(csn)]


def _other_rid(name: str, csn: Column) -> Rule:
    rid, own = rid_of(csn), F.col("rid")
    received: list[Column | str] = [
        f"{name} is of rid ",
        rid.cast("string"),
        " in the topic of rid ",
    ]
    return Reason.RID, rid != own, [*received, own.cast("string")]


def _ahead(name: str, csn: Column, limits: Limits) -> Rule:
    """A CSN's time against the record's own time, so that every run says the same."""
    ahead_ms = time_ms_of(csn) - F.unix_millis("time")
    received: list[Column | str] = [
        f"{name} is ",
        ahead_ms.cast("string"),
        " ms ahead of its record",
    ]
    return Reason.SKEW, ahead_ms > limits.skew_s * 1000, received


# -- changes ---------------------------------------------------------------------------------------


def _change_form() -> list[Rule]:
    op, after, before = F.col("op"), F.col("after"), F.col("before")
    upsert, keyed = op.isin(Op.INSERT, Op.UPDATE), op != Op.TRUNCATE.value
    return [
        (Reason.KIND, _any_null(*REQUIRED[RecordKind.CHANGE]), ["missing: ", _missing()]),
        (Reason.KIND, ~op.isin(*Op), ["unknown op ", quoted(op)]),
        (Reason.KIND, keyed & F.col("key").isNull(), ["missing: key"]),
        (Reason.KIND, upsert & after.isNull(), ["missing: after"]),
        (Reason.KIND, upsert & ~_is_object("after"), ["after is not an object"]),
        (Reason.KIND, ~upsert & after.isNotNull(), ["after is there, and op is ", op]),
        (Reason.KIND, before.isNotNull() & ~_is_object("before"), ["before is not an object"]),
    ]


def _images(looked: Column) -> list[Rule]:
    key, keyed = F.col("key"), F.col("op") != Op.TRUNCATE.value
    table, key_fault = looked["table_fault"], looked["key_fault"]
    received: list[Column | str] = ["table ", quoted(F.col("table")), ": ", table]
    return [
        (Reason.TABLE, table.isNotNull(), received),
        (Reason.KEY, ~keyed & (key != "{}"), ["a truncate has no key"]),
        (Reason.KEY, keyed & ~_is_object("key"), ["key is not an object: ", quoted(key)]),
        (Reason.KEY, keyed & key_fault.isNotNull(), ["key ", quoted(key), ": ", key_fault]),
    ]


def _is_object(name: str) -> Column:
    return F.col(name).startswith("{")


# -- what else replicas say ------------------------------------------------------------------------


def _control_form() -> list[Rule]:
    lacking = [
        is_kind(kind) & _any_null(*names)
        for kind, names in REQUIRED.items()
        if kind != RecordKind.CHANGE
    ]
    own, position, hello = (
        F.col("own"),
        is_kind(RecordKind.APPLIED, RecordKind.HELLO),
        is_kind(RecordKind.HELLO),
    )
    part = F.coalesce(F.col("begin"), F.col("row"), F.col("end"))
    return [
        (Reason.KIND, reduce(or_, lacking), ["missing: ", _missing()]),
        (Reason.KIND, position & ~F.col("ruv").rlike(RUV), ["ruv is not in 389 text form"]),
        (Reason.KIND, hello & ~own.rlike(CSN), ["own is no CSN: ", quoted(own)]),
        (Reason.KIND, is_kind(RecordKind.REFUSED) & ~_is_object("key"), ["key is not an object"]),
        (
            Reason.KIND,
            is_kind(RecordKind.SNAPSHOT) & ~F.coalesce(part.startswith("{"), F.lit(False)),  # noqa: FBT003
            ["none of begin, row and end is an object"],
        ),
    ]


def _any_null(*names: str) -> Column:
    return reduce(or_, [F.col(name).isNull() for name in names])


def _missing() -> Column:
    """The fields that the record's kind needs and that have no value."""
    names = F.from_json(F.lit(json.dumps(REQUIRED)), "map<string,array<string>>")[F.col("kind")]
    return F.array_join(F.filter(names, lambda name: ~_stands(name)), ", ")
