"""Which packets of a replica are taken into its topic: each place once, in order, from one outbox.

A place is the ordinal of a record in what a replica has published. The hub's importer is the only
one who writes that topic, so what it holds is what was taken.
"""

from collections.abc import Callable, Collection
from typing import NamedTuple

from streaming.core.matrix.packets import Place


class BroughtRecords(NamedTuple):
    """The records of a packet: those at the places base + 1 to `end` of an outbox.

    `hash_at(place)`: the digest of the record at one of these places, or at `base`; None at 0.
    `session`: of the first record, if that is a hello; otherwise None.
    """

    outbox: str
    base: int
    end: int
    hash_at: Callable[[int], str | None]
    session: str | None


class TopicRecords(NamedTuple):
    """What a replica's topic holds of packets.

    `last`: the place of its last record; None: there is none. `outboxes`: those that were ever
    taken from. `hash_at(place)`: the digest of the record at a place of the last outbox; None: it
    is not there any more. `sessions`: those of which the hub has read a hello.
    """

    last: Place | None
    outboxes: Collection[str]
    hash_at: Callable[[int], str | None]
    sessions: Collection[str]

    def place_of(self, outbox: str) -> int:
        """The place up to which records of this outbox are there, if it is the last one."""
        return self.last.place if self.last is not None and self.last.outbox == outbox else 0

    def is_next(self, outbox: str, base: int) -> bool:
        """Return whether records behind this place of an outbox do not lie beyond a hole."""
        return base <= self.place_of(outbox)


class TakeRecords(NamedTuple):
    """The records behind the first `known` are taken."""

    known: int


class AlreadyThere(NamedTuple):
    """All of them were taken before: the packet came twice."""


class WaitForOthers(NamedTuple):
    """Records before them are missing: the packet waits; `first`, `last`: of what is missing."""

    first: int
    last: int


class RefusePacket(NamedTuple):
    """It must not be taken."""

    why: str


ImportDecision = TakeRecords | AlreadyThere | WaitForOthers | RefusePacket

_PUT_BACK = (
    "its records are not those that the hub has at the same places: the outbox was put back, or two"
    " agents work on copies of one database; stop the wrong one, and start the right one with an"
    " outbox of its own, which says what was lost"
)


def decide_import(brought: BroughtRecords, topic: TopicRecords) -> ImportDecision:
    """Decide what becomes of a packet of a replica.

    It must go on where the topic ends. Where it overlaps what is there, the last record of both
    must be the same one; where it follows it, the digest of the record before it.
    """
    place = topic.place_of(brought.outbox)
    if not place and (refused := _other_outbox(brought, topic)):
        return RefusePacket(refused)
    if brought.base > place:
        return WaitForOthers(place + 1, brought.base)
    common = min(place, brought.end)
    known = topic.hash_at(common) if common else None
    if known is not None and brought.hash_at(common) != known:
        return RefusePacket(_PUT_BACK)
    return AlreadyThere() if brought.end <= place else TakeRecords(place - brought.base)


def _other_outbox(brought: BroughtRecords, topic: TopicRecords) -> str | None:
    """Why an outbox may not follow the one that the topic ends with; None: it may.

    A new outbox begins with a hello, which says what its database has lost.
    """
    if brought.outbox in topic.outboxes:
        last = topic.last.outbox if topic.last else ""
        return (
            f"it is of outbox {brought.outbox[:8]}, which {last[:8]} has replaced: remove it; what"
            " of it is in the database is in later packets"
        )
    if brought.base or topic.last is None:
        return None
    if brought.session is None:
        return "it begins a new outbox and does not begin with a hello: start its agent anew"
    if brought.session in topic.sessions:
        return "it begins a new outbox with a session that the hub knows: start its agent anew"
    return None
