"""Rules: for each reason of quarantine, a column that says what is wrong, or null."""

from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from streaming.core.change import Op
from streaming.core.record import Kind, Reason
from streaming.stages import tokens
from streaming.stages.parse import FIELDS, raw

REQUIRED: dict[Kind, tuple[str, ...]] = {
    Kind.CHANGE: ("csn", "epoch", "table", "op"),
    Kind.COMMIT: ("prim_csn",),
    Kind.ABORT: ("prim_csn",),
    Kind.APPLIED: ("epoch", "covers", "generation", "ruv"),
    Kind.HELLO: ("epoch", "covers", "generation", "ruv", "lost"),
    Kind.HEARTBEAT: ("epoch",),
    Kind.REFUSED: ("hub_epoch", "csn", "table", "key", "code", "text"),
    Kind.SNAPSHOT: (),
}
"""The fields without which a record of the kind says nothing; those of an op come on top."""

_CSN = r"\A[0-9a-f]{20}\z"
_RUV_ELEMENT = (
    r"\A(?:\{replicageneration\}.*|(?i:\{replica\s+[0-9]+(?:\s+[^}\s]*)?\s*\}"
    r"(?:(?:\s+[0-9a-f]{20}){1,2}(?:\s+[0-9a-f]{8})?)?\s*))\z"
)
_NUMBERS = [name for name, kind in FIELDS.items() if kind == "bigint" and name != "v"]
_NO_STRING = r"\A(?:[\[{].*|-?[0-9.eE+-]+|true|false)\z"
"""The text of a JSON value that is no string."""

_SNAPSHOT_PARTS = ("begin", "row", "end")


def rules(hub_version: int, record_bytes: int, skew_s: int) -> dict[Reason, Column]:
    """Every rule that one record alone can break, in the order in which they are asked.

    They read the columns of `parse` and `_looked` (stages/tokens.py), which is null where a change
    was canonical as it came.
    """
    return {
        Reason.JSON: _json(),
        Reason.VERSION: _version(hub_version),
        Reason.KIND: _kind(),
        Reason.CSN: _csn(),
        Reason.RID: _rid(),
        Reason.TABLE: _table(),
        Reason.KEY: _key(),
        Reason.SIZE: _size(record_bytes),
        Reason.SKEW: _skew(skew_s),
        Reason.SESSION: _session(),
    }


def _json() -> Column:
    return F.when(~F.col("well_formed"), F.lit("the value is not one JSON object in UTF-8"))


def _version(hub_version: int) -> Column:
    v = F.col("v")
    return F.coalesce(
        F.when(v.isNull() | (v < 1), F.lit("v is missing or no wire version")),
        F.when(v > hub_version, F.concat(F.lit("v is "), v, F.lit(": upgrade the hub"))),
    )


def _kind() -> Column:
    """An unknown kind, or a field that the kind needs is missing or of another form."""
    kind = F.col("kind")
    return F.coalesce(
        F.when(kind.isNull(), F.lit("kind is missing")),
        F.when(~kind.isin(*Kind), F.concat(F.lit("unknown kind "), tokens.quoted(kind))),
        F.when(F.col("mistyped"), F.concat(F.lit("wrong type of "), _mistyped_fields())),
        *[F.when(kind == known.value, _missing(*REQUIRED[known])) for known in Kind],
        _negative(),
        F.when(is_kind(Kind.CHANGE), _change_form()),
        F.when(is_kind(Kind.APPLIED, Kind.HELLO), _position_form()),
        F.when(is_kind(Kind.REFUSED) & ~_is_object("key"), F.lit("key is not an object")),
        F.when(
            is_kind(Kind.SNAPSHOT)
            & ~reduce(lambda a, b: a | b, [_is_object(part) for part in _SNAPSHOT_PARTS]),
            F.lit("none of begin, row, end is an object"),
        ),
    )


def _missing(*names: str) -> Column:
    """The names of those of the fields that are null, or null."""
    absent = F.concat_ws(", ", *[F.when(F.col(name).isNull(), F.lit(name)) for name in names])
    return F.when(absent != "", F.concat(F.lit("missing: "), absent))


def _mistyped_fields() -> Column:
    """The fields whose value is there and was not read, each with its value."""
    found = []
    for name in FIELDS:
        given = F.get_json_object(raw(), f"$.{name}")
        text = F.concat(F.lit(f"{name} "), tokens.quoted(given))
        found.append(F.when(F.col(name).isNull() & given.isNotNull(), text))
    return F.concat_ws(", ", *found)


def _negative() -> Column:
    low = [(name, 1 if name == "opno" else 0) for name in _NUMBERS]
    return F.coalesce(
        *[F.when(F.col(name) < least, F.lit(f"{name} is below {least}")) for name, least in low]
    )


