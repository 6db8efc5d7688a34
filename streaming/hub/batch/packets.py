"""The packets that a batch exports: what their headers say, and the note in the updates topic."""

from collections.abc import Collection, Iterator, Mapping

from checkpoints.reading.numbers import numbers_at
from checkpoints.store import StateStore
from checkpoints.tables import TableName
from connectors.packets.header import Got, UpdatesHeader
from connectors.wire import encode_stopped
from streaming.core.batch.sending import stop_answers
from streaming.core.matrix.packets import PacketFeed
from streaming.core.matrix.rows import Row
from streaming.core.records.record import PacketMarker
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.hub_state import HubState
from streaming.core.state.replica_state import ReplicaState
from streaming.hub.batch.settings import BatchSettings


def headers(store: StateStore, settings: BatchSettings, state: HubState) -> list[UpdatesHeader]:
    """The headers of the packets that the state's own batch exports; made again they are equal."""
    exported = [(state.agreements[name], *_span(state, name)) for name in state.exported]
    rows = {state.hub_epoch: state.numbers}
    earlier = {hub_epoch for _, *span in exported for hub_epoch in span} - rows.keys()
    if earlier:
        epochs = store.refreshed(TableName.EPOCHS)
        rows |= {one: numbers_at(epochs, one).numbers for one in earlier}
    return [
        _header(settings, state, agreement, rows[before], rows[after])
        for agreement, before, after in exported
    ]


def marker_of(header: UpdatesHeader, state: HubState) -> PacketMarker:
    """The note of a packet: by it a hub whose state was put back sees that it was exported."""
    return PacketMarker(
        header.agreement,
        header.generation,
        header.session,
        header.number,
        state.agreements[header.agreement].sent_epoch,
        header.row_before,
        header.row_after,
    )


def stop_records(state: HubState, name: str) -> Iterator[bytes]:
    """What the packet of an agreement says of why its consumer is stopped, if it is."""
    for answer in stop_answers(None, state):
        if answer.agreement == name:
            yield encode_stopped(answer)


def fed_by_packets(state: HubState) -> Collection[str]:
    """The agreements to which nothing is sent by their topics."""
    return {name for name, one in state.agreements.items() if one.feed is not None}


def _span(state: HubState, name: str) -> tuple[int, int]:
    """Up to which hub epoch the consumer is taken to have everything, before the packet and by it.

    In a resync that stays until the last page.
    """
    agreement, sent = state.agreements[name], state.to_send.get(name)
    after = agreement.estimated
    return (sent.prev, after) if sent is not None and sent.to == after else (after, after)


def _header(
    settings: BatchSettings, state: HubState, agreement: AgreementState, before: Row, after: Row
) -> UpdatesHeader:
    replica, sent = state.replicas[agreement.consumer], state.to_send.get(agreement.name)
    feed = agreement.feed or PacketFeed()
    own = {replica.rid: state.numbers.get(replica.rid, 0)}
    return UpdatesHeader(
        state.replicageneration,
        settings.hub_rid,
        agreement.name,
        replica.rid,
        state.generation,
        agreement.session,
        feed.number,
        _named(settings.names, {**before, **own}),
        _named(settings.names, {**after, **own}),
        sent.prev if sent else None,
        sent.to if sent else None,
        _got(feed, replica),
    )


def _named(names: Mapping[int, str], row: Row) -> dict[str, int]:
    return {names.get(rid, f"rid {rid}"): number for rid, number in row.items() if number}


def _got(feed: PacketFeed, replica: ReplicaState) -> Got | None:
    """What the hub has of the replica's own records, and what they say that it had reached."""
    if feed.got is None:
        return None
    opno = max((replica.opno, *replica.opno_above))
    return Got(feed.got.outbox, feed.got.place, feed.csn, opno, replica.epoch)
