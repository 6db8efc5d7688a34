"""The hub of a story on the real pipeline: topics in Kafka, stages in Spark, state in Delta."""

import math
import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kafka import KafkaAdminClient, TopicPartition
from pyspark.sql import SparkSession

from checkpoints.commit.faults import FaultPoint
from checkpoints.config import next_commands
from checkpoints.reading.numbers import numbers_at
from checkpoints.reading.reader import open_state
from checkpoints.root import local_folder
from checkpoints.store import StateStore
from checkpoints.tables import TableName
from connectors import wire
from connectors.kafka.placed_records import headers_of
from connectors.kafka.topics import ensure_topics
from connectors.packets.format import packet_files, read_updates
from connectors.packets.header import PacketKind
from streaming.cli.command import append_command
from streaming.config.config import Config
from streaming.config.sources.load import load
from streaming.core.matrix.packets import Place
from streaming.core.model.change import Change, RowKey
from streaming.core.model.command import (
    CommandName,
    ReadmitOrder,
    ResyncOrder,
    RowOrder,
    RowRepair,
    TablesOrder,
    UndoOrder,
)
from streaming.core.model.errors import StateError
from streaming.core.model.ruv import NOTHING_KNOWN, Ruv
from streaming.core.model.statuses import AwayReason
from streaming.core.model.table import DEFAULT_DATASET, Table
from streaming.core.model.truncation import ALL_KEYS
from streaming.core.records.record import PacketMarker, Reason, Record, Stopped, Update
from streaming.core.state.topology import Subscription, Topology
from streaming.core.tracking.resync import PlannedPage
from streaming.facts.consumers.divergent import DivergentRow
from streaming.facts.consumers.level import hub_level
from streaming.facts.consumers.ruvs import state_of
from streaming.facts.history.quarantine import kept_ids
from streaming.facts.history.uncarried import uncarried_rows
from streaming.facts.names import agreement_named, committed, names_of
from streaming.hub.batch.hub import Hub
from streaming.hub.batch.pipeline import process
from streaming.hub.service import Service
from tests.harness.rights import allow_all, deny_write
from tests.harness.topics import TopicEnds
from tests.model.backend import Conflict, Judgement, Kept, RuvComparison, without_values
from tests.model.hub import CHUNK_ITEMS, HubKilledError
from tests.model.post import Packet

RECORD_BYTES = 20_000
PREPARED_S = 300.0
PACKETS = "packets"
"""The folder of packets, in the hub's."""


