"""The input of a benchmark: each replica's changes by their numbers, as its agent writes them.

A change is determined by its number, so that what was written can be counted afterwards: its CSN,
its row, its opno and its transaction.
"""

import json
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any

from confluent_kafka import Producer
from kafka import KafkaProducer

from connectors import wire
from streaming.core.model.ruv import NOTHING_KNOWN
from streaming.core.model.table import ColumnType, Table
from streaming.core.records.check import VERSION
from streaming.core.records.record import Hello

TABLE = Table(
    "account",
    ("id",),
    {
        "id": ColumnType.INT64,
        "owner": ColumnType.TEXT,
        "balance": ColumnType.DECIMAL,
        "sent_ms": ColumnType.INT64,
    },
)
WRITERS = {"alpha": 1, "beta": 2, "gamma": 3}
"""The replicas that write; a benchmark may have more that only receive."""
CSNS_PER_S = 60_000
SHARED_ROWS = 1_000
"""The rows that all writers write: rows 0 and on."""
OWN_ROWS = 50_000
"""The rows that one writer alone writes: in reality most are."""


class Spelling(StrEnum):
    """How the records are written as JSON."""

    CANONICAL = "canonical"
    """as connectors/wire.py and every agent of ours writes them"""
    FOREIGN = "foreign"
    """as json.dumps writes them by default, blanks after comma and colon, and members reversed"""


@dataclass(frozen=True, slots=True)
class Load:
    """What the writers write: change `n` of each updates the same shared row, or its own.

    `shared_of_1000`: how many of 1,000 transactions go to rows that all write; whoever comes
    second has not seen the first. `transaction`: changes in each; 1 is a plain change.
    """

    base_s: int
    shared_of_1000: int = 0
    own_rows: int = OWN_ROWS
    transaction: int = 1
    spelling: Spelling = Spelling.CANONICAL
    writers: tuple[str, ...] = tuple(WRITERS)

    @property
    def rids(self) -> list[int]:
        """The replica ids of its writers."""
        return [WRITERS[name] for name in self.writers]

    def csn(self, rid: int, n: int) -> str:
        """The CSN of a writer's change."""
        return f"{self.base_s + n // CSNS_PER_S:08x}{n % CSNS_PER_S:04x}{rid:04x}0000"

    def row(self, rid: int, n: int) -> int:
        """The row that it writes."""
        unit, share = n // self.transaction, self.shared_of_1000
        before = unit * share // 1_000
        if (unit + 1) * share // 1_000 > before:
            return (before * self.transaction + n % self.transaction) % SHARED_ROWS
        return SHARED_ROWS + rid * self.own_rows + n % self.own_rows

    def change(self, name: str, n: int, epoch: int = 1, sent_ms: int = 0) -> str:
        """A change as it stands in the topic of this writer."""
        rid = WRITERS[name]
        values = {
            "session": session_of(name),
            "csn": self.csn(rid, n),
            "epoch": epoch,
            "row": self.row(rid, n),
            "n": n,
            "opno": n + 1,
            "sent_ms": sent_ms,
        }
        if self.transaction == 1:
            return _CHANGE[self.spelling] % values
        return _MEMBER[self.spelling] % (values | {"prim_csn": self._prim_csn(rid, n)})

    def records(self, name: str, first: int, behind: int) -> Iterator[str]:
        """A writer's changes [first, behind) in order, and the commits of its transactions."""
        for n in range(first, behind):
            yield self.change(name, n)
            if self.transaction > 1 and (n + 1) % self.transaction == 0:
                prim_csn = self._prim_csn(WRITERS[name], n)
                values = {"session": session_of(name), "prim_csn": prim_csn}
                yield _COMMIT[self.spelling] % values

    def _prim_csn(self, rid: int, n: int) -> str:
        return self.csn(rid, n // self.transaction * self.transaction)


def new_load(shared_of_1000: int = 0, own_rows: int = OWN_ROWS, transaction: int = 1) -> Load:
    """A load whose CSNs are of the last hour."""
    return Load(int(time.time()) - 3_600, shared_of_1000, own_rows, transaction)


# -- templates ---------------------------------------------------------------------------------


def _templates(members: dict[str, Any]) -> dict[Spelling, str]:
    """A record in every spelling, with a slot %(name)s for what differs."""
    backwards = dict(reversed(members.items()))
    return {
        Spelling.CANONICAL: _numbers(json.dumps(members, separators=(",", ":"))),
        Spelling.FOREIGN: _numbers(json.dumps(backwards)),
    }


def _numbers(text: str) -> str:
    """The template with the slots of numbers without quotes."""
    for name in ("epoch", "opno"):
        text = text.replace(f'"%({name})s"', f"%({name})s")
    return text


def _image(balance: str) -> dict[str, str]:
    owner = "customer %(row)s of the bank at the harbour"
    return {"id": "%(row)s", "owner": owner, "balance": balance, "sent_ms": "%(sent_ms)s"}


def _head(kind: str) -> dict[str, Any]:
    return {"v": VERSION, "kind": kind, "session": "%(session)s"}


_BODY = {
    "epoch": "%(epoch)s",
    "table": TABLE.name,
    "key": {"id": "%(row)s"},
    "op": "update",
    "before": _image("%(n)s.00"),
    "after": _image("%(n)s.25"),
    "opno": "%(opno)s",
}
_CSN = {"csn": "%(csn)s"}
_PRIM = {"prim_csn": "%(prim_csn)s"}
_CHANGE = _templates(_head("change") | _CSN | _BODY)
_MEMBER = _templates(_head("change") | _CSN | _PRIM | _BODY)
_COMMIT = _templates(_head("commit") | _PRIM)


# -- writing -----------------------------------------------------------------------------------


@cache
def session_of(name: str) -> str:
    """The session of a benchmark's replica, a UUID as an agent makes one."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, name))


def publish_hellos(
    bootstrap: str, topics: Mapping[str, str], covers: int = 0, generation: int = 0
) -> None:
    """Publish a hello for every replica: name -> its changes topic."""
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    hello = Hello(0, covers, generation, NOTHING_KNOWN, None, lost=False)
    for name, topic in topics.items():
        value = wire.encode(session_of(name), hello)
        producer.send(topic, key=name.encode(), value=value, partition=0)
    producer.close()


def preload(bootstrap: str, topics: Mapping[str, str], load: Load, first: int, behind: int) -> None:
    """Write the changes [first, behind) of every writer to its topic, by replica."""
    for name in load.writers:
        values = (text.encode() for text in load.records(name, first, behind))
        publish(bootstrap, topics[name], name, values)


def publish(bootstrap: str, topic: str, replica: str, values: Iterator[bytes]) -> None:
    """Write records in order to a replica's topic, compressed and keyed as an agent does.

    librdkafka does it, for kafka-python would take longer than the hub.
    """
    failures: list[object] = []

    def delivered(error: object, _message: object) -> None:
        if error is not None:
            failures.append(error)

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "compression.type": "lz4",
            "linger.ms": 5,
            "batch.size": 2**18,
            "queue.buffering.max.messages": _QUEUED,
            "on_delivery": delivered,
        }
    )
    for value in values:
        while len(producer) >= _QUEUED:
            producer.poll(0.01)
        producer.produce(topic, value, replica.encode(), partition=0)
    producer.flush()
    if failures:
        raise SystemExit(f"topic {topic} did not take {len(failures)} records: {failures[0]}")


_QUEUED = 50_000
