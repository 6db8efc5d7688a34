"""Audit the state from the changelog alone: judged again, and what must hold of every history."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from checkpoints.commit.epochs import Checkpoint, checkpoint_of
from checkpoints.commit.recorded import Read, batch_marks, commit_of
from checkpoints.query import equals, select
from checkpoints.reading.as_of import STANDING, rows_behind_purge, rows_of_changelog
from checkpoints.reading.past import PastStore, readable_version, rows_version
from checkpoints.tables import TableName
from streaming.core.counts.counter_keys import WITHOUT_VALUE, ReplicaKey
from streaming.core.model.ruv import largest_of
from streaming.core.replay.audit import Check, Finding, different_ends, holes
from streaming.core.replay.span import Span
from streaming.core.replay.undo import UnaskedUndo
from streaming.replay.configured import ConfigsThen
from streaming.replay.report.answer import Chosen
from streaming.replay.run import ReplayedBatch, replay_from
from streaming.stages.log import CHANGE

KEPT = 1_000
"""How many findings are kept one by one."""


@dataclass(slots=True)
class Audit:
    """What an audit found; `largest`: rid -> the largest CSN judged.

    `unasked`: the undos whose rows are judged as they are recorded.
    """

    from_epoch: int
    to_epoch: int
    changes: int = 0
    records: int = 0
    rows: int = 0
    seconds: float = 0.0
    count: int = 0
    findings: list[Finding] = field(default_factory=list)
    largest: dict[int, str] = field(default_factory=dict)
    unasked: list[UnaskedUndo] = field(default_factory=list)

    @property
    def is_sound(self) -> bool:
        """Return whether nothing was found."""
        return not self.count

    def found(self, findings: Iterator[Finding]) -> None:
        """Add findings."""
        for one in findings:
            self.count += 1
            if len(self.findings) < KEPT:
                self.findings.append(one)

    def add(self, one: ReplayedBatch) -> None:
        """Add a batch."""
        log = one.logs[0]
        changes = log.filter(pc.equal(log["kind"], CHANGE))
        epoch = one.after.state.hub_epoch
        self.changes += changes.num_rows
        self.records += one.facts.num_rows
        self.unasked += one.unasked
        self.found(_facts(one, epoch))
        self.found(_offsets(one, epoch))
        for rid, csn in _largest(changes).items():
            self.largest[rid] = max(self.largest.get(rid, ""), csn)
        self.found(self._ruvs(one.after, epoch))

    def _ruvs(self, after: Checkpoint, epoch: int) -> Iterator[Finding]:
        for rid, largest, judged in different_ends(after.state.ruvs.values(), self.largest):
            yield Finding(
                Check.RUV,
                epoch,
                f"replica {rid}",
                f"the RUV ends with {largest}, the changelog with {judged or 'nothing'}",
            )

    def document(self) -> dict[str, object]:
        """The audit as one JSON document."""
        return {
            "sound": self.is_sound,
            "from_epoch": self.from_epoch,
            "to_epoch": self.to_epoch,
            "changes": self.changes,
            "records": self.records,
            "rows": self.rows,
            "seconds": round(self.seconds, 3),
            "not_asked": [undo.document() for undo in self.unasked],
            "findings": self.count,
            "found": [one._asdict() for one in self.findings],
        }


def _facts(one: ReplayedBatch, epoch: int) -> Iterator[Finding]:
    for d in one.differences:
        where = f"{d.part} {d.id}" + (f", {d.table} {d.key}" if d.table else "")
        detail = f"{d.fact} is recorded as {d.recorded}, and comes out as {d.replayed}"
        yield Finding(Check.FACT, epoch, where, detail)


def _offsets(one: ReplayedBatch, epoch: int) -> Iterator[Finding]:
    """Offsets that a batch read and no table has, unless just as many had no record to keep."""
    topics, after = one.config.settings.all_topics, one.after
    for topic, (first, _) in one.plan.named.items():
        rid = topics[topic]
        there = one.facts.filter(pc.equal(one.facts["rid"], rid))["offset"].to_pylist()
        found = [*holes(there, first, after.offsets[topic])]
        missing = sum(end - begin for begin, end in found)
        known = after.counts.get(ReplicaKey(WITHOUT_VALUE, rid), 0)
        if missing == known:
            continue
        why = f"; of {missing} such offsets {known} had no record with a value" if known else ""
        for begin, end in found:
            detail = f"no table has the records from {begin} to {end - 1}{why}"
            yield Finding(Check.OFFSETS, epoch, topic, detail)


def verify(store: PastStore, chosen: Chosen, read: Read) -> Audit:
    """Audit a part of the history, and the full state against the changelog."""
    started_s, span = time.monotonic(), chosen.span
    audit = Audit(span.from_epoch, span.to_epoch, largest=_largest_before(store, span.first))
    for one in replay_from(store, ConfigsThen(store), span).batches(read, chosen.marks):
        audit.add(one)
    audit.found(_judged_twice(store, span))
    last = commit_of(store, span.last)
    if last is not None:
        audit.found(_rows(store, checkpoint_of(last), audit))
    audit.seconds = time.monotonic() - started_s
    return audit


_IS_CHANGE = ds.field("kind") == CHANGE


def _largest_before(store: PastStore, batch: int) -> dict[int, str]:
    """Rid -> its largest CSN that was judged before a batch, or is purged since."""
    older = _IS_CHANGE & (ds.field("batch") < batch)
    found = _largest(store.read(TableName.CHANGELOG, older, ["rid", "csn"]))
    newest = commit_of(store, batch_marks(store)[-1].batch)
    gone = {} if newest is None else largest_of(checkpoint_of(newest).state.purge_ruvs.values())
    return {rid: max(found.get(rid, ""), gone.get(rid, "")) for rid in found.keys() | gone.keys()}


def _largest(changes: pa.Table) -> dict[int, str]:
    """Rid -> its largest CSN."""
    found = changes.group_by("rid").aggregate([("csn", "max")])
    pairs = zip(found["rid"].to_pylist(), found["csn_max"].to_pylist(), strict=True)
    return {int(rid): csn for rid, csn in pairs}


def _judged_twice(store: PastStore, span: Span) -> Iterator[Finding]:
    """CSNs of this span that were judged more than once, or before it too."""
    where = _IS_CHANGE & (ds.field("batch") <= span.last)
    log = store.read(TableName.CHANGELOG, where, ["csn", "hub_epoch"])
    found = log.group_by("csn").aggregate([("hub_epoch", "count"), ("hub_epoch", "max")])
    for row in found.filter(pc.greater(found["hub_epoch_count"], 1)).to_pylist():
        if row["hub_epoch_max"] >= span.from_epoch:
            times = f"judged {row['hub_epoch_count']} times"
            yield Finding(Check.CSN, row["hub_epoch_max"], row["csn"], times)


def _rows(store: PastStore, commit: Checkpoint, audit: Audit) -> Iterator[Finding]:
    """Where `rows`, as this commit names it, is not what the changelog makes of every row.

    Where something is purged it makes them of `rows` as of the purge.
    """
    version, behind = rows_version(commit), rows_behind_purge(store, commit)
    if version is None or not version.rows_epoch or behind is None:
        return
    table = readable_version(store.root, version.version)
    if table is None:
        return
    names = pc.unique(store.read(TableName.CHANGELOG, columns=["table"])["table"]).drop_null()
    for name in sorted({*names.to_pylist(), *behind.tables()}):
        where = [*equals({"table": name}), f"hub_epoch <= {version.rows_epoch}"]
        rows = select(table, TableName.ROWS, columns=STANDING.names, where=where)
        recorded = _by_key(rows.filter(pc.is_valid(rows["image"])))
        rebuilt = _by_key(rows_of_changelog(store, name, behind, version.rows_epoch))
        audit.rows += len(rebuilt)
        for key in sorted(recorded.keys() | rebuilt.keys()):
            mine, theirs = recorded.get(key), rebuilt.get(key)
            if mine != theirs:
                detail = f"`rows` has {mine}, the changelog makes it {theirs}"
                yield Finding(Check.ROWS, version.rows_epoch, f"{name} {key}", detail)


def _by_key(rows: pa.Table) -> dict[str, dict[str, object]]:
    return {row.pop("key"): row for row in rows.to_pylist()}