@dataclass(slots=True)
class RealHub:
    """One service at a time on one state; what a test may see it reads from Kafka and Delta."""

    topology: Topology
    spark: SparkSession
    ends: TopicEnds
    folder: Path
    prefix: str
    config: Config = field(init=False)
    tables: StateStore = field(init=False)
    service: Service | None = None
    kill: FaultPoint | None = None
    seen: dict[int, list[Update | Stopped]] = field(default_factory=dict)
    unread: set[int] = field(default_factory=set)
    ended_at: dict[str, int] = field(default_factory=dict)
    read: dict[TableName, list[dict[str, Any]]] = field(default_factory=dict)
    writes: dict[int, frozenset[str]] = field(default_factory=dict)
    unknown: frozenset[str] = frozenset()
    is_cut: bool = False
    is_standing: bool = False
    places: dict[str, list[Place]] = field(default_factory=dict)
    plans: int = 0

    def __post_init__(self) -> None:
        """Configure it, make its topics, start it."""
        (self.folder / PACKETS).mkdir()
        self._configure()
        self.tables = StateStore(self.config.hub.state)
        names = [s.name for s in self.topology.subscriptions.values()]
        topics = [self.config.changes_topic(n) for n in names]
        topics += [self.config.updates_topic(n) for n in names]
        self._make_topics(topics)
        self.restart(0)

    def _configure(self) -> None:
        path = self.folder / "hub.toml"
        path.write_text(self._text(), encoding="utf-8")
        self.config = load(path)

    def _make_topics(self, topics: Sequence[str]) -> None:
        ensure_topics(self.ends.bootstrap, {}, topics, RECORD_BYTES)

    def _text(self) -> str:
        subscriptions = self.topology.subscriptions.values()
        return "\n".join(
            [
                f'[hub]\ntopic_prefix = "{self.prefix}"\ncovers_interval_ms = 1',
                "ack_timeout_s = 1_000_000\nheartbeat_timeout_s = 1_000_000_000",
                f'[kafka]\nbootstrap_servers = "{self.ends.bootstrap}"',
                f"[limits]\nrecord_bytes = {RECORD_BYTES}\nmin_partitions = 1",
                f"chunk_items = {CHUNK_ITEMS}\npage_items = {self.topology.page_items}",
                f"refused_again_ms = {self.topology.refused_again_ms}",
                f"resync_page_rows = {self.topology.resync_page_rows}",
                *map(_table_text, without_values(self.topology, self.unknown).values()),
                *(
                    f'[[replicas]]\nname = "{s.name}"\nrid = {s.consumer}\n'
                    f"writes = {sorted(self.writes.get(s.consumer, '*'))}"
                    for s in subscriptions
                ),
                *(
                    f'[[agreements]]\nname = "{s.name}"\nconsumer = "{s.name}"\n'
                    f"tables = {sorted(s.tables)}{_packets_text(s)}{_filters_text(s)}"
                    f"\ndelay_s = {s.times.delay_ms // 1_000}"
                    for s in subscriptions
                ),
            ]
        )

    # -- topics -----------------------------------------------------------------------------

    def send(
        self,
        rid: int,
        session: str | None,
        record: Record,
        time_ms: int,
        place: Place | None = None,
    ) -> None:
        """Append a record to a replica's topic, as an agent or the importer of packets does."""
        topic, value = self._changes(rid), wire.encode(session or "", record)
        headers = headers_of(place) if place else ()
        self.ended_at[topic] = self.ends.send(topic, str(rid), value, time_ms, headers) + 1
        if place is not None:
            self.places.setdefault(topic, []).append(place)

    def packets_to(self, rid: int) -> Sequence[Packet]:
        """Every packet that was written for this consumer, from the first."""
        folder = self.folder / PACKETS
        found = map(read_updates, packet_files(folder, PacketKind.UPDATES))
        mine = [one for one in found if one.header.rid == rid]
        return [
            Packet(one.header, tuple(_answers(one.records())))
            for one in sorted(mine, key=lambda one: (one.header.generation, one.header.number))
        ]

    def _place_at(self, topic: str, offset: int) -> Place | None:
        """What the importer knows of the records that packets brought."""
        known = self.places.get(topic, [])
        return known[offset - 1] if 0 < offset <= len(known) else None

    def agreement_read_by(self, rid: int) -> str:
        """The agreement whose updates this replica reads."""
        return self._name(rid)

    def updates(self, rid: int) -> Sequence[Update | Stopped]:
        """Every record of the updates topic of this consumer's agreement, from the first."""
        seen = self.seen.setdefault(rid, [])
        if rid in self.unread:
            new = self.ends.read(self.config.updates_topic(self._name(rid)), len(seen))
            answers = (wire.decode_answer(value) for _, value in new)
            seen += [one for one in answers if not isinstance(one, PacketMarker)]
            self.unread.remove(rid)
        return seen

    # -- batches ----------------------------------------------------------------------------

    def take(
        self,
        counts: Mapping[int, int] | None,
        now_ms: int,
        kill: FaultPoint | None,
        pages: Collection[int] = (),
    ) -> None:
        """One batch as a micro-batch of the query would make it, planned up to these offsets."""
        del now_ms
        if self.is_standing:
            return
        hub, self.kill = self._service().hub, kill
        self._sends()
        to = {}
        for subscription in self.topology.subscriptions.values():
            topic = self._changes(subscription.consumer)
            first, end = hub.ledger.last.offsets[topic], self.ended_at.get(topic, 0)
            limit = end if counts is None else first + counts.get(subscription.consumer, 0)
            to[topic] = min(end, limit)
        ordered = next_commands(hub.ledger.store, hub.ledger.last.command_number)
        settings = hub.settings
        looked = [*settings.topics, *settings.updates_topics] if self.is_cut else []
        now = hub.outlets.look(looked)
        self.plans += 1  # each a second after the one before, for a packet to be due
        at_ms = time.time_ns() // 1_000_000 + self.plans * 1_000
        plan = hub.next_plan(to, at_ms, ordered, now)
        plan = replace(plan, pages=self._pages(hub, pages, at_ms))
        if hub.is_due(plan):
            try:
                process(hub, plan, self._service().planned)
                hub.writable = frozenset()
            except HubKilledError:
                self._close()

    def _pages(self, hub: Hub, rids: Collection[int], at_ms: int) -> tuple[PlannedPage, ...]:
        """The next pages of the resyncs of these consumers; those that have one are waited for."""
        agreements = hub.state.agreements
        due = [n for n, a in agreements.items() if a.consumer in rids and hub.state.takes_page(a)]
        deadline_s = time.monotonic() + PREPARED_S
        while True:
            hub.resyncs.follow(hub.state, hub.upkeep.rows_epoch)
            sorting = [one for name in due for one in hub.resyncs.work[name].sorting.values()]
            found = tuple(p for p in hub.resyncs.due(hub.state, at_ms) if p.agreement in due)
            if len(found) == len(due) and all(one.done() for one in sorting):
                return found
            assert time.monotonic() < deadline_s, f"no page of {due} is prepared"
            time.sleep(0.01)

    def resync(self, rid: int, *, is_full: bool) -> None:
        """Append an operator's command to resync, as `slackwater resync` does."""
        order = ResyncOrder(self._name(rid), is_full).text()
        reader = open_state(self.config.hub.state)
        append_command(reader, CommandName.RESYNC, order)

    def pause(self, rid: int) -> None:
        """Append an operator's command to pause an agreement, as `slackwater pause` does."""
        reader = open_state(self.config.hub.state)
        append_command(reader, CommandName.PAUSE, self._name(rid))

    def pause_table(self, rid: int, table: str, *, is_paused: bool) -> None:
        """Append an operator's command, as `pause --table` and `resume --table` do."""
        name = CommandName.PAUSE_TABLES if is_paused else CommandName.RESUME_TABLES
        order = TablesOrder(self._name(rid), frozenset({table}))
        append_command(open_state(self.config.hub.state), name, order.text())

    def paused_tables(self) -> Mapping[str, Collection[str]]:
        """Agreement -> the tables of which it sends nothing."""
        return self._service().hub.ledger.last.state.paused_tables

    def send_now(self, rid: int) -> None:
        """Append an operator's command, as `slackwater resume --now` does."""
        reader = open_state(self.config.hub.state)
        append_command(reader, CommandName.SEND_NOW, self._name(rid))

    def holds_back(self) -> bool:
        """Return whether something is not sent yet because of when its agreement sends."""
        state = self._service().hub.ledger.last.state
        return any(state.agreements[name].is_sent_to for name in state.held_back)

    def lower_row(self, rid: int, epochs: int) -> None:
        """Append an operator's command to set a row of the matrix, as `slackwater chepoch` does."""
        reader = open_state(self.config.hub.state)
        one = state_of(committed(reader), self._name(rid))
        hub_epoch = max(one.acked_covers, one.estimated - epochs)
        dataset = self.config.dataset_of(agreement_named(self.config, one.name))
        table = reader.table(TableName.EPOCHS)
        ruv = numbers_at(table, hub_epoch).ruvs.get(dataset, NOTHING_KNOWN)
        order = RowOrder(one.name, hub_epoch, tuple(ruv.text()))
        append_command(reader, CommandName.CHEPOCH, order.text())

    def refuse_sent(self, rid: int, *, is_refused: bool) -> None:
        """Take the right to write the topic away, or give it back."""
        topic = self.config.updates_topic(self._name(rid))
        change = deny_write if is_refused else allow_all
        change(self.ends.bootstrap, topic)

    def find_writable(self, rid: int) -> None:
        """Note that the topic may be written again, as the hub's own look at its topics does."""
        hub, name = self._service().hub, self._name(rid)
        if hub.state.agreements[name].is_unwritable:
            hub.writable |= {name}

    def may_write(self, rid: int, table: str, *, is_allowed: bool) -> None:
        """Change `writes` of this replica in the configuration, and start the hub again."""
        before, one = self.writes.get(rid, frozenset(self.topology.tables)), {table}
        self.writes[rid] = before | one if is_allowed else before - one
        self._configure()
        self._close()
        self.restart(0)

    def know_column(self, table: str, *, is_known: bool) -> None:
        """Change the columns of the table in the configuration, and start the hub again."""
        self.unknown = self.unknown - {table} if is_known else self.unknown | {table}
        self._configure()
        self._close()
        self.restart(0)

    def go_on(self) -> None:
        """Order what a hub orders some seconds after it came up."""
        self._service().column_waits.order(time.time_ns() // 1_000_000)

    def reconfigure(self, topology: Topology) -> None:
        """Start again with a configuration by which agreements send something else."""
        self.topology = topology
        self._configure()
        self._close()
        self.restart(0)

    def says_level(self) -> bool:
        """Return what `slackwater level` says, however old the last commit is."""
        ends = {topic: self.ended_at.get(topic, 0) for topic in map(self._changes, self._rids())}
        reader = open_state(self.config.hub.state)
        return hub_level(self.config, reader, lambda: ends, time.time(), math.inf).level

    def _rids(self) -> list[int]:
        return [one.consumer for one in self.topology.subscriptions.values()]

    def mark_away(self, rid: int) -> None:
        """Mark a consumer as away, by a batch: its clock does not reach the timeout."""
        hub, name = self._service().hub, self._name(rid)
        away = hub.state.agreements[name].away(AwayReason.SILENT, 0)
        hub.state = replace(hub.state, agreements={**hub.state.agreements, name: away})
        hub.reconfigured = True
        self.take({}, 0, None)

    def take_beside(self, now_ms: int, pages: Collection[int]) -> None:
        """No other hub reads its topics."""

    def lost_elsewhere(self) -> Collection[str | None]:
        """No other hub reads its topics."""
        return ()

    def undone(self) -> Collection[Change]:
        """Nothing: no law is asked of it."""
        return ()

    def abort(self, csn: str) -> None:
        """Append an operator's command to abort a transaction, as `slackwater abort` does."""
        append_command(open_state(self.config.hub.state), CommandName.ABORT, csn)

    def retry(self, rid: int) -> None:
        """Append an operator's command, as `slackwater conflicts retry --replica` does."""
        reader = open_state(self.config.hub.state)
        append_command(reader, CommandName.RETRY, f"r{rid}")

    def lose_unread(self, rid: int) -> None:
        """Delete what the committed batches have not taken of this replica's topic."""
        topic = self._changes(rid)
        admin = KafkaAdminClient(bootstrap_servers=self.ends.bootstrap)
        admin.delete_records({TopicPartition(topic, 0): self.ended_at.get(topic, 0)})
        admin.close()
        self.is_cut = True

    def recover(self, rid: int) -> None:
        """Append an operator's command to give up the lost input, as `slackwater recover` does."""
        reader = open_state(self.config.hub.state)
        append_command(reader, CommandName.RECOVER, str(rid))

    def retire(self, rid: int) -> None:
        """Append an operator's command to take a replica out, as `slackwater retire` does."""
        reader = open_state(self.config.hub.state)
        append_command(reader, CommandName.RETIRE, str(rid))

    def readmit(self, rid: int) -> None:
        """Append an operator's command, as `slackwater clean-ruv --readmit` does."""
        reader = open_state(self.config.hub.state)
        order = ReadmitOrder(rid, self.ended_at.get(self._changes(rid), 0))
        append_command(reader, CommandName.READMIT, order.text())

    def resume(self, rid: int) -> None:
        """Append an operator's command to resume an agreement, as `slackwater resume` does."""
        reader = open_state(self.config.hub.state)
        append_command(reader, CommandName.RESUME, self._name(rid))

    def restart(self, now_ms: int) -> None:
        """Open the state anew: an unfinished plan is finished, the last batch published again."""
        del now_ms
        self.kill, self.is_standing = None, False
        self._sends()
        try:
            self.service = Service(self.config, self.spark, self._at)
            self.service.source.options |= {"kafka.group.id": self.prefix}  # consumers are kept
            self.service.hub.place_at = self._place_at
        except StateError as error:
            self.is_standing = "slackwater recover" in str(error)
            if not self.is_standing:
                raise

    def back_up(self) -> None:
        """Copy the folder of the state."""
        shutil.rmtree(self.folder / "backup", ignore_errors=True)
        shutil.copytree(local_folder(self.config.hub.state), self.folder / "backup")

    def put_back(self, now_ms: int) -> None:
        """Put the copy in the folder's place, while no hub runs."""
        self._close()
        shutil.rmtree(local_folder(self.config.hub.state))
        shutil.copytree(self.folder / "backup", local_folder(self.config.hub.state))
        self.tables = StateStore(self.config.hub.state)
        self.restart(now_ms)

    def stands_still(self) -> bool:
        """Return whether it refused to start on its state, which was put back."""
        return self.is_standing

    def recover_hub(self, now_ms: int) -> None:
        """Append an operator's command, as `slackwater recover` does, and start the hub."""
        reader = open_state(self.config.hub.state)
        append_command(reader, CommandName.RECOVER_HUB, None)
        self.restart(now_ms)

    def _close(self) -> None:
        if self.service is not None:
            self.service.updates.close()
            self.service.topics.close()
            self.service.resyncs.close()
            self.service = None

    def _sends(self) -> None:
        """From here on there may be more in every updates topic and every table."""
        self.read.clear()
        self.unread.update(s.consumer for s in self.topology.subscriptions.values())

    def is_up(self) -> bool:
        """Return whether it was not killed since it started."""
        return self.service is not None or self.is_standing

    def _at(self, point: FaultPoint) -> None:
        if point is self.kill:
            raise HubKilledError

    def _service(self) -> Service:
        if self.service is None:
            raise AssertionError("the hub is down: the story must restart it")
        return self.service

    # -- tables -----------------------------------------------------------------------------

    def offset(self, rid: int) -> int:
        """How many records of this replica's topic the committed batches have taken."""
        commit = open_state(self.config.hub.state).commit
        return commit.offsets.get(self._changes(rid), 0) if commit else 0

    def hub_epoch(self) -> int:
        """The last committed hub epoch."""
        return int(max(self._committed("hub_epoch"), default=0))

    def ruv(self) -> Ruv:
        """The hub's RUV."""
        return self._service().hub.state.ruv_of(DEFAULT_DATASET)

    def rows(self) -> Mapping[RowKey, str]:
        """The image of every row that exists, by the last accepted change of each."""
        last = dict[RowKey, str | None]()
        for row in (one for one in self._log() if one["verdict"] == "accepted"):
            if row["key"] == ALL_KEYS:
                last = {key: image for key, image in last.items() if key[0] != row["table"]}
            else:
                last[row["table"], row["key"]] = row["image"]
        return {key: image for key, image in last.items() if image is not None}

    def changelog(self) -> Sequence[Judgement]:
        """Every judged change in hub order."""
        return [
            Judgement(
                row["csn"],
                row["content"],
                row["prim_csn"],
                row["verdict"],
                row["concurrent"],
                row["row_csn"],
                row["hub_epoch"],
            )
            for row in self._log()
            if row["kind"] == "change"
        ]

    def conflicts(self) -> Sequence[Conflict]:
        """Every recorded loser."""
        rows = [row for row in self._rows(TableName.CONFLICTS) if row["kind"] != "refused"]
        return [Conflict(row["loser_csn"], row["winner_csn"]) for row in rows]

    def refused(self) -> Mapping[tuple[int, RowKey], int]:
        """(rid, row) -> how often its database refused it, of the rows it has not taken since."""
        reader = open_state(self.config.hub.state)
        rows = reader.conflicts({"kind": "refused", "resolution": "open"}).to_pylist()
        return {(row["loser_rid"], (row["table"], row["key"])): row["attempts"] for row in rows}

    def uncarried(self) -> Collection[tuple[int, RowKey]]:
        """(rid, row) of what its writer holds and nobody else can take, as `level` lists it."""
        return {
            (self.config.replica(one.replica).rid, (one.table, one.key))
            for one in self._uncarried()
            if one.table is not None and one.key is not None
        }

    def drop_uncarried(self) -> None:
        """Append an operator's commands, as `slackwater quarantine drop` does."""
        reader = open_state(self.config.hub.state)
        names = names_of(self.config)
        listed = {(one.replica, one.table, one.key) for one in self._uncarried()}
        ids = {
            row["id"]
            for row in self._rows(TableName.QUARANTINE)
            if Reason(row["reason"]).is_uncarried
            and (names.get(row["rid"]), row["table"], row["key"]) in listed
        }
        for id_ in kept_ids(reader):
            if id_ in ids:
                append_command(reader, CommandName.DROP, id_)

    def set_right(self, rid: int, row: RowKey) -> None:
        """Append an operator's command, as `slackwater compare --repair` does."""
        order = RowRepair(*row, rid, "operator", "it was edited")
        append_command(open_state(self.config.hub.state), CommandName.REPAIR, order.text())

    def prefer(self, rid: int, row: RowKey, image: str | None) -> None:
        """Append an operator's command, as `slackwater compare --repair` does."""
        before = self.rows().get(row)
        order = RowRepair(*row, rid, "operator", "it was edited", before, image)
        append_command(open_state(self.config.hub.state), CommandName.PREFER, order.text())

    def undo(self, order: UndoOrder) -> None:
        """Append an operator's command, as `slackwater undo --yes` does."""
        append_command(open_state(self.config.hub.state), CommandName.UNDO, order.text())

    def release(self, reason: Reason) -> None:
        """Append an operator's commands, as `slackwater quarantine release` does."""
        reader = open_state(self.config.hub.state)
        for id_ in kept_ids(reader, reason=reason):
            append_command(reader, CommandName.RELEASE, id_)

    def _uncarried(self) -> list[DivergentRow]:
        return uncarried_rows(self.config, open_state(self.config.hub.state))

    def quarantine(self) -> Sequence[Kept]:
        """Everything in quarantine."""
        rows = self._rows(TableName.QUARANTINE)
        return [Kept(row["rid"], row["offset"], row["reason"]) for row in rows]

    def ended(self) -> frozenset[str]:
        """The CSNs of the transactions that a hello, an abort or the quarantine ended."""
        return frozenset(self._service().hub.state.open.ended_csns)

    def standing(self, rid: int) -> RuvComparison:
        """The agreement with this consumer, as `status` shows it."""
        one = self._service().hub.ledger.last.state.agreements[self._name(rid)]
        return RuvComparison(one.status_text, one.acked_covers, one.acked_ruv)

    def _log(self) -> list[dict[str, Any]]:
        rows = self._rows(TableName.CHANGELOG)
        return sorted(rows, key=lambda row: (row["hub_epoch"], row["place"]))

    def _rows(self, name: TableName) -> list[dict[str, Any]]:
        """The committed rows of a table, as another process would read them."""
        committed = max(self._committed("batch"), default=0)
        return [row for row in self._all(name) if row["batch"] <= committed]

    def _committed(self, column: str) -> list[int]:
        rows = self._all(TableName.EPOCHS, "kind", "batch", "hub_epoch")
        return [row[column] for row in rows if row["kind"] == "commit"]

    def _all(self, name: TableName, *columns: str) -> list[dict[str, Any]]:
        """The rows of a table, in these columns if some are given: `epochs` is wide."""
        if name not in self.read:
            self.tables.refreshed(name)
            self.read[name] = self.tables.read(name, columns=columns).to_pylist()
        return self.read[name]

    def _name(self, rid: int) -> str:
        return next(s.name for s in self.topology.subscriptions.values() if s.consumer == rid)

    def _changes(self, rid: int) -> str:
        return self.config.changes_topic(self._name(rid))


def _packets_text(subscription: Subscription) -> str:
    by_packets = f'\npackets = "{PACKETS}"\npacket_every_s = 1'
    return by_packets if subscription.is_by_packets else ""


def _filters_text(subscription: Subscription) -> str:
    rows = (f'\nrows.{name} = "{one}"' for name, one in subscription.rows.items())
    known = subscription.columns.items()
    columns = (f"\ncolumns.{name} = {sorted(one.columns)}" for name, one in known)
    keeps = [] if subscription.sends_deletes else ['\nsend = ["insert", "update"]']
    return "".join([*keeps, *rows, *columns])


def _answers(values: Iterable[bytes]) -> Iterator[Update | Stopped]:
    for value in values:
        answer = wire.decode_answer(value)
        if not isinstance(answer, PacketMarker):
            yield answer


def _table_text(table: Table) -> str:
    columns = ", ".join(f'{name} = "{kind}"' for name, kind in table.columns.items())
    named = f'[[tables]]\nname = "{table.name}"\nfunction = "{table.function}"'
    named += f'\non_refused = "{table.on_refused}"\non_hidden = "{table.on_hidden}"'
    return f'{named}\nkey = ["k"]\ncolumns = {{ {columns} }}'
