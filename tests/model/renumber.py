"""A replica whose clock was wrong dates anew what nobody has seen of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from connectors.agent.clock import ClockWatch
from streaming.core.model.change import Change
from streaming.core.model.csn import MAX_SKEW_S, Generator, time_of
from streaming.core.records.record import Abort, Commit, Record
from tests.model.replica import Line, Replica, Transaction, Version, Write


def renumber(one: Replica, topic: Sequence[Record], clock_s: int) -> Mapping[str, str]:
    """Give what its topic never had new CSNs of this clock, if the hub would refuse one of it.

    They keep their order and groups, above what the topic holds and what was applied. Returns each
    new CSN by the old one.
    """
    given = [n for n, line in enumerate(one.journal) if line.reached or line.record in topic]
    unseen = one.journal[max(given, default=-1) + 1 :]
    csns = [line.record.csn for line in unseen if isinstance(line.record, Change)]
    published = {record.csn for record in topic if isinstance(record, Change)}
    largest = max(published, default="")
    is_refused = ClockWatch(one.rid).is_any_refused(csns, largest, clock_s * 1000)
    if not is_refused or published & {*csns}:  # a CSN that was given twice stays so
        return {}
    applied = one.position.ruv.max_csns().values()
    followed = (csn for csn in applied if time_of(csn) - clock_s <= MAX_SKEW_S)
    one.generator = Generator.behind(one.rid, max([largest, *followed]))
    new = dict[str, str]()
    for csn in csns:
        new[csn], one.generator = one.generator.next(clock_s)
    _Renumbered(new).write(one, unseen)
    return new


@dataclass(frozen=True, slots=True)
class _Renumbered:
    """What a replica holds by new CSNs; a backup keeps the old ones."""

    new: Mapping[str, str]

    def write(self, one: Replica, unseen: Sequence[Line]) -> None:
        """Put these lines, and every version that they made, in the place of the old ones."""
        lines = {id(line): Line(self.record(line.record), line.session) for line in unseen}
        one.journal = [lines.get(id(line), line) for line in one.journal]
        one.writes += [
            Write(lines[id(w.line)], self.versions(w.over), self.versions(w.seen), w.copied)
            for w in one.writes
            if id(w.line) in lines
        ]
        one.rows = {key: self.version(held) for key, held in one.rows.items()}
        one.seen = {key: self.versions(held) for key, held in one.seen.items()}
        one.truncates = {table: self.versions(left) for table, left in one.truncates.items()}
        one.saved, one.given_up = {*self.versions(one.saved)}, {*self.versions(one.given_up)}
        one.hidden_away = {*self.versions(one.hidden_away)}
        one.longs = [(prim and self.csn(prim), self.version(held)) for prim, held in one.longs]
        one.done |= {self.csn(primary) for primary in one.done}
        one.open = {label: self.transaction(inside) for label, inside in one.open.items()}

    def csn(self, csn: str) -> str:
        """The CSN that stands for this one."""
        return self.new.get(csn, csn)

    def record(self, record: Record) -> Record:
        """A record of the journal by the new CSNs of what it names."""
        match record:
            case Change(csn=csn, prim_csn=primary):
                return record._replace(csn=self.csn(csn), prim_csn=primary and self.csn(primary))
            case Commit(prim_csn=primary) | Abort(prim_csn=primary):
                return replace(record, prim_csn=self.csn(primary))
            case _:
                return record

    def version(self, version: Version) -> Version:
        """A row as it stands by its new CSN."""
        return replace(version, csn=version.csn and self.csn(version.csn))

    def versions(self, versions: Iterable[Version]) -> frozenset[Version]:
        """The same of several."""
        return frozenset(map(self.version, versions))

    def transaction(self, inside: Transaction) -> Transaction:
        """An open transaction by its new CSNs."""
        return Transaction(
            inside.primary and self.csn(inside.primary),
            {key: self.version(held) for key, held in inside.rows.items()},
            [(key, self.version(held)) for key, held in inside.written],
            [(table, self.version(left)) for table, left in inside.truncated],
        )
