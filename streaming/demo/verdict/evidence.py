"""What a demonstration left behind, read from its files alone: databases, journals, Delta tables.

No count is taken from the hub; every row of the changelog is checked against the journals.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from checkpoints.query import records
from checkpoints.reading.reader import open_state
from checkpoints.tables import TableName
from connectors import wire
from connectors.sqlite.values.columns import stored
from streaming.config.sources.load import load
from streaming.core.model.table import Table
from streaming.demo.databases.found import database_of
from streaming.demo.databases.replica_evidence import (
    JournaledWrite,
    Key,
    ReplicaEvidence,
    Typed,
    typed,
)
from streaming.demo.databases.sqlite_file import SqliteReplica
from streaming.demo.folder import DemoFolder
from streaming.demo.verdict.timing import DemoTiming, stored_timing
from streaming.facts.consumers.compared import ComparedRound, recorded_rounds

Row = dict[str, Any]
"""A row of a Delta table."""


@dataclass(frozen=True, slots=True)
class ReportedHello:
    """A replica's hello that the hub took: in which hub epoch, and when it was published.

    `covers`: up to which hub epoch the replica had applied everything when its own epoch ended with
    `epoch`. `is_loss`: it reported that changes are missing.
    """

    hub_epoch: int
    at_ms: int
    epoch: int
    covers: int
    is_loss: bool


@dataclass(frozen=True, slots=True)
class SentRetirement:
    """What `slackwater retire` said: of which rid, and replica -> how many changes it lacked."""

    rid: int
    lacking: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class LostPacket:
    """A packet that never arrived at its replica, by who carried it.

    It held the hub epochs behind `first_prev` up to `last_hub_epoch`; it was lost at `at_ms`, and
    asked for again at `asked_ms`, when so many others waited.
    """

    replica: str
    first_prev: int
    last_hub_epoch: int
    at_ms: int
    asked_ms: int
    waiting: int


@dataclass(frozen=True)
class Evidence:
    """All files of a demonstration; the changelog is in hub order, quarantine: the kept records.

    `hellos`: by rid, in the order of the topic. `retirement`: of the replica that died.
    `lost_packet`: where one is fed by packets. `compared`: replica -> what the last comparison with
    the hub found, which the hub began by itself.
    """

    tables: Mapping[str, Table]
    replicas: tuple[ReplicaEvidence, ...]
    changelog: list[Row]
    conflicts: list[Row]
    quarantine: list[Row]
    timing: DemoTiming
    hellos: Mapping[int, tuple[ReportedHello, ...]] = field(default_factory=dict)
    retirement: SentRetirement | None = None
    lost_packet: LostPacket | None = None
    compared: Mapping[str, ComparedRound] = field(default_factory=dict)

    @cached_property
    def losses(self) -> dict[int, ReportedHello]:
        """Rid -> the first hello that reported a loss."""
        lost = {rid: [one for one in of if one.is_loss] for rid, of in self.hellos.items()}
        return {rid: of[0] for rid, of in lost.items() if of}

    @cached_property
    def restored(self) -> tuple[ReplicaEvidence, ...]:
        """The replicas that were restored from a backup."""
        return tuple(replica for replica in self.replicas if replica.past is not None)

    @cached_property
    def dead(self) -> ReplicaEvidence | None:
        """The replica that died for ever, by the file on its disk."""
        named = (r for r in self.replicas if self.retirement and r.rid == self.retirement.rid)
        return next(named, None)

    @cached_property
    def survivors(self) -> tuple[ReplicaEvidence, ...]:
        """The replicas that have to be level: all but one that died."""
        return tuple(replica for replica in self.replicas if replica is not self.dead)

    @cached_property
    def known_csns(self) -> "Counter[str]":
        """CSN -> how often it is in changelog and quarantine."""
        kept = (row["csn"] for row in self.quarantine if row["csn"])
        return Counter([*(row["csn"] for row in self.judged), *kept])

    def arrived(self, replica: ReplicaEvidence) -> tuple[JournaledWrite, ...]:
        """The writes that the hub must know: of one that died, those up to the last that it knows.

        Those behind it were never read.
        """
        writes = replica.all_writes
        if replica is not self.dead:
            return writes
        known = [n for n, write in enumerate(writes, 1) if self.known_csns[write.change.csn]]
        return writes[: max(known, default=0)]

    @cached_property
    def judged(self) -> list[Row]:
        """The changes of the changelog, in hub order."""
        return [row for row in self.changelog if row["kind"] == "change"]

    @cached_property
    def refreshes(self) -> list[Row]:
        """Its refreshes, in hub order."""
        return [row for row in self.changelog if row["kind"] == "refresh"]

    @cached_property
    def verdicts(self) -> dict[str, Row]:
        """CSN -> its row in the changelog."""
        return {row["csn"]: row for row in self.judged}

    @cached_property
    def names(self) -> dict[int, str]:
        """Rid -> name."""
        return {replica.rid: replica.name for replica in self.replicas}

    def key(self, table: str, text: str) -> Key:
        """The row that a key's canonical text names."""
        values = wire.image_values(text, self.tables[table])
        return table, tuple(stored(value) for value in values.values())

    def image(self, table: str, text: str) -> Typed:
        """The row that an image's canonical text holds, in the order of the columns."""
        values = wire.image_values(text, self.tables[table])
        return typed(stored(values.get(column)) for column in self.tables[table].columns)


def gather(folder: DemoFolder) -> Evidence:
    """Read everything that a demonstration left in its folder; HubError if it cannot be read."""
    config = load(folder.config)
    tables = config.table_map()
    reader = open_state(config.hub.state)
    return Evidence(
        tables,
        tuple(_with_past(folder, r.name, r.rid, tables) for r in config.replicas),
        records(reader.changelog()),
        records(reader.conflicts()),
        records(reader.read(TableName.QUARANTINE, where=["action = 'kept'"])),
        stored_timing(folder.timing),
        _hellos(records(reader.read(TableName.EVENTS, where=["kind = 'hello'"]))),
        _retirement(folder),
        _lost_packet(folder),
        {name: found for name, (found, _) in recorded_rounds(reader).ended.items()},
    )


def _retirement(folder: DemoFolder) -> SentRetirement | None:
    if not folder.retirement.exists():
        return None
    found = json.loads(folder.retirement.read_text(encoding="utf-8"))
    return SentRetirement(found["rid"], found["lacking"])


def _lost_packet(folder: DemoFolder) -> LostPacket | None:
    if not folder.lost_packet.exists():
        return None
    found = json.loads(folder.lost_packet.read_text(encoding="utf-8"))
    return LostPacket(**{name: found[name] for name in LostPacket.__slots__})


def _with_past(
    folder: DemoFolder, name: str, rid: int, tables: Mapping[str, Table]
) -> ReplicaEvidence:
    found = database_of(folder, name, rid, tables).evidence(name, rid, tables)
    lost = folder.lost(name)
    if not lost.exists():
        return found
    return replace(found, past=SqliteReplica(lost).evidence(name, rid, tables))


def _hellos(taken: list[Row]) -> dict[int, tuple[ReportedHello, ...]]:
    found = defaultdict[int, list[ReportedHello]](list)
    for row in sorted(taken, key=lambda one: int(one["offset"])):
        hello, at_ms = json.loads(row["value"]), round(row["time"].timestamp() * 1000)
        epoch, covers, is_loss = hello["epoch"], hello["covers"], hello["lost"]
        found[row["rid"]].append(ReportedHello(row["hub_epoch"], at_ms, epoch, covers, is_loss))
    return {rid: tuple(of) for rid, of in found.items()}
