"""The records that a batch took, from what it left behind: nothing else of it is needed.

A hub that keeps what this reads can judge any batch again without Kafka. What a batch only looked
at, behind the stop of a replica, is no part of it: a later batch takes it, or nobody does.
"""

from collections.abc import Iterator, Mapping

from streaming.core.conflict.judge import Judged
from streaming.core.model.row import Arrived
from streaming.core.records.record import ReceivedRecord
from streaming.core.state.hub_state import HubState
from tests.reference.batch import BatchDecision

Place = tuple[int, int]
"""(rid, offset) of a record."""


def records_of(
    decision: BatchDecision, before: HubState, originals: Mapping[Place, ReceivedRecord]
) -> list[ReceivedRecord]:
    """Return the records of a batch, those of each topic in its order.

    `before`: the state before it. `originals`: the records that went to quarantine, by their bytes.
    """
    known = {(c.change.csn, c.change.rid, c.offset) for c in before.open.changes.values()}
    changes = [
        one
        for one in _changes(decision)
        if one.change.rid in before.replicas
        and (one.change.csn, one.change.rid, one.offset) not in known
    ]
    found = {(one.change.rid, one.offset): _as_received(one) for one in changes}
    waited = {(rid, offset) for _, rid, offset in known}
    for kept in decision.intake.quarantined:
        place = kept.rid, kept.offset
        if place in originals and place not in waited:
            found.setdefault(place, originals[place])
    for received, _ in decision.intake.events:
        found.setdefault((received.rid, received.offset), received)
    return [found[place] for place in sorted(found)]


def _changes(decision: BatchDecision) -> Iterator[Arrived]:
    """The changes that the batch judged, left open or ended, wherever they came from."""
    yield from (entry.arrived for entry in decision.entries if isinstance(entry, Judged))
    yield from decision.state.open.changes.values()
    yield from (one for _, _, changes in decision.intake.ended for one in changes)


def _as_received(one: Arrived) -> ReceivedRecord:
    change = one.change
    where = change.rid, one.offset, one.time_ms, one.session
    return ReceivedRecord(*where, change, content=one.content)
