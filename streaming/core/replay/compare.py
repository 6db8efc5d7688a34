"""Compare what a hub recorded of a batch with what judging it again gives, fact by fact.

Both sides are rows with the column names of the state's tables.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from streaming.core.conflict.judge import Verdict

Row = Mapping[str, Any]
Facts = Mapping[str, object]


class RecordedPart(StrEnum):
    """What of a record is compared."""

    CHANGE = "change"
    """a judged change: its verdict, and by which facts"""
    REFRESH = "refresh"
    """a row that was sent to correct a replica"""
    RANGE = "range"
    """a range of keys that a page sent as a whole"""
    CONFLICT = "conflict"
    """a loser with its winner"""
    QUARANTINE = "quarantine"
    """a record that the hub could not process"""
    PENDING = "pending"
    """a change of a transaction that was open or ended"""
    CONTROL = "control"
    """a control record and its outcome"""
    STATE = "state"
    """a field of the hub's state behind the batch"""


class Difference(NamedTuple):
    """One fact that is recorded as one value, and comes out as another.

    `id`: of the entry: a CSN, a row, an id of the table. `table`, `key`: its row, where it has one.
    An entry that only one side has differs in the fact `there`.
    """

    part: RecordedPart
    id: str
    table: str | None
    key: str | None
    fact: str
    recorded: object
    replayed: object


THERE = "there"
"""The fact of an entry that only one of the two sides has."""

NOT_LOOKED_AT = (0, 0, None)
"""The row before a change that was accepted without a look at it: no replica else wrote it lately.

Which rows memory holds depends on when a hub starts, and says nothing of a verdict.
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a record: what it is, what names it, and its facts."""

    part: RecordedPart
    id: str
    table: str | None
    key: str | None
    facts: Facts

    @property
    def name(self) -> tuple[object, ...]:
        """Return what the same entry of the other side has too."""
        return self.part, self.id, self.table, self.key


def differences(recorded: Iterable[Entry], replayed: Iterable[Entry]) -> list[Difference]:
    """Return all facts in which both sides differ, in the order of the record.

    Of several entries of one name the first is compared with the first, and so on.
    """
    mine, theirs = _by_name(recorded), _by_name(replayed)
    found = list[Difference]()
    for name in dict.fromkeys([*mine, *theirs]):
        left, right = mine.get(name, []), theirs.get(name, [])
        for one, other in zip(left, right, strict=False):
            found += _different_facts(one, other)
        common = min(len(left), len(right))
        found += [_difference(one, THERE, "yes", "no") for one in left[common:]]
        found += [_difference(one, THERE, "no", "yes") for one in right[common:]]
    return found


def _by_name(entries: Iterable[Entry]) -> dict[tuple[object, ...], list[Entry]]:
    found = defaultdict[tuple[object, ...], list[Entry]](list)
    for entry in entries:
        found[entry.name].append(entry)
    return found


def _different_facts(one: Entry, other: Entry) -> Iterator[Difference]:
    for fact in dict.fromkeys([*one.facts, *other.facts]):
        mine, theirs = one.facts.get(fact), other.facts.get(fact)
        if mine != theirs and not (fact == ROW and NOT_LOOKED_AT in (mine, theirs)):
            yield _difference(one, fact, mine, theirs)


def _difference(entry: Entry, fact: str, recorded: object, replayed: object) -> Difference:
    return Difference(entry.part, entry.id, entry.table, entry.key, fact, recorded, replayed)


# -- what the tables say --------------------------------------------------------------------------

VERDICT = "verdict"
"""The fact how a change was judged."""
ROW = "row"
"""The fact which version of its row a change met: author, hub epoch, CSN."""


def entry_of_log(row: Row) -> Entry:
    """Return a row of the changelog as an entry."""
    match row["kind"]:
        case "change":
            return Entry(RecordedPart.CHANGE, row["csn"], row["table"], row["key"], _change(row))
        case "refresh":
            name = f"to {row['to']} for {row['cause']}"
            return Entry(RecordedPart.REFRESH, name, row["table"], row["key"], _refresh(row))
        case _:
            name = f"to {row['to']}, from {row['key_after']}"
            return Entry(RecordedPart.RANGE, name, row["table"], row["key"], {})


def _change(row: Row) -> Facts:
    """The facts of a verdict; a realign that the change's replica had reflected is none."""
    blocked = row["realign_epoch"] or 0
    is_accepted = row["verdict"] == Verdict.ACCEPTED
    return {
        VERDICT: row["verdict"],
        "cause": row["cause"],
        "MRE": row["mre"],
        "MRE with its own epoch": row["mre_same"],
        ROW: (row["row_author"] or 0, row["row_epoch"] or 0, row["row_csn"]),
        "realign": blocked if blocked > row["mre"] else 0,
        "image": row["image"] if is_accepted else None,
    }


def _refresh(row: Row) -> Facts:
    return {
        "CSN": row["csn"],
        "author": row["row_author"],
        "row epoch": row["row_epoch"],
        "image": row["image"],
        "behind offset": row["offset"],
    }


def entry_of_conflict(row: Row) -> Entry:
    """Return a row of `conflicts` as an entry; names of replicas are those of a configuration."""
    names = (
        *("kind", "cause", "lost", "loser_csn", "loser_rid", "loser_epoch"),
        "loser_hub_epoch",
        *("winner_csn", "winner_rid", "winner_hub_epoch", "row_epoch", "mre", "reflected_epoch"),
        *("same_epoch_only", "after", "winner_image", "resolution", "resolved_by"),
        *("code", "attempts", "sent_epoch"),
    )
    facts = {name: row[name] for name in names}
    return Entry(RecordedPart.CONFLICT, row["id"], row["table"], row["key"], facts)


def entry_of_quarantine(row: Row) -> Entry:
    """Return a row of the quarantine as an entry; its detail is prose of a version."""
    facts = {name: row[name] for name in ("action", "reason", "csn", "content")}
    return Entry(RecordedPart.QUARANTINE, row["id"], row["table"], row["key"], facts)


def entry_of_pending(row: Row) -> Entry:
    """Return a row of `pending` as an entry."""
    facts = {name: row[name] for name in ("reason", "dataset", "mre", "mre_same", "content")}
    name = f"{row['rid']} {row['csn'] or row['prim_csn']} {row['action']}"
    return Entry(RecordedPart.PENDING, name, row["table"], row["key"], facts)


def entry_of_event(row: Row) -> Entry:
    """Return a row of `events` as an entry."""
    facts = {"outcome": row["outcome"], "session": row["session"]}
    name = f"{row['rid']}-{row['offset']} {row['kind']}"
    return Entry(RecordedPart.CONTROL, name, None, None, facts)


EntryOf = Callable[[Row], Entry]
