"""What a replica has seen by another hub: it vouches for the row that its change meets.

Hub epochs are a hub's own numbers, so the `covers` of an agreement of another hub is no MRE here.
The RUV beside it is: a CSN names the same change at every hub (docs/protocol.md, Two hubs).
"""

from collections.abc import Sequence

from streaming.core.conflict.judge import floor_epoch
from streaming.core.model.function import ConflictFunction
from streaming.core.model.row import Arrived, Floor, RowState, blocking_epoch
from streaming.core.state.reflection import Session, judging


def as_seen_elsewhere(
    arrived: Arrived,
    row: RowState,
    function: ConflictFunction,
    floors: Sequence[Floor],
    sessions: tuple[Session, ...],
) -> Arrived:
    """Return the change with an MRE that holds the row as it stands, if its replica had that.

    It had if the RUV that it had applied of the other hub covers the row's CSN. And if something
    of its own was not taken here, the other hub's answer to that must have come: until then it may
    build on it. `floors`, `sessions`: of its replica. From its first hello to this hub on it is
    sent rows, which may be on their way: a row that was written since is none that the other hub's
    RUV vouches for.
    """
    change = arrived.change
    session = judging(sessions, change.epoch)
    ruv = session.seen_elsewhere(change.epoch) if session else None
    has_seen = ruv is not None and (ruv.covers(row.csn) if row.csn else not row.hub_epoch)
    if session is None or ruv is None or not has_seen:
        return arrived
    later = sessions[sessions.index(session) + 1 :]
    hellos_here = (one.hub_epoch for one in later if not one.is_elsewhere)
    blocked = max(blocking_epoch(arrived, row), floor_epoch(arrived, _of_losses(floors)))
    answered = session.answered_elsewhere(ruv.max_of(change.rid) or "")
    if blocked > answered or row.hub_epoch > next(hellos_here, row.hub_epoch):
        return arrived
    mre = max(arrived.mre, function.stored(row.hub_epoch), floor_epoch(arrived, floors), blocked)
    return arrived._replace(mre=mre, mre_same=max(arrived.mre_same, mre))


def _of_losses(floors: Sequence[Floor]) -> list[Floor]:
    """The floors of replicas that lost changes of their own; the RUV tells of those of others."""
    return [one for one in floors if one.after < one.upto]
