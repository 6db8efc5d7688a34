"""What an agreement is sent by packets: by each export everything since the one before.

Nothing goes out batch by batch. A packet holds the range of hub epochs that a consumer which is
catching up is sent as one batch, or a page of a resync; what one packet does not hold follows in
the next batch with the next one.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from streaming.core.batch.sending import SendingView, SendPlan, catch_up, sent_live
from streaming.core.intake.intake import Intake
from streaming.core.matrix.packets import PacketFeed, Place
from streaming.core.model.ruv import NOTHING_KNOWN
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.replica_state import ReplicaState
from streaming.core.state.topology import Subscription
from streaming.core.tracking.ranges import KeyRange


def lacks(agreement: AgreementState, hub_epoch: int) -> bool:
    """Return whether something may be sent that was not: rows, or that there are none."""
    if not agreement.is_sent_to:
        return False
    is_told = agreement.is_held(hub_epoch) or agreement.sent_covers >= hub_epoch
    return agreement.scanned < hub_epoch or not is_told


class PacketSending(NamedTuple):
    """How an agreement is sent packets; `every_ms`: of its subscription.

    `place`: of the replica's records, see `PacketFeed`.
    """

    feed: PacketFeed
    every_ms: int
    place: Place | None

    def wants_export(self, agreement: AgreementState, hub_epoch: int, clock_ms: int) -> bool:
        """Return whether a batch at this hub epoch exports a packet, whatever else it does."""
        is_lacking = lacks(agreement, hub_epoch)
        return self.feed.wants_packet(clock_ms, self.every_ms, self.place, lacks=is_lacking)


def packets_of(
    agreement: AgreementState,
    subscription: Subscription | None,
    replicas: Mapping[int, ReplicaState],
    places: Mapping[str, Place],
) -> PacketSending | None:
    """How an agreement is sent packets; None: it is not.

    A replica that is stopped is not told of a place: what it wrote is not read.
    """
    every_ms = subscription.packet_every_ms if subscription else None
    if agreement.feed is None or every_ms is None or agreement.is_retired:
        return None
    place = None if replicas[agreement.consumer].is_stopped else places.get(agreement.name)
    return PacketSending(agreement.feed, every_ms, place)


def plan_export(
    agreement: AgreementState,
    packets: PacketSending,
    view: SendingView,
    dataset: str,
    *,
    batch: int,
    page_items: int,
    csn: str,
    has_items: bool,
    has_page: bool,
    is_news: bool,
    ranges: tuple[KeyRange, ...] = (),
) -> SendPlan:
    """The agreement after batch `batch`, and the range that its packet holds, if it exports one.

    `csn`: of the replica's records, see `PacketFeed`.
    has_items: the batch's own hub epoch holds something for the consumer; has_page: a page of its
    resync. `is_news`: the consumer is told at once why it is stopped. `ranges`: those of the page.
    """
    wanted = packets.wants_export(agreement, view.hub_epoch, view.clock_ms)
    if not (wanted or has_page or is_news):
        return SendPlan(agreement)
    planned = _range(agreement, view, dataset, page_items, ranges, has_items=has_items or has_page)
    after = planned.agreement
    resync = after.resync
    is_open = after.is_sent_to and (
        lacks(after, view.hub_epoch) or (resync is not None and not resync.last_page)
    )
    exported = packets.feed.exported(batch, view.clock_ms, packets.place, csn, is_open=is_open)
    return planned._replace(agreement=replace(after, feed=exported))


def _range(
    agreement: AgreementState,
    view: SendingView,
    dataset: str,
    page_items: int,
    ranges: tuple[KeyRange, ...],
    *,
    has_items: bool,
) -> SendPlan:
    if not lacks(agreement, view.hub_epoch):
        return SendPlan(agreement)
    if agreement.scanned < view.previous:
        return catch_up(agreement, view, dataset, page_items)
    if agreement.is_held(view.hub_epoch) and not has_items:
        return SendPlan(replace(agreement, scanned=view.hub_epoch))
    return sent_live(agreement, view.ruvs.get(dataset, NOTHING_KNOWN), view, ranges)


def largest_csn(intake: Intake, rid: int) -> str:
    """The largest CSN of a replica in what the hub has read of it; empty: there is none."""
    on_disk = intake.open.on_disk.get(rid, "")
    return max(intake.believed.of(rid), intake.open.lists.largest_of(rid), on_disk)
