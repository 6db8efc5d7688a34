"""Compare the hub's state behind a batch, as it is recorded and as replay gives it."""

from collections.abc import Iterator
from dataclasses import fields, replace

from streaming.core.model.ruv import Ruv
from streaming.core.replay.compare import Difference, RecordedPart
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.hub_state import HubState
from streaming.core.state.replica_state import ReplicaState


def different_states(recorded: HubState, replayed: HubState) -> Iterator[Difference]:
    """Yield every field in which two states differ; open transactions are in `pending`."""
    yield from _fact("hub", "hub epoch", recorded.hub_epoch, replayed.hub_epoch)
    for dataset in {**recorded.ruvs, **replayed.ruvs}:
        mine, theirs = recorded.ruvs.get(dataset), replayed.ruvs.get(dataset)
        yield from _fact("hub", f"RUV of {dataset}", _plain(mine), _plain(theirs))
    for rid in {**recorded.replicas, **replayed.replicas}:
        one, other = recorded.replicas.get(rid), replayed.replicas.get(rid)
        yield from _fields(f"replica {rid}", one, other)
    for name in {**recorded.agreements, **replayed.agreements}:
        agreement, their = recorded.agreements.get(name), replayed.agreements.get(name)
        yield from _fields(f"agreement {name}", _known(agreement), _known(their))
    yield from _fact("hub", "leaving", recorded.leaving, replayed.leaving)
    yield from _fact("hub", "left epoch", recorded.left_epoch, replayed.left_epoch)
    epochs = recorded.tombstone_epoch, replayed.tombstone_epoch
    yield from _fact("hub", "tombstone epoch", *epochs)
    yield from _fact("hub", "ranges", recorded.ranges, replayed.ranges)
    yield from _fact("hub", "truncates", recorded.truncations, replayed.truncations)


def _known(agreement: AgreementState | None) -> AgreementState | None:
    """The agreement without what the record does not tell exactly.

    The session that a stopped consumer is answered: records that were only looked at tell of it,
    and no table has those. How far the pages of a resync are: they are taken as they were sent.
    Since when it waits for its consumer: not while the topic held more than the batch read.
    """
    if agreement is None:
        return None
    resync = agreement.resync
    if resync is not None:
        resync = replace(resync, accounting=None, unacked=())
    session = None if agreement.is_stopped else agreement.session
    return replace(agreement, session=session, resync=resync, behind_ms=0)


def _fields(
    what: str,
    one: ReplicaState | AgreementState | None,
    other: ReplicaState | AgreementState | None,
) -> Iterator[Difference]:
    if one == other:
        return
    if one is None or other is None:
        yield from _fact(what, "there", one is not None, other is not None)
        return
    for field in fields(one):
        mine, theirs = _plain(getattr(one, field.name)), _plain(getattr(other, field.name))
        yield from _fact(what, field.name, mine, theirs)


def _fact(what: str, fact: str, recorded: object, replayed: object) -> Iterator[Difference]:
    if recorded != replayed:
        yield Difference(RecordedPart.STATE, what, None, None, fact, recorded, replayed)


def _plain(value: object) -> object:
    """Return a RUV as its text: what it knows nothing of may be in it or not."""
    return "\n".join(value.text()) if isinstance(value, Ruv) else value
