"""Split a batch into runs: plain changes and whole transactions of one replica, CSNs rising.

A whole transaction is contiguous: its changes, the first of which is the primary, and directly
after them its commit.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from streaming.core.state.topology import Topology
from streaming.stages.checked import Bools, CheckedRecords, Ints, Texts


@dataclass(frozen=True, slots=True)
class RecordRun:
    """Rows [start, end) of CheckedRecords, all of one replica.

    `is_plain`: they are of one session, one snapshot or none, and one data set, and consist of
    whole transactions with rising CSNs; a plain change is a transaction by itself.
    """

    start: int
    end: int
    is_plain: bool

    @property
    def rows(self) -> slice:
        """Return the rows as a slice."""
        return slice(self.start, self.end)


def runs(facts: CheckedRecords, topology: Topology) -> Iterator[RecordRun]:
    """Yield all records in topic order, as runs of whole transactions and runs of other records."""
    if not len(facts):
        return
    same_topic = _same(facts.rid)
    same_session = same_topic & _same(_codes(facts, "session")) & _same(_codes(facts, "snapshot"))
    follows = same_session & _follows(facts, topology)
    goes_on = same_session & _goes_on(facts, follows)
    starts = np.flatnonzero(~goes_on)
    whole = _whole(facts, starts, np.append(starts[1:], len(facts)) - 1)
    joined = _same(whole) & np.where(whole, follows[starts], same_topic[starts])
    first = np.flatnonzero(~joined)
    bounds = [*starts[first].tolist(), len(facts)]
    for start, end, is_plain in zip(bounds, bounds[1:], whole[first].tolist(), strict=False):
        yield RecordRun(start, end, is_plain)


def closing(facts: CheckedRecords, run: RecordRun) -> Ints:
    """Return, by change of a plain run, the index of the last change of its transaction.

    Indices count the changes of the run, without its commits.
    """
    commit, alone = facts.commit[run.rows], facts.prim_csn[run.rows] == b""
    ends = (np.append(commit[1:], False) | alone)[~commit]
    last = np.flatnonzero(ends)
    return np.asarray(last[np.searchsorted(last, np.arange(len(ends)))], dtype=np.int64)


def _goes_on(facts: CheckedRecords, follows: Bools) -> Bools:
    """Mark the rows that belong to the transaction of the plain change before them."""
    behind_change = np.append(False, facts.plain[:-1])
    named = _same(facts.prim_csn) & (facts.prim_csn != b"")
    belongs = behind_change & named & (facts.commit | follows)
    return np.asarray(belongs, dtype=np.bool_)


def _whole(facts: CheckedRecords, first: Ints, last: Ints) -> Bools:
    """Mark the transactions that are whole, from their first and last rows."""
    prim_csn = facts.prim_csn[first]
    ended = (prim_csn == facts.csn[first]) & facts.commit[last]
    return np.asarray(facts.plain[first] & ((prim_csn == b"") | ended), dtype=np.bool_)


def _follows(facts: CheckedRecords, topology: Topology) -> Bools:
    """Mark the changes with the next opno, of the same data set and above the change before."""
    here = np.arange(1, len(facts))
    before = np.maximum(here - 1 - facts.commit[:-1], 0)
    opno, last = facts.opno[here], facts.opno[before]
    is_next = np.where(last == 0, opno == 0, opno == last + 1)
    follows = is_next & (facts.csn[here] > facts.csn[before])
    if len(topology.datasets) > 1:
        dataset = _dataset(facts, topology)
        follows &= dataset[here] == dataset[before]
    return np.append(False, follows)


def _same(values: Ints | Bools | Texts) -> Bools:
    """Mark the rows with the value of the row before."""
    return np.append(False, values[1:] == values[:-1])


def _codes(facts: CheckedRecords, column: str) -> Ints:
    codes = facts.table[column].combine_chunks().dictionary_encode().indices
    return np.asarray(codes.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)


def _dataset(facts: CheckedRecords, topology: Topology) -> Ints:
    codes = facts.table["table"].combine_chunks().dictionary_encode()
    names: list[str] = codes.dictionary.to_pylist()
    places = [
        topology.datasets.index(topology.dataset_of(n)) if n in topology.tables else -1
        for n in names
    ]
    known = np.array([*places, -1], dtype=np.int64)
    indices = codes.indices.fill_null(len(names)).to_numpy(zero_copy_only=False)
    return np.asarray(known[indices], dtype=np.int64)
