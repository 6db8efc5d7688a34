"""Publishing: each agreement is sent the hub epochs that the committed state names."""

from collections.abc import Collection, Mapping, Sequence
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
from streaming.core.model.row import Floor, RowState
from streaming.core.state.agreement_state import SendRange
from streaming.core.state.hub_state import HubState
from streaming.core.state.topology import Subscription
from streaming.hub.batch.hub import Hub
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
        agreement = state.agreements[name]
        subscription = hub.settings.topology.subscriptions[name]
        floors = state.replicas[agreement.consumer].floors
        outgoing: Outgoing | OutgoingWithRanges
        if fresh is not None and to_send.after >= hub.state.hub_epoch:
            outgoing = fresh.outgoing
            if to_send.ranges:
                outgoing = OutgoingWithRanges(outgoing, fresh.page_items[name])
        else:
            store, configured = hub.ledger.store, hub.settings.topology.tables
            outgoing = logged(store, configured, to_send, subscription, floors)
        chunks = publish_stage.chunks(
            outgoing,
            agreement,
            to_send,
            subscription,
            state.generation,
            hub.settings.chunks,
            floors,
        )
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


def logged(
    store: StateStore,
    configured: Collection[str],
    to_send: SendRange,
    subscription: Subscription,
    floors: Sequence[Floor],
) -> Outgoing:
    """The changelog rows that a range sends to a consumer, of tables that are configured.

    An agent without the table would refuse its rows. First they are chosen without the images, for
    of a long absence most are not sent.
    """
    where = between(to_send.after, to_send.to) & ds.field("table").isin(sorted(configured))
    log = store.read(TableName.CHANGELOG, where, PAGE_COLUMNS)
    chosen = _positions(log)[sent_rows(log, subscription, to_send, floors)]
    rows = store.read(TableName.CHANGELOG, where, keep=lambda part: isin(_positions(part), chosen))
    return Outgoing(rows)


def _positions(log: pa.Table | pa.RecordBatch) -> Ints:
    """The position of each row in hub order, as one number."""
    return ints(log["hub_epoch"]) << 32 | ints(log["place"])
