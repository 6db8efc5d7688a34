"""Who holds the purge where it is: of all who need something old, the one who needs the oldest."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from streaming.core.retention.hold import holds_purge, needed_after
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.hub_state import HubState

KEPT_KEYS_MAX = 1_000
"""The history of rows that records in quarantine name stays; so many keys fit into a condition."""


class HolderKind(StrEnum):
    """Why something is still needed."""

    AGREEMENT = "agreement"
    """its consumer has not acknowledged it"""
    AWAY = "away"
    """its consumer is not heard of, though not for `retention.max_away_h` yet"""
    RESYNC = "resync"
    """its consumer goes on from there once its resync is done"""
    DELAYED = "delayed"
    """it is not to be sent yet: by a delay, the hours, the bytes a second, or a pause"""
    TRANSACTION = "transaction"
    """a change that is not judged was written upon it"""
    PIN = "pin"
    """an operator wants to read it"""
    LEASE = "lease"
    """a command reads the state, as a backup does: nothing is purged until it is done"""
    QUARANTINE = "quarantine"
    """records that are kept name too many rows, whose history stays"""


@dataclass(frozen=True, slots=True)
class PurgeHolder:
    """Somebody who needs what is behind a hub epoch, by name.

    `since_ms`: when the first of it was committed, by the hub's clock, or was first needed; None:
    that is not known.
    """

    kind: HolderKind
    name: str
    hub_epoch: int
    since_ms: int | None


def holder_of(
    needs: Iterable[PurgeHolder], state: HubState, old_before_ms: int
) -> PurgeHolder | None:
    """Who holds the purge; None: nobody, it waits for the history to become old.

    `old_before_ms`: what was committed up to then may be purged by its age. Who needs only what is
    newer, or only what is purged or not there yet, holds nothing.
    """
    holding = (
        one
        for one in needs
        if one.kind in _OF_EVERYTHING
        or (one.hub_epoch < state.hub_epoch and (one.since_ms or 0) <= old_before_ms)
    )
    return min(holding, key=_order, default=None)


_OF_EVERYTHING = (HolderKind.QUARANTINE, HolderKind.LEASE)
"""Nothing at all is purged over them."""


def _order(one: PurgeHolder) -> tuple[int, int, int]:
    """Those of everything, then who needs the oldest."""
    first = (*_OF_EVERYTHING, one.kind).index(one.kind)
    return first, one.hub_epoch, one.since_ms or 0


def agreements_need(
    state: HubState, clock_ms: int, max_away_ms: int, committed_ms: Callable[[int], int | None]
) -> Iterator[PurgeHolder]:
    """What each agreement needs; `committed_ms`: when the first hub epoch behind one was."""
    for one in state.agreements.values():
        if holds_purge(one, state.away_since, clock_ms, max_away_ms):
            after = needed_after(one)
            yield PurgeHolder(_kind_of(one, state), one.name, after, committed_ms(after))


def _kind_of(agreement: AgreementState, state: HubState) -> HolderKind:
    if agreement.resync is not None:
        return HolderKind.RESYNC
    if agreement.name in state.away_since:
        return HolderKind.AWAY
    if agreement.name in state.held_back:
        return HolderKind.DELAYED
    return HolderKind.AGREEMENT


def quarantine_needs(keys: int, state: HubState) -> Iterator[PurgeHolder]:
    """What records in quarantine need that name so many keys."""
    if keys > KEPT_KEYS_MAX:
        yield PurgeHolder(HolderKind.QUARANTINE, "", state.purge_epoch, None)