def _change_form() -> Column:
    op, after = F.col("op"), F.col("after")
    upsert, delete = op.isin(Op.INSERT, Op.UPDATE), op == Op.DELETE.value
    return F.coalesce(
        F.when(~op.isin(*Op), F.concat(F.lit("unknown op "), tokens.quoted(op))),
        F.when(upsert, _missing("key", "after")),
        F.when(delete, _missing("key")),
        F.when(upsert & ~_is_object("after"), F.lit("after is not an object")),
        F.when(~upsert & after.isNotNull(), F.concat(F.lit("after is there in a "), op)),
        F.when(
            F.col("before").isNotNull() & ~_is_object("before"), F.lit("before is not an object")
        ),
    )


def _position_form() -> Column:
    own = F.col("own")
    good = F.forall("ruv", lambda line: F.coalesce(line.rlike(_RUV_ELEMENT), F.lit(False)))  # noqa: FBT003
    return F.coalesce(
        F.when(~good, F.lit("ruv is not an array of RUV elements in 389 text form")),
        F.when(~own.rlike(_CSN), F.concat(F.lit("own is no CSN: "), tokens.quoted(own))),
    )


def _csn() -> Column:
    """A JSON number of 20 digits is no CSN either, so the quotes must be there."""

    def fault(name: str) -> Column:
        csn = F.col(name)
        good = csn.rlike(_CSN) & raw().contains(F.concat(F.lit('"'), csn, F.lit('"')))
        text = F.concat(F.lit(f"{name} is not 20 lower-case hex digits: "), tokens.quoted(csn))
        return F.when(csn.isNotNull() & ~good, text)

    return F.coalesce(
        F.when(is_kind(Kind.CHANGE, Kind.REFUSED), fault("csn")),
        F.when(is_kind(Kind.CHANGE, Kind.COMMIT, Kind.ABORT), fault("prim_csn")),
    )


def _rid() -> Column:
    def fault(name: str) -> Column:
        rid = F.conv(F.substring(name, 13, 4), 16, 10).try_cast("int")
        text = F.concat(F.lit(f"{name} is of rid "), rid, F.lit(" in the topic of "), F.col("rid"))
        return F.when(rid != F.col("rid"), text)

    return F.coalesce(
        F.when(is_kind(Kind.CHANGE), fault("csn")),
        F.when(is_kind(Kind.CHANGE, Kind.COMMIT, Kind.ABORT), fault("prim_csn")),
        F.when(is_kind(Kind.HELLO), fault("own")),
    )


def _table() -> Column:
    fault = tokens.table_fault(F.col("_looked"))
    text = F.concat(F.lit("table "), tokens.quoted(F.col("table")), F.lit(": "), fault)
    return F.when(F.col("_looked").isNotNull(), text)


def _key() -> Column:
    truncate = F.col("op") == Op.TRUNCATE.value
    return F.when(
        F.col("_looked").isNotNull(),
        F.coalesce(
            F.when(truncate & _has_key(), F.lit("a truncate has no key")),
            F.when(~truncate & ~_is_object("key"), F.lit("key is not an object")),
            F.when(
                ~truncate,
                F.concat(F.lit("key: "), tokens.key_fault(F.col("_looked"))),
            ),
        ),
    )


def _size(record_bytes: int) -> Column:
    size = F.octet_length("value")
    return F.when(size > record_bytes, F.concat(size, F.lit(f" bytes of {record_bytes} allowed")))


def _skew(skew_s: int) -> Column:
    """A CSN's time against the record's own, so that the verdict is the same on every run."""

    def fault(name: str) -> Column:
        csn_ms = F.conv(F.substring(name, 1, 8), 16, 10).try_cast("bigint") * 1000
        ahead_ms = csn_ms - F.unix_millis("time")
        text = F.concat(F.lit(f"{name} is "), ahead_ms, F.lit(" ms ahead of its record"))
        return F.when(ahead_ms > skew_s * 1000, text)

    return F.coalesce(
        F.when(is_kind(Kind.CHANGE), fault("csn")),
        F.when(is_kind(Kind.CHANGE, Kind.COMMIT, Kind.ABORT), fault("prim_csn")),
    )


def _session() -> Column:
    session = F.col("session")
    stands = raw().contains(F.concat(F.lit('"'), session, F.lit('"')))
    return F.coalesce(
        F.when(session.isNull() | (session == ""), F.lit("session is missing")),
        F.when(~stands & session.rlike(_NO_STRING), F.lit("session is not a string")),
    )


def is_kind(*kinds: Kind) -> Column:
    """Claim that the record is of one of these kinds."""
    return F.col("kind").isin(*kinds)


def _is_object(name: str) -> Column:
    return F.col(name).startswith("{")


def _has_key() -> Column:
    return F.col("key").isNotNull() & (F.col("key") != "{}")
