"""Random histories of three replicas: mostly well behaved, sometimes odd."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from streaming.core.model.change import Change, Op
from streaming.core.model.csn import CsnParts, format_csn
from streaming.core.model.ruv import Ruv
from streaming.core.model.truncation import ALL_KEYS
from streaming.core.records.record import (
    Abort,
    Applied,
    Commit,
    Hello,
    Reason,
    ReceivedRecord,
    Record,
)

NUMBERED = 2
"""The replica whose changes carry opnos."""


@dataclass
class Author:
    """Writes one replica's topic: mostly well behaved, sometimes not.

    Its time goes on by two, so an odd number of steps back gives a CSN that is new and late.
    """

    rid: int
    offset: int = 0
    time: int = 1
    epoch: int = 1
    session: str = ""
    opno: int = 0
    received: list[ReceivedRecord] = field(default_factory=list)
    held: list[Change] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    sent_changes: list[Change] = field(default_factory=list)

    def send(self, record: Record) -> None:
        """Append a record of the session in force."""
        time_ms = 1_000 + self.offset * 17 % 40
        self.received.append(ReceivedRecord(self.rid, self.offset, time_ms, self.session, record))
        self.offset += 1

    def hello(self, covers: int, *, lost: int | None = None) -> None:
        """Start a session; `lost`: how far back the changes begin that its database lacks."""
        self.session = f"{self.rid}-{self.offset}"
        own = None if lost is None else self.csn(lost)
        self.send(Hello(self.epoch, covers, 1, Ruv(), own, lost=lost is not None))

    def change(self, key: int, op: Op, *, back: int, prim: str | None, part: bool) -> str:
        """Write a row; `back` makes the CSN an older one, the key determines the table.

        prim: the transaction; empty: this change is the first of one.
        """
        self.time += 2
        csn = self.csn(back)
        image = (
            None
            if op is Op.DELETE
            else f'{{"id":"{key}","v":"{csn}"' + ("}" if part else ',"w":"x"}')
        )
        self.opno += 1
        opno = self.opno if self.rid == NUMBERED else None
        table, before = (
            "tu"[key % 2],
            f'{{"id":"{key}","v":"o","w":"x"}}' if self.time % 3 else None,
        )
        where = self.epoch - (self.time % 7 == 0), table, f'{{"id":"{key}"}}'
        named = csn if prim == "" else prim
        self.send(Change(csn, self.rid, *where, op, image, before, named, opno))
        return csn

    def csn(self, back: int = 0) -> str:
        """The CSN of now, or an older one."""
        return format_csn(CsnParts(max(1, self.time - back), 0, self.rid, 0))

    def members(self, key: int, op: Op, *, one_table: bool, prim: str = "") -> str:
        """Write up to four changes of a transaction, a new one if it has no name; its name."""
        for n in range(key + 1):
            other = (key + n * (2 if one_table else 1)) % 4
            csn = self.change(other, op, back=0, prim=prim, part=self.time % 5 == 0)
            prim = prim or csn
        return prim

    def odd(self, what: str, key: int, op: Op, *, part: bool) -> None:
        """Write a transaction with something about it."""
        prim = self.members(key, op, one_table=part)
        match what:
            case "aborted":
                self.send(Abort(prim))
            case "late member":
                self.send(Commit(prim))
                self.members(0, op, one_table=part, prim=prim)
            case "crossed":
                other = self.members(0, op, one_table=part)
                self.members(0, op, one_table=part, prim=prim)
                self.send(Commit(other if part else prim))
                prim = prim if part else other
            case "plain between":
                self.change(key, op, back=0, prim=None, part=part)
                self.members(0, op, one_table=part, prim=prim)
            case "member again":
                self.send(self.received[-1].record)  # type: ignore[arg-type]
            case "repeated after its commit":
                again = self.received[-1 - key % 2].record
                self.send(Commit(prim))
                self.send(again)  # type: ignore[arg-type]
            case "older member":
                self.change(key, op, back=2 + key, prim=prim, part=part)
            case "bad member":
                self.spoil()
            case "truncated" if key == 3:
                self.spoil(Op.TRUNCATE)
            case "older follows":
                self.send(Commit(prim))
                prim = self.change(key, op, back=2 + key, prim="" if part else None, part=part)
            case "other session":
                self.received.append(replace(self.received.pop(), session="another"))
                self.opno -= 1
            case "commit of another session":
                self.send(Commit(prim))
                self.received.append(replace(self.received.pop(), session="another"))
            case "bad commit":
                self.send(Commit(prim))
                self.received.append(replace(self.received.pop(), reason=Reason.SKEW, detail="no"))
            case "greeted":
                self.hello(key)
            case _:
                pass
        self.send(Commit(prim))
        if what == "committed again":
            self.send(Commit(prim))

    def spoil(self, op: Op | None = None) -> None:
        """Make the last change one that validation refuses, or one with this operation."""
        last = self.received.pop()
        change = last.record
        assert isinstance(change, Change)
        if op is not None:
            key = ALL_KEYS if op is Op.TRUNCATE else change.key
            record = change._replace(op=op, key=key, after=None, before=None)
            last = replace(last, record=record)
        else:
            last = replace(last, reason=Reason.TABLE, detail="no", content=change.content)
        self.received.append(last)

    def hold_back(self, key: int, op: Op) -> None:
        """Write a row and publish it later: until then its opno is a hole, later ones wait."""
        self.change(key, op, back=0, prim=None, part=False)
        held = self.received.pop().record
        assert isinstance(held, Change)
        self.held.append(held)
        self.offset -= 1


ODD = (
    *("aborted", "committed again", "late member", "crossed", "plain between", "member again"),
    *("older member", "bad member", "other session", "commit of another session", "greeted"),
    "bad commit",
    "older follows",
    "repeated after its commit",
    "truncated",
)


def _steps(kinds: list[str], least: int, most: int) -> st.SearchStrategy["Steps"]:
    """So many steps, each of one of these kinds."""
    step = st.tuples(
        st.sampled_from([1, 2, 3]),
        st.sampled_from(kinds),
        st.integers(0, 3),
        st.sampled_from([Op.INSERT, Op.UPDATE, Op.DELETE]),
        st.booleans(),
    )
    return st.lists(step, min_size=least, max_size=most)


STEPS = _steps(
    ["change"] * 8
    + ["whole"] * 8
    + [
        *ODD,
        "cut",
        "stale",
        "misnamed",
        "transaction",
        "commit",
        "abort",
        "applied",
        "hello",
        "restored",
    ]
    + ["hole", "fill", "late", "again", "truncate", "up to date", "batch", "batch"],
    30,
    60,
)

OPEN_STEPS = _steps(
    ["change"] * 10
    + ["whole"] * 3
    + ["transaction"] * 8
    + ["batch"] * 9
    + [
        "late",
        "late",
        "again",
        "repeated after its commit",
        "older member",
        "bad member",
        "misnamed",
        "greeted",
    ]
    + ["commit", "commit", "abort", "applied", "hello", "hole", "fill", "old"],
    50,
    100,
)
"""Many transactions stay open over several batches, and whole ones wait above them."""

Steps = list[tuple[int, str, int, Op, bool]]


def batches(steps: Steps) -> Iterator[list[ReceivedRecord]]:
    """The steps as micro-batches of records, replica by replica."""
    authors = {rid: Author(rid) for rid in (1, 2, 3)}
    for author in authors.values():
        author.hello(0)
    numbered, cuts = authors[NUMBERED], 0
    for rid, what, key, op, part in steps:
        author = authors[rid]
        match what:
            case "change":
                author.change(key, op, back=0, prim=None, part=part)
            case "truncate":
                author.change(key, op, back=0, prim=None, part=part)
                author.spoil(Op.TRUNCATE)
            case "up to date":
                author.send(Applied(author.epoch, max(0, cuts - 1 - key), 1, Ruv()))
                author.epoch += 1
            case "late":
                author.change(key, op, back=2 + key, prim=None, part=part)
            case "whole":
                author.send(Commit(author.members(key, op, one_table=part)))
            case "cut":
                prim = author.members(key, op, one_table=part)
                yield _cut(authors)
                cuts += 1
                if part:
                    author.members(key, op, one_table=part, prim=prim)
                author.send(Commit(prim))
            case "stale":
                now = author.session, author.opno
                author.session = "another"
                author.send(Commit(author.members(key, op, one_table=part)))
                author.session, author.opno = now
            case "misnamed":
                prim = author.csn(key)
                author.members(key, op, one_table=part, prim=prim)
                author.send(Commit(prim))
            case "transaction":
                prim = author.open[-1] if author.open and part else ""
                csn = author.change(key, op, back=0, prim=prim, part=False)
                if not prim:
                    author.open.append(csn)
            case "commit" if author.open:
                author.send(Commit(author.open.pop(0)))
            case "abort" if author.open:
                author.send(Abort(author.open.pop(0)))
            case "applied":
                author.send(Applied(author.epoch, key, 1, Ruv()))
                author.epoch += 1
            case "hello":
                author.hello(key)
                author.open.clear()
            case "restored":
                author.hello(0, lost=4 * key)
                author.open.clear()
            case "hole":
                prim = numbered.members(0, op, one_table=part)
                if not part:
                    numbered.send(Commit(prim))
                numbered.hold_back(key, op)
                prim = numbered.members(0, op, one_table=part, prim=prim if part else "")
                numbered.send(Commit(prim))
            case "fill" if numbered.held:
                numbered.send(numbered.held.pop(0))
            case "again" if author.received:
                author.send(author.received[-1].record)  # type: ignore[arg-type]
            case "old":
                author.change(key, op, back=9 + 4 * key, prim=None, part=part)
            case "batch":
                yield _cut(authors)
                cuts += 1
            case _ if what in ODD:
                author.odd(what, key, op, part=part)
            case _:
                pass
    yield _cut(authors)


def _cut(authors: dict[int, Author]) -> list[ReceivedRecord]:
    received = [one for author in authors.values() for one in author.received]
    for author in authors.values():
        author.received.clear()
    return received
