"""Publishing: each agreement is sent the hub epochs that the committed state names."""

from collections.abc import Collection, Iterator, Mapping
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
from connectors.wire import encode_stopped
from streaming.carriers.carrier import Carrier
from streaming.core.batch.sending import stop_answers
from streaming.core.model.errors import PublishError
from streaming.core.model.row import RowState
from streaming.core.state.hub_state import HubState
from streaming.hub.batch.hub import Hub
from streaming.hub.batch.settings import BatchSettings
from streaming.stages import publish as publish_stage
from streaming.stages.checked import Ints, ints
from streaming.stages.publish import Chunk, Outgoing, OutgoingWithRanges
from streaming.stages.recipients import PAGE_COLUMNS, sent_rows


@dataclass(frozen=True, slots=True)
class DecidedBatch(BatchOutcome):
    """What a batch came to, with what the driver keeps of it until it is published.

    `outgoing`: its changelog rows in hub order. `rows`: what the window takes over.
    `contended`: the rows that core judged, as it left them. `plan`: by which it was decided.
    `page_items`: agreement -> the items of the ranges that it is sent.
    """

    carrier: Carrier
    outgoing: Outgoing
    rows: Mapping[str, RowState]
    contended: Collection[RowState]
    plan: Plan
    page_items: Mapping[str, pa.Array]


def publish(hub: Hub, state: HubState, fresh: DecidedBatch | None = None) -> None:
    """Publish the batch; all of it again if an updates topic was deleted meanwhile.

    A topic that refuses what it is sent ends nothing: its consumer is away from the next batch on.
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

    Returns the agreements whose topics refused it. Sent again it has the same ids.

    `fresh`: the decision of the state's own batch, when it is in memory.
    """
    reach, carried = hub.ledger.reach, list[Chunk]()
    for answer in stop_answers(hub.state if fresh is not None else None, state):
        hub.outlets.send(answer.agreement, answer.id, encode_stopped(answer))
    for name, to_send in state.to_send.items():
        outgoing: Outgoing | OutgoingWithRanges
        if fresh is not None and to_send.after >= hub.state.hub_epoch:
            outgoing = fresh.outgoing
            if to_send.ranges:
                outgoing = OutgoingWithRanges(outgoing, fresh.page_items[name])
        else:
            outgoing = logged(hub.ledger.store, hub.settings, state, name)
        chunks = chunks_of(outgoing, hub.settings, state, name)
        if outgoing.away.any():
            carried += chunks
            continue
        for number, chunk in enumerate(chunks):
            if number:
                reach(FaultPoint.BETWEEN_CHUNKS)
            hub.outlets.send(name, chunk.header.id, outgoing.value(chunk))
        reach(FaultPoint.BETWEEN_AGREEMENTS)
    undelivered = hub.outlets.flush()
    if fresh is not None and carried:
        fresh.carrier.send(fresh.outgoing, carried)
    return undelivered


def chunks_of(
    outgoing: Outgoing | OutgoingWithRanges, settings: BatchSettings, state: HubState, name: str
) -> Iterator[Chunk]:
    """The records of the range that the state names for an agreement."""
    agreement = state.agreements[name]
    return publish_stage.chunks(
        outgoing,
        agreement,
        state.to_send[name],
        settings.topology.subscriptions[name],
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
    log = store.read(TableName.CHANGELOG, where, PAGE_COLUMNS)
    chosen = _positions(log)[sent_rows(log, topology.subscriptions[name], to_send, floors)]
    rows = store.read(TableName.CHANGELOG, where, keep=lambda part: isin(_positions(part), chosen))
    return Outgoing(rows)


def _positions(log: pa.Table | pa.RecordBatch) -> Ints:
    """The position of each row in hub order, as one number."""
    return ints(log["hub_epoch"]) << 32 | ints(log["place"])
