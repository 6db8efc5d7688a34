"""Publishing: each agreement is sent the hub epochs that the committed state names."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.dataset as ds
from numpy import isin

from checkpoints.commit.epochs import Plan
from checkpoints.commit.faults import FaultPoint
from checkpoints.commit.protocol import BatchOutcome
from checkpoints.reading.lookup import between
from checkpoints.store import StateStore
from checkpoints.tables import TableName
from connectors.packets.header import UpdatesHeader
from connectors.wire import encode_packet_marker, encode_stopped
from streaming.carriers.carrier import Carrier
from streaming.core.batch.sending import stop_answers
from streaming.core.delivery.recovery_point import Delays
from streaming.core.model.errors import PublishError
from streaming.core.model.row import RowState
from streaming.core.state.hub_state import HubState
from streaming.core.state.topology import Subscription
from streaming.hub.batch import packets
from streaming.hub.batch.hub import Hub
from streaming.hub.batch.settings import BatchSettings
from streaming.stages import publish as publish_stage
from streaming.stages.checked import Ints, ints
from streaming.stages.filtered import with_filter_columns
from streaming.stages.publish import Chunk, Outgoing, OutgoingWithRanges, shown
from streaming.stages.recipients import PAGE_COLUMNS, sent_rows
from streaming.stages.window import ChangedRows


@dataclass(frozen=True, slots=True)
class DecidedBatch(BatchOutcome):
    """What a batch came to, with what the driver keeps of it until it is published.

    `outgoing`: its changelog rows in hub order. `rows`: what the window takes over.
    `contended`: the rows that core judged, as it left them. `plan`: by which it was decided.
    `page_items`: agreement -> the items of the ranges that it is sent. `delays`: behind the batch.
    """

    carrier: Carrier
    outgoing: Outgoing
    rows: ChangedRows
    contended: Collection[RowState]
    plan: Plan
    page_items: Mapping[str, pa.Array]
    delays: Delays


def publish(hub: Hub, state: HubState, fresh: DecidedBatch | None = None) -> None:
    """Publish the batch; all of it again if an updates topic was deleted meanwhile.

    A topic that refuses what it is sent ends nothing: its consumer is away from the next batch on.
    A packet that cannot be written is exported again by a later one.
    """
    while True:
        try:
            hub.undelivered = _publish(hub, state, fresh)
        except PublishError:
            if not hub.outlets.renew():
                raise
        else:
            return


def _publish(hub: Hub, state: HubState, fresh: DecidedBatch | None) -> frozenset[str]:
    """Send to each agreement the range that the state names, or why it was stopped.

    Returns the agreements whose topics or folders refused it. Sent again it has the same ids. One
    of a higher priority is sent to first. What goes out by packets is written last: the note of a
    packet is in the topic before anybody has it.

    `fresh`: the decision of the state's own batch, when it is in memory.
    """
    reach, carried, fed = hub.ledger.reach, list[Chunk](), packets.fed_by_packets(state)
    for answer in stop_answers(hub.state if fresh is not None else None, state):
        if answer.agreement not in fed:
            hub.outlets.send(answer.agreement, answer.id, encode_stopped(answer))
    to_topics = [name for name in state.to_send if name not in fed]
    for name in hub.settings.topology.in_priority(to_topics):
        outgoing = _outgoing(hub, state, name, fresh)
        chunks = [*chunks_of(outgoing, hub.settings, state, name)]
        limit = hub.settings.topology.subscriptions[name].bytes_per_s
        size = sum(int(outgoing.sizes[chunk.rows].sum()) for chunk in chunks) if limit else 0
        hub.throttle.note(name, size, limit, state.agreements[name].sent_ms)
        if outgoing.away.any():
            carried += chunks
            continue
        for number, chunk in enumerate(chunks):
            if number:
                reach(FaultPoint.BETWEEN_CHUNKS)
            hub.outlets.send(name, chunk.header.id, outgoing.value(chunk))
        reach(FaultPoint.BETWEEN_AGREEMENTS)
    exported = packets.headers(hub.ledger.store, hub.settings, state)
    for header in exported:
        marker = packets.marker_of(header, state)
        hub.outlets.send(header.agreement, marker.id, encode_packet_marker(marker))
    undelivered = hub.outlets.flush()
    if fresh is not None and carried:
        fresh.carrier.send(fresh.outgoing, carried)
    if exported:
        reach(FaultPoint.AFTER_MARKERS)
    return undelivered | _write_packets(hub, state, fresh, exported, undelivered)


def _write_packets(
    hub: Hub,
    state: HubState,
    fresh: DecidedBatch | None,
    exported: Sequence[UpdatesHeader],
    undelivered: Collection[str],
) -> frozenset[str]:
    """Write the packets whose notes are delivered; the agreements whose folders refused theirs."""
    refused = set[str]()
    for header in exported:
        name = header.agreement
        if name in undelivered:
            continue
        records = packet_records(hub, state, name, fresh)
        if not hub.outlets.write_packet(header, records):
            refused.add(name)
        hub.ledger.reach(FaultPoint.BETWEEN_PACKETS)
    return frozenset(refused)


def packet_records(
    hub: Hub, state: HubState, name: str, fresh: DecidedBatch | None
) -> Iterator[bytes]:
    """The records of a packet: those that would stand in the updates topic otherwise."""
    yield from packets.stop_records(state, name)
    if name in state.to_send:
        outgoing = _outgoing(hub, state, name, fresh)
        if outgoing.away.any():
            outgoing = logged(hub.ledger.store, hub.settings, state, name)
        for chunk in chunks_of(outgoing, hub.settings, state, name):
            yield outgoing.value(chunk)


def _outgoing(
    hub: Hub, state: HubState, name: str, fresh: DecidedBatch | None
) -> Outgoing | OutgoingWithRanges:
    """The rows of the range that the state names for an agreement, and the ranges of its page."""
    to_send = state.to_send[name]
    is_of_log = to_send.after < hub.state.hub_epoch or to_send.to < state.hub_epoch
    if fresh is None or is_of_log:
        return logged(hub.ledger.store, hub.settings, state, name)
    outgoing = shown(fresh.outgoing, _subscription(hub.settings, state, name))
    if to_send.ranges:
        return OutgoingWithRanges(outgoing, fresh.page_items[name])
    return outgoing


def chunks_of(
    outgoing: Outgoing | OutgoingWithRanges, settings: BatchSettings, state: HubState, name: str
) -> Iterator[Chunk]:
    """The records of the range that the state names for an agreement."""
    agreement = state.agreements[name]
    return publish_stage.chunks(
        outgoing,
        agreement,
        state.to_send[name],
        _subscription(settings, state, name),
        state.generation,
        settings.chunks,
        state.replicas[agreement.consumer].floors,
    )


def logged(store: StateStore, settings: BatchSettings, state: HubState, name: str) -> Outgoing:
    """The changelog rows of the range that the state names for an agreement.

    Only of tables that are configured, for an agent without the table would refuse its rows. First
    they are chosen without the images, for of a long absence most are not sent.
    """
    topology, to_send = settings.topology, state.to_send[name]
    floors = state.replicas[state.agreements[name].consumer].floors
    where = between(to_send.after, to_send.to) & ds.field("table").isin(sorted(topology.tables))
    subscription = _subscription(settings, state, name)
    log = store.read(TableName.CHANGELOG, where, with_filter_columns(PAGE_COLUMNS, subscription))
    chosen = _positions(log)[sent_rows(log, subscription, to_send, floors)]
    rows = store.read(TableName.CHANGELOG, where, keep=lambda part: isin(_positions(part), chosen))
    return shown(Outgoing(rows, topology.defaulted), subscription)


def _subscription(settings: BatchSettings, state: HubState, name: str) -> Subscription:
    """What an agreement is sent, without the tables that are paused."""
    return settings.topology.without(state.paused_tables).subscriptions[name]


def _positions(log: pa.Table | pa.RecordBatch) -> Ints:
    """The position of each row in hub order, as one number."""
    return ints(log["hub_epoch"]) << 32 | ints(log["place"])
