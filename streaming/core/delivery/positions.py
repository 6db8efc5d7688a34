"""Whether the hub believes the position that a consumer claims, and sends from there.

A consumer stores its position with its rows, so it is true. Below what the hub sent it is believed,
with a loss or without. Above what the hub ever committed for this agreement it proves that the
hub's state was restored: a batch is committed before it is published. And where the changelog is
gone, nothing is sent from there; the consumer needs a resync.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from streaming.core.delivery.lack import (
    EpochsPurged,
    SendingRefused,
    epochs_purged,
    lack,
    own_counted,
    refused,
)
from streaming.core.model.ruv import NOTHING_KNOWN, Ruv

NO_GENERATION = 0
"""The generation of a consumer that no hub has ever sent anything."""


class ClaimedPosition(NamedTuple):
    """What a consumer says that it has, in a hello or an applied: `rid` is its own.

    own: its own changes up to this CSN count as covered, as in `own_counted`; None: none do.
    """

    rid: int
    covers: int
    generation: int
    ruv: Ruv
    own: str | None = None


@dataclass(frozen=True, slots=True)
class CommittedHub:
    """What the hub has committed: its generation and RUV, and what of the changelog is gone.

    `largest`: rid -> the largest CSN in any data set; `ruv`, `purge_ruv`: of the agreement's.
    """

    generation: int
    ruv: Ruv
    largest: Mapping[int, str]
    purge_epoch: int = 0
    purge_ruv: Ruv = NOTHING_KNOWN


@dataclass(frozen=True, slots=True)
class BelievedPosition:
    """Sending goes on from here, whatever the hub thought that it had sent."""

    covers: int
    ruv: Ruv


@dataclass(frozen=True, slots=True)
class HubBehind:
    """The consumer has what the hub never sent: the hub's state was restored.

    `claimed` and `known` name what contradicts, in one form.
    """

    claimed: str
    known: str


@dataclass(frozen=True, slots=True)
class OldGeneration:
    """The position is of a generation of the hub that is over, so it counts other hub epochs.

    Neither covers nor RUV tells what its consumer lacks then, which needs a full copy.
    """

    claimed: int
    generation: int


@dataclass(frozen=True, slots=True)
class OtherAgreement:
    """The position came by another agreement, of another hub perhaps: it counts its hub epochs."""

    name: str


PositionGap = OldGeneration | OtherAgreement | EpochsPurged | SendingRefused
"""Why nothing may be sent from a position, because something would be left out."""

PositionDecision = BelievedPosition | HubBehind | PositionGap


def decide(
    claimed: ClaimedPosition, committed: CommittedHub, published: int, in_log: Callable[[str], bool]
) -> PositionDecision:
    """Decide about the position of a hello of this replicageneration.

    published: the largest covers that was ever committed for this agreement to be sent, in any
    session; not the hub's epoch, of which it may have been sent little. in_log: whether the
    changelog has a CSN.
    """
    behind = hub_behind(claimed, committed, published)
    if behind is not None:
        return behind
    gap = _gap(claimed, committed, in_log)
    return BelievedPosition(claimed.covers, claimed.ruv) if gap is None else gap


def hub_behind(
    claimed: ClaimedPosition, committed: CommittedHub, published: int
) -> HubBehind | None:
    """Return what proves that the hub's state was restored; None: nothing does.

    Of an `applied` as of a hello: whichever the hub reads first.
    """
    if claimed.generation > committed.generation:
        return HubBehind(f"generation {claimed.generation}", f"generation {committed.generation}")
    if _is_old(claimed, committed):
        return None
    if claimed.covers > published:
        return HubBehind(f"hub epoch {claimed.covers}", f"hub epoch {published}")
    for rid, csn in sorted(claimed.ruv.max_csns().items()):
        if rid != claimed.rid and csn > committed.largest.get(rid, csn):
            return HubBehind(f"CSN {csn}", f"CSN {committed.largest[rid]}")
    return None


def _gap(
    claimed: ClaimedPosition, committed: CommittedHub, in_log: Callable[[str], bool]
) -> PositionGap | None:
    if _is_old(claimed, committed):
        return OldGeneration(claimed.generation, committed.generation)
    purged = epochs_purged(claimed.covers, committed.purge_epoch)
    if purged is not None:
        return purged
    has = own_counted(claimed.ruv, claimed.rid, claimed.own)
    return refused(lack(committed.ruv, has), committed.purge_ruv, in_log)


def _is_old(claimed: ClaimedPosition, committed: CommittedHub) -> bool:
    return NO_GENERATION != claimed.generation < committed.generation
