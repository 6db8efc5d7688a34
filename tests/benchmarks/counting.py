"""What was actually delivered, counted from the topics: a run with a wrong count has no result.

Three sources must agree: the numbers that were written (load), the losers in `conflicts`, and the
content of the updates topics.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow.compute as pc
import pyarrow.dataset as ds
from kafka import KafkaConsumer, TopicPartition

from checkpoints.store import StateStore
from checkpoints.tables import TableName
from streaming.config.config import Config
from tests.benchmarks.load import CSNS_PER_S, WRITERS, Load

_HEAD = re.compile(rb'"hub_epoch":(\d+),"prev":(\d+),')
_ITEM = re.compile(
    rb'\{"type":"(change|refresh)","table":"[^"]*","key":\{[^}]*\},"op":"[a-z]+"'
    rb'(?:,"after":\{[^}]*\})?(?:,"csn":"([0-9a-f]{20})")?,"author":\d+'
)
"""An item; only the refresh of a row that nobody has written has no CSN."""
_BEGIN = b'{"type":"'
_CSN_BYTES = 10


class WrongCountError(Exception):
    """The deliveries differ from what is expected; the run has no result."""


@dataclass(frozen=True, slots=True)
class Counted:
    """A right count: what was written, delivered, refreshed, and lost to a conflict."""

    written: int
    delivered: int
    refreshes: int
    rejected: int
    conflicts: int
    """Changes that were concurrent with their row, whatever the verdict."""
    repeated_records: int

    @property
    def contended_percent(self) -> float:
        """How many of 100 changes really were in conflict."""
        return round(100 * self.conflicts / self.written, 2)


@dataclass(slots=True)
class _Topic:
    """What one updates topic holds, each record once."""

    changes: list[bytes] = field(default_factory=list)
    refreshes: int = 0
    repeated: int = 0


Numbers = Mapping[int, np.ndarray]
"""Rid -> how often each of its changes, by its number."""


def count(config: Config, bootstrap: str, load: Load, each: int, *, restarts: int = 0) -> Counted:
    """Count a run in which every writer wrote `each` changes; WrongCountError names the mistake.

    Only a hub that was started again (`restarts`) may have sent a record twice.
    """
    store = StateStore(config.hub.state)
    lost, concurrent = _lost(store, load, each)
    _check_log(store, load, each, lost)
    sent_refreshes = _refreshes(store)
    rids = {replica.name: replica.rid for replica in config.replicas}
    delivered = refreshes = repeated = 0
    for agreement in config.agreements:
        consumer = rids[agreement.consumer]
        topic = _read(bootstrap, config.updates_topic(agreement.name))
        found = _numbers(topic.changes, load, each, agreement.name)
        for rid in WRITERS.values():
            expected = _expected(load, rid, lost) if rid != consumer else np.zeros_like(lost[rid])
            _same(found[rid], expected, f"{agreement.name} was sent changes of replica {rid}")
        _same_number(topic.refreshes, sent_refreshes.get(consumer, 0), f"{agreement.name}: refresh")
        if topic.repeated and not restarts:
            raise WrongCountError(f"{agreement.name}: {topic.repeated} records stand there twice")
        delivered += sum(int(n.sum()) for n in found.values())
        refreshes += topic.refreshes
        repeated += topic.repeated
    rejected = sum(int(n.sum()) for n in lost.values())
    written = each * len(load.writers)
    return Counted(written, delivered, refreshes, rejected, concurrent, repeated)


def _lost(store: StateStore, load: Load, each: int) -> tuple[Numbers, int]:
    """The changes that `conflicts` names as losers, and how many were concurrent."""
    columns = ["lost", "loser_csn", "row_epoch", "realign_epoch", "mre"]
    store.refreshed(TableName.CONFLICTS)
    rows = store.read(TableName.CONFLICTS, columns=columns)
    blocked = pc.max_element_wise(rows["row_epoch"], rows["realign_epoch"])
    concurrent = int(pc.sum(pc.greater(blocked, rows["mre"])).as_py() or 0)
    changes = rows.filter(pc.equal(rows["lost"], "change"))
    csns = [csn.encode() for csn in changes["loser_csn"].to_pylist()]
    numbers = _numbers(csns, load, each, "table conflicts")
    if any((n > 1).any() for n in numbers.values()):
        raise WrongCountError("table conflicts names a change twice")
    return numbers, concurrent


def _check_log(store: StateStore, load: Load, each: int, lost: Numbers) -> None:
    """WrongCountError unless the changelog has every written change once, judged as expected."""
    store.refreshed(TableName.CHANGELOG)
    first = load.csn(0, 0)
    where = (ds.field("kind") == "change") & (ds.field("csn") >= first)
    rows = store.read(TableName.CHANGELOG, where, ["csn", "verdict"])
    for verdict in ("accepted", "rejected"):
        csns = rows.filter(pc.equal(rows["verdict"], verdict))["csn"].to_pylist()
        found = _numbers([csn.encode() for csn in csns], load, each, "table changelog")
        for rid, numbers in lost.items():
            expected = numbers if verdict == "rejected" else _expected(load, rid, lost)
            _same(found[rid], expected, f"the changelog has {verdict} changes of replica {rid}")


def _expected(load: Load, rid: int, lost: Numbers) -> np.ndarray:
    """How often each change of a replica has to be accepted: once, if written and not lost."""
    return (1 if rid in load.rids else 0) - lost[rid]


def _refreshes(store: StateStore) -> dict[int, int]:
    """Rid of the receiver -> refreshes in the changelog."""
    where = ds.field("kind") == "refresh"
    found = store.read(TableName.CHANGELOG, where, ["to"])["to"].value_counts()
    return {row["values"]: row["counts"] for row in found.to_pylist()}


def _numbers(csns: list[bytes], load: Load, each: int, where: str) -> Numbers:
    """How often each change is among these CSNs; WrongCountError if one was never written."""
    parts = np.frombuffer(bytes.fromhex(b"".join(csns).decode()), dtype=np.uint8)
    parts = parts.reshape(-1, _CSN_BYTES).astype(np.int64)
    time_s = parts[:, 0] << 24 | parts[:, 1] << 16 | parts[:, 2] << 8 | parts[:, 3]
    n = (time_s - load.base_s) * CSNS_PER_S + (parts[:, 4] << 8 | parts[:, 5])
    rid = parts[:, 6] << 8 | parts[:, 7]
    unknown = (n < 0) | (n >= each) | ~np.isin(rid, list(WRITERS.values()))
    if unknown.any():
        csn = csns[int(np.flatnonzero(unknown)[0])].decode()
        raise WrongCountError(
            f"{where} has {unknown.sum()} CSNs that were never written, first {csn}"
        )
    return {r: np.bincount(n[rid == r], minlength=each) for r in WRITERS.values()}


def _same(found: np.ndarray, expected: np.ndarray, what: str) -> None:
    wrong = np.flatnonzero(found != expected)
    if len(wrong):
        n = int(wrong[0])
        raise WrongCountError(
            f"{what}: {len(wrong)} are not there as often as they must be; the first is change"
            f" {n}, {found[n]} times instead of {expected[n]}"
        )


def _same_number(found: int, expected: int, what: str) -> None:
    if found != expected:
        raise WrongCountError(f"{what}: {found} are in the topic, {expected} in the changelog")


def _read(bootstrap: str, topic: str) -> _Topic:
    """All of an updates topic; WrongCountError if an epoch does not follow the one before."""
    found, known = _Topic(), set[bytes]()
    last: int | None = None
    for key, value in records_of(bootstrap, topic):
        if key in known:
            found.repeated += 1
            continue
        known.add(key)
        head = _HEAD.search(value[:10_000])
        if head is None:
            raise WrongCountError(f"{topic} has a record without a header: {value[:200]!r}")
        hub_epoch, prev = int(head[1]), int(head[2])
        if last not in (None, hub_epoch, prev):
            raise WrongCountError(f"{topic}: hub epoch {hub_epoch} follows {last}, not {prev}")
        last = hub_epoch
        items = _ITEM.findall(value)
        if len(items) != value.count(_BEGIN):
            raise WrongCountError(f"{topic}: an item of hub epoch {hub_epoch} cannot be read")
        changes = [csn for kind, csn in items if kind == b"change"]
        if b"" in changes:
            raise WrongCountError(f"{topic}: a change of hub epoch {hub_epoch} has no CSN")
        found.changes += changes
        found.refreshes += len(items) - len(changes)
    return found


def records_of(bootstrap: str, topic: str) -> Iterator[tuple[bytes, bytes]]:
    """Key and value of each record that is there now."""
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, max_partition_fetch_bytes=2**24, fetch_max_bytes=2**25
    )
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek_to_beginning()
    end = consumer.end_offsets([partition])[partition]
    while consumer.position(partition) < end:
        for records in consumer.poll(timeout_ms=1_000).values():
            yield from ((record.key, record.value) for record in records)
    consumer.close()
