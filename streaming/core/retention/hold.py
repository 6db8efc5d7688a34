"""Up to which hub epoch nothing of the changelog is needed any more: who holds the purge."""

from collections.abc import Collection, Mapping

from streaming.core.model.statuses import AgreementStatus
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.hub_state import HubState

_HEARD = (AgreementStatus.CATCHING_UP, AgreementStatus.IN_SYNC, AgreementStatus.RESYNC)
"""Whoever acknowledges nothing in these statuses counts as away soon."""


def purge_limit(state: HubState, clock_ms: int, max_away_ms: int) -> int:
    """The hub epoch up to which nobody needs anything of the changelog to go on.

    Consumers need what they have not acknowledged, and a change that is open or waits, what it was
    written upon.
    """
    consumers = (
        needed_after(one)
        for one in state.agreements.values()
        if holds_purge(one, state.away_since, clock_ms, max_away_ms)
    )
    changes = (one.mre for one in state.open.changes.values())
    return min([*consumers, *changes], default=state.hub_epoch)


def tombstone_limit(state: HubState, clock_ms: int, max_away_ms: int) -> int:
    """The hub epoch up to which everybody who may still write has seen the deletes.

    But for those that get a full copy anyway. A replica that is sent nothing has seen none; what
    one that another hub serves has seen, only the CSN of a delete tells.
    """
    holding = {
        one.consumer
        for one in state.agreements.values()
        if holds_purge(one, state.away_since, clock_ms, max_away_ms)
    }
    copied = {one.consumer for one in state.agreements.values()} - holding
    return _reflected(state, copied)


def reflected_by_all(state: HubState) -> int:
    """The hub epoch up to which every replica that has ever written here has everything."""
    return _reflected(state, ())


def _reflected(state: HubState, without: Collection[int]) -> int:
    """The smallest MRE of what may still come, but of these replicas."""
    replicas = [
        0 if one.is_elsewhere else one.mre
        for rid, one in state.replicas.items()
        if one.sessions and not one.is_stopped and rid not in without
    ]
    return min([*replicas, *(one.mre for one in state.open.changes.values())], default=0)


def holds_purge(
    agreement: AgreementState, away_since: Mapping[str, int], clock_ms: int, max_away_ms: int
) -> bool:
    """Return whether the purge leaves what a consumer lacks.

    Not that of one that gets a full copy anyway: because it is away for too long, was never heard,
    or is to come back from another hub. One that is fed by packets holds from its configuration on:
    its first packet may be days old when it arrives.
    """
    if agreement.is_retired or agreement.is_elsewhere:
        return False
    if agreement.is_full and agreement.resync is None:
        return False
    if agreement.session is None and agreement.feed is None:
        return False
    since_ms = away_since.get(agreement.name)
    return since_ms is None or clock_ms - since_ms < max_away_ms


def hold_left_ms(state: HubState, name: str, clock_ms: int, max_away_ms: int) -> int | None:
    """In how long a consumer that is away loses its hold; 0: it has none; None: it is heard."""
    since_ms = state.away_since.get(name)
    if since_ms is None:
        return None
    is_held = holds_purge(state.agreements[name], state.away_since, clock_ms, max_away_ms)
    return since_ms + max_away_ms - clock_ms if is_held else 0


def needed_after(agreement: AgreementState) -> int:
    """The hub epoch behind which a consumer may still be sent something of the changelog."""
    held = agreement.resync.held.covers if agreement.resync else agreement.acked_covers
    scanned = agreement.scanned if agreement.is_sent_to else agreement.acked_covers
    return min(agreement.acked_covers, held, scanned)


def away_since(
    before: HubState, agreements: Mapping[str, AgreementState], clock_ms: int
) -> dict[str, int]:
    """Agreement -> since when its consumer is not heard of, by the hub's clock, after a batch.

    Absent are those that are heard. A record of one that is away begins its time anew: only a
    packet, or a consumer that is stopped, says something and is not sent to.
    """
    return {
        name: before.away_since.get(name, clock_ms)
        if _is_as_before(before.agreements.get(name), one)
        else clock_ms
        for name, one in agreements.items()
        if not (_is_heard(one) or one.is_retired or one.is_elsewhere)
    }


def _is_heard(agreement: AgreementState) -> bool:
    return agreement.feed is None and agreement.status in _HEARD


def _is_as_before(before: AgreementState | None, agreement: AgreementState) -> bool:
    """Return whether nothing was heard of its consumer in this batch."""
    if before is None:
        return False
    was = before.session, before.acked_covers, before.acked_ms
    return was == (agreement.session, agreement.acked_covers, agreement.acked_ms)
