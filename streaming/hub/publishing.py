"""Publishing: each agreement is sent the hub epochs that the committed state names."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pyarrow.dataset as ds

from checkpoints import lookup
from checkpoints.commit import BatchOutcome
from checkpoints.epochs import Plan
from checkpoints.faults import FaultPoint
from checkpoints.tables import TableName
from connectors.wire import encode_stopped
from streaming.carriers.carrier import Carrier
from streaming.core.conflict.window import WindowRow
from streaming.core.delivery.sending import stop_answers
from streaming.core.model.errors import PublishError
from streaming.core.model.row import RowState
from streaming.core.model.ruv import NOTHING_KNOWN, Ruv
from streaming.core.model.state import HubState, SendRange
from streaming.hub.hub import Hub
from streaming.stages import publish as publish_stage
from streaming.stages.publish import Chunk, Outgoing


@dataclass(frozen=True, slots=True)
class DecidedBatch(BatchOutcome):
    """What a batch came to, with what the driver keeps of it until it is published.

    `outgoing`: its changelog rows in hub order. `rows`: what the window takes over.
    `contended`: the rows that core judged, as it left them. `plan`: by which it was decided.
    """

    carrier: Carrier
    outgoing: Outgoing
    rows: Mapping[str, WindowRow]
    contended: Collection[RowState]
    plan: Plan


def publish(hub: Hub, state: HubState, fresh: DecidedBatch | None = None) -> None:
    """Publish the batch; all of it again if an updates topic was deleted meanwhile."""
    while True:
        try:
            _publish(hub, state, fresh)
        except PublishError:
            if not hub.outlets.renew():
                raise
        else:
            return


def _publish(hub: Hub, state: HubState, fresh: DecidedBatch | None) -> None:
    """Send to each agreement the range that the state names, or why it was stopped.

    Sent again it has the same ids.

    `fresh`: the decision of the state's own batch, when it is in memory.
    """
    reach, carried = hub.ledger.reach, list[Chunk]()
    for answer in stop_answers(hub.state if fresh is not None else None, state):
        hub.outlets.send(answer.agreement, answer.id, encode_stopped(answer))
    for name, to_send in state.to_send.items():
        agreement = state.agreements[name]
        dataset = hub.settings.topology.dataset_at(agreement.consumer)
        outgoing, ruvs = _range(hub, state, to_send, dataset, fresh)
        tables = hub.settings.topology.subscriptions[name].tables
        chunks = publish_stage.chunks(
            outgoing,
            agreement,
            to_send,
            tables,
            ruvs,
            state.generation,
            hub.settings.chunks,
            state.replicas[agreement.consumer].floors,
        )
        if outgoing.away.any():
            carried += chunks
            continue
        for number, chunk in enumerate(chunks):
            if number:
                reach(FaultPoint.BETWEEN_CHUNKS)
            hub.outlets.send(name, chunk.header.id, outgoing.value(chunk))
        reach(FaultPoint.BETWEEN_AGREEMENTS)
    hub.outlets.flush()
    if fresh is not None and carried:
        fresh.carrier.send(fresh.outgoing, carried)


def _range(
    hub: Hub, state: HubState, to_send: SendRange, dataset: str, fresh: DecidedBatch | None
) -> tuple[Outgoing, dict[int, Ruv]]:
    """The changelog of these hub epochs, and the RUV of the data set after each of them."""
    after, to = to_send.after, to_send.to
    now = {state.hub_epoch: state.ruv_of(dataset)}
    if fresh is not None and after >= hub.state.hub_epoch:
        return fresh.outgoing, now
    store = hub.ledger.store
    where = (ds.field("hub_epoch") > after) & (ds.field("hub_epoch") <= to)
    rows = store.read(TableName.CHANGELOG, where & _is_configured(hub))
    marks = lookup.marks(store, after, to)
    ruvs = {mark.hub_epoch: mark.ruvs.get(dataset, NOTHING_KNOWN) for mark in marks}
    return Outgoing(publish_stage.readable(rows)), {**ruvs, **now}


def _is_configured(hub: Hub) -> ds.Expression:
    """Of a table that is configured: an agent without the table would refuse its rows."""
    return ds.field("table").isin(sorted(hub.settings.topology.tables))
