"""The whole story of one change: how it came, what it was judged against, and what followed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from checkpoints.commit.epochs import COMMIT
from checkpoints.query import equals, records
from checkpoints.reading.reader import Reader
from checkpoints.tables import TableName
from streaming.core.conflict.judge import Verdict
from streaming.core.model.csn import rid_of
from streaming.core.model.errors import QuestionError
from streaming.core.model.foreign_json import loads
from streaming.facts.history.conflicts import conflicts

COMMITS_AT_ONCE = 1_000
"""How many commit rows are read at a time, to find which agreement covered a change when."""

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reflection:
    """A record by which a replica said how far it had applied what the hub sent."""

    kind: str
    offset: int
    epoch: int
    covers: int


@dataclass(frozen=True, slots=True)
class Waited:
    """What the pending list noted of the change, in which batch."""

    batch: int
    action: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class Covered:
    """An agreement, and the hub's clock when its consumer had acknowledged the change."""

    agreement: str
    at: Any


@dataclass(frozen=True, slots=True)
class Explanation:
    """A change and what the tables tell of it; `judged`: its row of the changelog, or none.

    `set_by`: the reflection that gave its MRE. `too_late`: the one by which it would have seen the
    row. `retry`: the next change of its replica on the row. `refreshes`: the rows that were sent to
    correct a replica, in its hub epoch. `repeats`: the offsets at which it came again.
    """

    csn: str
    judged: Row | None
    waited: list[Waited]
    quarantine: Sequence[Row]
    conflicts: Sequence[Row] = field(default_factory=list)
    set_by: Reflection | None = None
    too_late: Reflection | None = None
    refreshes: Sequence[Row] = field(default_factory=list)
    retry: Row | None = None
    covered: list[Covered] = field(default_factory=list)
    repeats: list[int] = field(default_factory=list)


def explain(reader: Reader, csn: str) -> Explanation:
    """The story of a change; QuestionError if no table knows it."""
    judged = next(iter(reader.changelog({"csn": csn, "kind": "change"}).to_pylist()), None)
    waited = _waited(reader, csn)
    kept = reader.quarantine({"csn": csn})
    if judged is None:
        if not (waited or kept):
            raise QuestionError(f"no table has a change {csn}: {_why_not(reader, csn)}")
        return Explanation(csn, None, waited, kept)
    found = {
        row["id"]: row
        for name in ("loser_csn", "winner_csn")
        for row in conflicts(reader, {name: csn})
    }
    reflections = list(_reflections(reader, judged["rid"]))
    return Explanation(
        csn,
        judged,
        waited,
        kept,
        list(found.values()),
        _set_by(reflections, judged),
        _too_late(reflections, judged),
        _refreshes(reader, judged),
        _retry(reader, judged),
        list(_covered(reader, judged)),
        _repeats(reader, csn),
    )


def _why_not(reader: Reader, csn: str) -> str:
    state = reader.commit.state if reader.commit else None
    purged = [] if state is None else [ruv.max_of(rid_of(csn)) for ruv in state.purge_ruvs.values()]
    if state is None or not any(edge is not None and csn <= edge for edge in purged):
        return "it has not reached the hub"
    behind = state.purge_epoch
    return f"it is purged, as everything is up to hub epoch {behind}"


def _waited(reader: Reader, csn: str) -> list[Waited]:
    columns, where = ("batch", "action", "reason"), equals({"csn": csn})
    rows = reader.read(TableName.PENDING, columns=columns, where=where, order_by="batch, place")
    return [Waited(**row) for row in rows.to_pylist()]


def _reflections(reader: Reader, rid: int) -> Iterator[Reflection]:
    """What a replica reflected, in the order of its topic."""
    rows = reader.read(
        TableName.EVENTS,
        columns=("kind", "offset", "value"),
        where=[*equals({"rid": rid, "outcome": "taken"}), "kind IN ('applied', 'hello')"],
        order_by='batch, "offset"',
    )
    for row in rows.to_pylist():
        value = loads(row["value"])
        yield Reflection(row["kind"], row["offset"], value["epoch"], value["covers"])


def _set_by(reflections: list[Reflection], judged: Row) -> Reflection | None:
    """The last reflection before the change, of an older epoch, that covers its MRE."""
    before = (
        one
        for one in reversed(reflections)
        if one.offset < judged["offset"]
        and one.covers == judged["mre"]
        and (one.epoch < judged["epoch"] or one.kind == "hello")
    )
    return next(before, None)


def _too_late(reflections: list[Reflection], judged: Row) -> Reflection | None:
    """The first reflection of what stood in the way of a change that was in conflict."""
    if judged["cause"] is None:
        return None
    blocked = max(judged["row_epoch"], judged["realign_epoch"])
    return next((one for one in reflections if one.covers >= blocked > judged["mre"]), None)


def _refreshes(reader: Reader, judged: Row) -> Sequence[Row]:
    equal = {"hub_epoch": judged["hub_epoch"], "table": judged["table"], "key": judged["key"]}
    columns = ("to", "cause", "csn", "image", "place")
    return records(reader.changelog({**equal, "kind": "refresh"}, columns=columns))


def _retry(reader: Reader, judged: Row) -> Row | None:
    """The next change of the replica on the row, if this one did not win."""
    if judged["verdict"] == Verdict.ACCEPTED:
        return None
    equal = {name: judged[name] for name in ("table", "key", "rid")} | {"kind": "change"}
    columns = ("csn", "offset", "hub_epoch", "verdict")
    later = reader.changelog(equal, columns=columns).to_pylist()
    return next((row for row in later if row["offset"] > judged["offset"]), None)


def _covered(reader: Reader, judged: Row) -> Iterator[Covered]:
    """When each agreement had acknowledged the hub epoch of the change; those that have not: not.

    The commits are read in order, until all have.
    """
    lacking = set(reader.commit.state.agreements) if reader.commit else set()
    batch = judged["batch"]
    while lacking:
        rows = reader.read(
            TableName.EPOCHS,
            columns=("batch", "at", "agreements"),
            where=[*equals({"kind": COMMIT}), f"batch >= {batch}"],
            order_by="batch",
            limit=COMMITS_AT_ONCE,
        ).to_pylist()
        for row in rows:
            for one in row["agreements"] or ():
                if one["name"] in lacking and one["acked_covers"] >= judged["hub_epoch"]:
                    lacking.discard(one["name"])
                    yield Covered(one["name"], row["at"])
        if len(rows) < COMMITS_AT_ONCE:
            return
        batch = rows[-1]["batch"] + 1


def _repeats(reader: Reader, csn: str) -> list[int]:
    columns, where = ("offset",), equals({"csn": csn})
    rows = reader.read(TableName.EVENTS, columns=columns, where=where, order_by='"offset"')
    return list(rows["offset"].to_pylist())
