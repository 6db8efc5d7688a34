"""Who holds the purge of a hub, and since when, for people."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from checkpoints.times import ms_of, time_of
from streaming.config.config import Config
from streaming.core.retention.holder import (
    KEPT_KEYS_MAX,
    HolderKind,
    PurgeHolder,
    agreements_need,
    holder_of,
    quarantine_needs,
)
from streaming.core.state.hub_state import HubState
from streaming.core.text.wording import as_duration
from streaming.facts.status.recorded import RecordedFacts


@dataclass(frozen=True, slots=True)
class PurgeHold:
    """Who holds the purge: what is behind `hub_epoch` stays.

    `since`: when the first of that was committed, or was first needed; None: that is not known.
    `text`: the same as a sentence.
    """

    by: HolderKind
    name: str
    hub_epoch: int
    since: datetime | None
    age_s: float | None
    text: str


def purge_hold(
    config: Config, state: HubState, recorded: RecordedFacts, now_s: float
) -> PurgeHold | None:
    """Who holds the purge; None: nobody does, what is there is too new."""
    retention, now_ms, leases = config.retention, round(now_s * 1_000), recorded.leases
    needs = [
        *agreements_need(state, now_ms, retention.max_away_ms, recorded.epochs.committed_ms),
        *_transactions_need(recorded),
        *(PurgeHolder(HolderKind.PIN, o.name, o.hub_epoch, o.at_ms) for o in recorded.pins),
        *(PurgeHolder(HolderKind.LEASE, o.command, state.purge_epoch, o.since_ms) for o in leases),
        *quarantine_needs(recorded.kept_keys, state),
    ]
    old_before_ms = now_ms - retention.keep_ms(config.hub.replay_window_h)
    found = holder_of(needs, state, old_before_ms)
    if found is None:
        return None
    since = None if found.since_ms is None else time_of(found.since_ms)
    age_s = None if since is None else max(0.0, round(now_s - since.timestamp(), 3))
    text = _text(found, age_s)
    return PurgeHold(found.kind, found.name, found.hub_epoch, since, age_s, text)


def _transactions_need(recorded: RecordedFacts) -> Iterator[PurgeHolder]:
    for one in recorded.opened.values():
        if one.mre is not None:
            since_ms = None if one.oldest is None else ms_of(one.oldest)
            name = one.transaction or ""
            yield PurgeHolder(HolderKind.TRANSACTION, name, one.mre, since_ms)


def _text(found: PurgeHolder, age_s: float | None) -> str:
    if found.kind is HolderKind.QUARANTINE:
        return (
            f"held by records in quarantine that name more than {KEPT_KEYS_MAX:,} rows: release or"
            " drop some"
        )
    long = "" if age_s is None else f" for {as_duration(age_s)}"
    return f"held by {_named(found)}{long}: {_why(found)}"


def _named(found: PurgeHolder) -> str:
    kind = found.kind
    if kind is HolderKind.LEASE:
        return f"a running `slackwater {found.name}`"
    if kind is HolderKind.TRANSACTION or kind is HolderKind.PIN:
        return f"{kind} {found.name}"
    return f"agreement {found.name}"


def _why(found: PurgeHolder) -> str:
    behind = f"hub epochs above {found.hub_epoch}"
    match found.kind:
        case HolderKind.AGREEMENT:
            return f"its consumer has not acknowledged {behind}"
        case HolderKind.AWAY:
            return f"its consumer is away and lacks {behind}"
        case HolderKind.RESYNC:
            return f"it is in a resync, behind which {behind} are sent"
        case HolderKind.DELAYED:
            return f"it is to send {behind} later"
        case HolderKind.TRANSACTION:
            return f"it is open and was written upon hub epoch {found.hub_epoch}"
        case HolderKind.PIN:
            return f"it keeps hub epoch {found.hub_epoch}"
        case HolderKind.LEASE:
            return "nothing that it may read is purged before it ends"
        case HolderKind.QUARANTINE:
            return ""
        case _:
            assert_never(found.kind)
