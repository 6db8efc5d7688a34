"""What a replica's own topic holds, computed record by record (docs/protocol.md, Hello).

The topic may hold more than the database (it was restored from a backup) or less (the journal's
tail was not published yet).
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from connectors import wire
from streaming.core.model.change import Change
from streaming.core.model.csn import rid_of
from streaming.core.model.errors import WireError
from streaming.core.records.record import (
    Abort,
    Applied,
    Commit,
    Goodbye,
    Heartbeat,
    Hello,
    LocalWrites,
    PublishedSchema,
    Record,
    Refused,
    Snapshot,
)

log = logging.getLogger(__name__)

NAMED = 10
"""So many ignored records are named; then the 100th, the 1,000th, and so on."""

FindEntry = Callable[[Change | Commit | Snapshot], int | None]
"""The id of the journal entry with the same content, or None: the database lacks it."""


@dataclass(slots=True)
class OwnTopic:
    """The records from the offset on up to which the topic was compared before.

    `session` and `own` start with what was stored for that offset. Only records of the session in
    force count for `own` and `missing`: the hub has put others into quarantine. Those of them that
    the database has are `stranded` until they come again in a session in force.
    """

    session: str | None = None
    own: str | None = None  # the largest CSN of a committed change
    csn: str = ""  # the largest CSN of all
    epoch: int = 0  # the largest that was ever reached
    opno: int = 0
    reached: int = 0  # the largest hub epoch that was applied in the session in force
    found: int = 0  # the largest journal id that the topic holds, or that is stranded in it
    missing: int = 0  # how many are committed, but the database lacks them
    first_missing: str = ""  # the smallest CSN of those
    reported: int = 0  # how many it lacks that an earlier hello reported
    first_reported: str = ""
    open: dict[str, list[tuple[str, int | None]]] = field(
        default_factory=dict
    )  # prim -> (csn, journal id, or None: the database lacks it)
    stranded: dict[Change | Commit, None] = field(default_factory=dict)  # in the topic's order
    other: set[str] = field(default_factory=set)
    """The transactions of which the database lacks a change: what it has of that name is another
    transaction (a restored database wrote in the second of a lost one), and so is its commit."""

    def add(self, session: str, record: Record, find: FindEntry) -> None:
        """Add the next record of the topic."""
        match record:
            case Hello():
                self._hello(session, record)
            case Change():
                self.csn = max(self.csn, record.csn)
                self.epoch = max(self.epoch, record.epoch)
                self.opno = max(self.opno, record.opno or 0)
                found = find(record)
                if found is None and record.prim_csn:
                    self.other.add(record.prim_csn)
                if session == self.session:
                    self.stranded.pop(record, None)
                    self._change(record, found)
                else:
                    self._strand(record, found)
            case Commit():
                found = None if record.prim_csn in self.other else find(record)
                if session != self.session:
                    self._strand(record, found)
                else:
                    self.stranded.pop(record, None)
                    self.found = max(self.found, found or 0)
                    for csn, id_ in self.open.pop(record.prim_csn, ()):
                        self._add_committed(csn, in_database=id_ is not None)
            case Abort():
                if session == self.session:
                    self.open.pop(record.prim_csn, None)
            case Applied():
                self.epoch = max(self.epoch, record.epoch + 1)
                if session == self.session:
                    self.reached = max(self.reached, record.reached or 0)
            case Heartbeat() | Goodbye():
                self.epoch = max(self.epoch, record.epoch)
            case Snapshot():
                self.found = max(self.found, find(record) or 0)
            case Refused() | PublishedSchema() | LocalWrites():
                pass

    def unfinished(self) -> set[str]:
        """The transactions that were published only in part and that the database has."""
        return {prim for prim, csns in self.open.items() if all(id_ is not None for _, id_ in csns)}

    def torn(self) -> int | None:
        """The first journal id of a transaction whose beginning alone is as the topic has it.

        A restored database gave its rest other numbers. The hello ends what the topic has of it, so
        all of it must come again, under new numbers.
        """
        unfinished = self.unfinished()
        torn = (csns for prim, csns in self.open.items() if prim not in unfinished)
        return min((id_ for csns in torn for _, id_ in csns if id_), default=None)

    def _hello(self, session: str, hello: Hello) -> None:
        """A hello ends what is open; a loss that it reported is not reported again."""
        self.session, self.reached = session, 0
        self.epoch = max(self.epoch, hello.epoch + 1)
        self.open.clear()
        if hello.lost and self.missing:
            self.reported += self.missing
            self.first_reported = self.first_reported or self.first_missing
            self.missing, self.first_missing = 0, ""

    def _strand(self, record: Change | Commit, found: int | None) -> None:
        """Note a record outside the session in force: the hub takes it when it comes again.

        One that was trimmed from the journal may be another database's, so it stays where it is.
        """
        if found:
            self.found = max(self.found, found)
            self.stranded[record] = None

    def _change(self, change: Change, found: int | None) -> None:
        self.found = max(self.found, found or 0)
        if change.prim_csn is None:
            self._add_committed(change.csn, in_database=found is not None)
        else:
            self.open.setdefault(change.prim_csn, []).append((change.csn, found))

    def _add_committed(self, csn: str, *, in_database: bool) -> None:
        self.own = max(self.own or "", csn)
        if not in_database:
            self.missing += 1
            self.first_missing = min(self.first_missing or csn, csn)


@dataclass(slots=True)
class IgnoredRecords:
    """What an agent reads and cannot use: named at first, then counted, as it may be a flood."""

    count: int = 0

    def note(self, record: str, error: Exception) -> None:
        """Count one, and name it or say how many there were."""
        self.count += 1
        if self.count <= NAMED:
            log.warning("%s is ignored: %s", record, error)
        elif str(self.count).strip("0") == "1":
            log.warning("%d such records are ignored by now; the last: %s", self.count, error)


def compare(
    past: OwnTopic, records: Iterable[tuple[int, bytes]], end: int, rid: int, find: FindEntry
) -> int:
    """Add the (offset, value) of the own topic from `end` on to what it holds; its new end."""
    ignored = IgnoredRecords()
    for offset, value in records:
        end = offset + 1
        try:
            session, record = wire.decode(value)
        except WireError as error:
            ignored.note("a record of the own topic", error)
            continue
        if not isinstance(record, Change) or rid_of(record.csn) == rid:
            past.add(session, record, find)
    return end
