"""A replication session page by page, with the cases of the document for the next page's anchor.

After a page the document asks of each replica what happened since, to start as far on as it may
(389: "Processing the replication changelog", buffer reload; cl5_clcache.c). The hub does what the
document wonders about in a note: it decides each page anew from the position after the last. That
needs a position which moves even when all of a page was skipped. A page of the hub ends on a hub
epoch, whose RUV is that position (`sending.plan`); where a page is so many records, as here, it
is csnBuffer. Both send the same: that is a property, and what this module is for.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from streaming.core.delivery.lack import Anchor, Lack, lack, own_counted
from streaming.core.model.ruv import Ruv
from tests.reference.lack import must_send


class Case(StrEnum):
    """What happened to a replica's changes while the last page was processed."""

    UNCHANGED = "unchanged"
    """1: csnPrevMaxSup = csnMaxSup, nothing new: NEXT after csnBuffer"""
    NOT_REACHED = "not_reached"
    """2: csnPrevMaxSup >= csnBuffer, so what is new is ahead of the page: NEXT after csnBuffer"""
    FIRST_NEVER_SEEN = "first_never_seen"
    """3.1: no csnPrevMaxSup, and the consumer has nothing of it: AT csnMinSup"""
    FIRST_BEHIND = "first_behind"
    """3.1: no csnPrevMaxSup, and the consumer has less: NEXT after csnConsumer"""
    FIRST_LEVEL = "first_level"
    """3.1: no csnPrevMaxSup, and the consumer has as much: ignored"""
    PASSED = "passed"
    """3.2: csnPrevMaxSup < csnBuffer, so what is new may stand within the page that was read,
    where it was skipped or was not yet: NEXT after csnConsumer"""


_AHEAD = (Case.UNCHANGED, Case.NOT_REACHED)
"""All that is left of such a replica stands behind the page; of others, where a first load looks.

That is AT its min also for one that was passed and of which the consumer still has nothing, as in
389; the document takes for granted that there is a csnConsumer.
"""


@dataclass(frozen=True, slots=True)
class Session:
    """A session at the load of a page, or behind it when the page was read.

    `lacking`: what this page is decided by; its `stop` is csnMaxSup, at the next load
    csnPrevMaxSup. `consumer`: csnConsumer, raised by what is sent. `buffer`: csnBuffer, the last
    record that was read, sent or not. `own`: the consumer's rid if its changes count as covered.
    `cases`: why each replica starts where it does; empty at the first load. `drained`: the
    changelog held nothing behind the anchor.
    """

    lacking: Lack
    consumer: Ruv
    own: int | None = None
    buffer: str | None = None
    cases: Mapping[int, Case] = field(default_factory=dict)
    drained: bool = False

    @property
    def anchor(self) -> Anchor | None:
        """Where the page is read from: the smallest start."""
        return self.lacking.anchor

    @property
    def is_ended(self) -> bool:
        """Return whether nothing is to be sent: no replica has a start, or the log is at its end.

        The second is for CSNs that the supplier covers and never logged; no sending makes the
        consumer level with those.
        """
        return self.anchor is None or self.drained


def first_load(supplier: Ruv, consumer: Ruv, own: int | None = None) -> Session:
    """Begin a session: the first page starts where `lack` starts it.

    `own` is decided once per session, as 389 does: its changes are covered however many come.
    """
    return Session(_lack(supplier, consumer, own), consumer, own)


def reload(session: Session, supplier: Ruv) -> Session:
    """Load the next page, now that the supplier's RUV is this.

    A replica of which the consumer has all has no start, in whatever case it is: the document
    lets it hold the anchor at csnBuffer, 389 does not, and only so a session ends. An anchor
    below the session's first is followed, as the document says; 389 ends the session there and
    leaves the rest to the next one. A page without a record leaves no csnBuffer to start after.
    """
    buffer = session.buffer
    if buffer is None:
        return first_load(supplier, session.consumer, session.own)
    lacking, before = _lack(supplier, session.consumer, session.own), session.lacking.stop
    cases = {
        rid: case_of(before.max_of(rid), known, lacking.has.max_of(rid), buffer)
        for rid, known in supplier.max_csns().items()
    }
    starts = {
        rid: Anchor(buffer, at=False) if cases[rid] in _AHEAD else anew
        for rid, anew in lacking.starts.items()
    }
    return replace(session, lacking=replace(lacking, starts=starts), cases=cases, drained=False)


def case_of(before: str | None, now: str, there: str | None, buffer: str) -> Case:
    """The case of a replica from its csnPrevMaxSup, csnMaxSup, csnConsumer and the csnBuffer."""
    if before == now:
        return Case.UNCHANGED
    if before is not None:
        return Case.NOT_REACHED if before >= buffer else Case.PASSED
    if there is None:
        return Case.FIRST_NEVER_SEEN
    return Case.FIRST_BEHIND if there < now else Case.FIRST_LEVEL


def read(session: Session, page: Iterable[str]) -> tuple[Session, tuple[str, ...]]:
    """Process a page: the next records of the changelog from the anchor on, in CSN order.

    Gives the session behind it and what is sent. The stop is fixed while a page is processed: a
    record beyond it is skipped even if it follows directly (389 moves its stop then) and comes
    with the next page, for its replica is passed or not reached.
    """
    records = tuple(page)
    if not records:
        return replace(session, drained=True), ()
    sent = tuple(csn for csn in records if must_send(session.lacking, csn))
    consumer = session.consumer
    for csn in sent:
        consumer = consumer.with_csn(csn)
    return replace(session, consumer=consumer, buffer=records[-1]), sent


def _lack(supplier: Ruv, consumer: Ruv, own: int | None) -> Lack:
    if own is None:
        return lack(supplier, consumer)
    return lack(supplier, own_counted(consumer, own, supplier.max_of(own)))
