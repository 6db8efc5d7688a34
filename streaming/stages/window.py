"""The recently written rows, in memory and in columns: about a hundred bytes for each of them.

A hash table with open addressing over the identities of rows; whole batches are looked up and
stored at once. Keys and images are not in it.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streaming.core.model.change import RowKey
from streaming.core.model.row import Realign, RowState
from streaming.core.model.row_name import key_of, text_of
from streaming.core.model.truncation import Truncation
from streaming.stages.checked import Bools, Ints
from streaming.stages.csns import CsnNumbers, csn_numbers, csn_texts
from streaming.stages.identities import Identities, RowHash

_NONE = -1
_LEAST = 1 << 10
"""Places for so many rows a window has at least."""

_EXISTS, _NAMED, _REALIGNED, _REJECTING = 1, 2, 4, 8
"""Flags: it is no tombstone, a change wrote it, and what its realigns do."""


@dataclass(frozen=True, slots=True)
class RowColumns:
    """Rows as columns, one value for each row; `csn` is 0 where nobody wrote the row.

    `flags`: what `exists`, `is_named`, `is_realigned` and `is_rejecting` say.
    """

    author: Ints
    epoch: Ints
    csn: CsnNumbers
    flags: NDArray[np.uint8]

    def has(self, flag: int) -> Bools:
        """Mark the rows with this flag."""
        return np.asarray(self.flags & flag != 0, dtype=np.bool_)

    @property
    def exists(self) -> Bools:
        """Mark the rows that are no tombstones."""
        return self.has(_EXISTS)

    @property
    def is_realigned(self) -> Bools:
        """Mark the rows that block changes."""
        return self.has(_REALIGNED)

    @property
    def is_rejecting(self) -> Bools:
        """Mark the rows that block whole transactions."""
        return self.has(_REJECTING)

    def csns(self) -> pa.Array:
        """The CSNs as texts; null where nobody wrote the row."""
        named = self.has(_NAMED)
        found = csn_texts(self.csn)
        if named.all():
            return found
        return pc.if_else(pa.array(named), found, pa.scalar(None, pa.string()))

    def truncated(self, taken: Bools, truncation: Truncation) -> "RowColumns":
        """The rows where a truncate took some: those are as it leaves them."""
        one = csn_numbers(pa.array([truncation.csn]))
        csn = CsnNumbers(
            np.where(taken, one.high, self.csn.high), np.where(taken, one.low, self.csn.low)
        )
        author = np.where(taken, truncation.author, self.author)
        epoch = np.where(taken, truncation.hub_epoch, self.epoch)
        flags = np.where(taken, self.flags & ~np.uint8(_EXISTS) | np.uint8(_NAMED), self.flags)
        return RowColumns(author, epoch, csn, flags)

    def rows(self) -> Iterator[RowState]:
        """The rows without their realigns."""
        columns = self.author.tolist(), self.epoch.tolist(), self.csns().to_pylist()
        fields = zip(*columns, self.exists.tolist(), repeat(None), repeat(()))
        return map(RowState._make, fields)


@dataclass(frozen=True, slots=True)
class AcceptedRows:
    """The rows that changes wrote which were accepted in bulk.

    `tables[table[i]]`: the table of row i. `names`: of the batch's changes those of their rows;
    `places`: in it, of the changes that these rows are.
    """

    identities: Identities
    columns: RowColumns
    tables: Sequence[str]
    table: Ints
    names: pa.ChunkedArray
    places: Ints

    def named(self) -> list[str]:
        """The names of the rows."""
        found: list[str] = self.names.take(pa.array(self.places)).to_pylist()
        return found


class ChangedRows(Mapping[str, RowState]):
    """The rows that a batch changed, by their names: accepted in bulk, or as core judged them."""

    def __init__(self, accepted: AcceptedRows, judged: Mapping[str, RowState]) -> None:
        self.accepted, self.judged = accepted, judged

    @cached_property
    def _by_name(self) -> dict[str, RowState]:
        rows = zip(self.accepted.named(), self.accepted.columns.rows(), strict=True)
        return {**dict(rows), **self.judged}

    def __getitem__(self, name: str) -> RowState:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        yield from self.accepted.named()
        yield from self.judged

    def __len__(self) -> int:
        return len(self.accepted.places) + len(self.judged)


def _columns_of(rows: Sequence[RowState]) -> RowColumns:
    flags = [
        _EXISTS * row.exists
        | _NAMED * (row.csn is not None)
        | _REALIGNED * bool(row.realign)
        | _REJECTING * any(one.rejects_transaction for one in row.realign)
        for row in rows
    ]
    return RowColumns(
        np.array([row.author for row in rows], dtype=np.int64),
        np.array([row.hub_epoch for row in rows], dtype=np.int64),
        csn_numbers(pa.array([row.csn for row in rows], pa.string())),
        np.array(flags, dtype=np.uint8),
    )


def accepted_rows(author: Ints, epoch: int, csn: CsnNumbers, exists: Bools) -> RowColumns:
    """The rows as changes leave them that are accepted in bulk."""
    flags = np.where(exists, _EXISTS | _NAMED, _NAMED).astype(np.uint8)
    return RowColumns(author, np.full(len(author), epoch, dtype=np.int64), csn, flags)


_STORED = {
    "high": np.uint64,
    "low": np.uint64,
    "touched": np.int64,
    "epoch": np.int64,
    "csn_high": np.uint64,
    "csn_low": np.uint16,
    "author": np.uint16,
    "table": np.uint32,
    "flags": np.uint8,
}


@dataclass(slots=True)
class Window:
    """Every row that was written or realigned above hub epoch `edge`, without its image.

    A row that is missing was last touched at or below the edge: for a change with an MRE not
    below it that row cannot be concurrent; for any other it is looked up. `hashes`: by it the rows
    have their identities here.
    """

    edge: int = 0
    hashes: RowHash = field(default_factory=RowHash)
    _stored: dict[str, NDArray[Any]] = field(init=False)
    _slots: NDArray[np.int32] = field(init=False)
    _count: int = 0
    _realigns: dict[int, tuple[Realign, ...]] = field(default_factory=dict)
    _tables: dict[str, int] = field(default_factory=dict)
    _by_epoch: Counter[int] = field(default_factory=Counter)
    _length: int = 0

    def __post_init__(self) -> None:
        """Make room."""
        self._stored = {name: np.zeros(0, kind) for name, kind in _STORED.items()}
        self._make_room(_LEAST)

    def __len__(self) -> int:
        """How many rows it holds; those that it forgot are not counted."""
        return self._length

    # -- reading -----------------------------------------------------------------------------

    def find(self, identities: Identities) -> Ints:
        """Where each row stands, for `at`; -1: it is not held."""
        found = self._find(identities)
        held = found >= 0
        held[held] = self._stored["touched"][found[held]] > self.edge
        return np.where(held, found, _NONE)

    def at(self, places: Ints) -> RowColumns:
        """The rows at these places, which `find` gave; at -1 an unknown one."""
        held, places = places >= 0, np.maximum(places, 0)

        def of(name: str) -> NDArray[Any]:
            values = self._stored[name][places]
            return np.where(held, values, values.dtype.type(0))

        csn = CsnNumbers(of("csn_high"), of("csn_low"))
        author, epoch = of("author").astype(np.int64), of("epoch").astype(np.int64)
        return RowColumns(author, epoch, csn, of("flags"))

    def held(self, keys: Collection[RowKey]) -> dict[RowKey, RowState]:
        """Those of these rows that it holds."""
        if not keys:
            return {}
        keys = list(keys)
        found = self.find(self.hashes.of(pa.array(map(text_of, keys), pa.string())))
        here = np.flatnonzero(found >= 0)
        rows = self._rows(found[here])
        return {keys[place]: row for place, row in zip(here.tolist(), rows, strict=True)}

    def newest_of(self, table: str, without: Collection[str]) -> list[RowState]:
        """Of a table, without these keys, the newest row of each author, and what is realigned.

        Of tombstones and of rows that stand one each, for a tombstone may not count.
        """
        here = self._of_table(table)
        if without:
            names = pa.array([text_of((table, key)) for key in without], pa.string())
            gone = self.find(self.hashes.of(names))
            here[gone[gone >= 0]] = False
        places = np.flatnonzero(here)
        one = self.at(places)
        order = np.lexsort((one.csn.low, one.csn.high, one.epoch, one.exists, one.author))
        kind = (one.author * 2 + one.exists)[order]
        last = np.append(kind[1:] != kind[:-1], True)[: len(order)]
        chosen = one.is_realigned.copy()
        chosen[order[last]] = True
        return list(self._rows(places[chosen]))

    def holds(self, table: str, keys: Sequence[str]) -> set[str]:
        """Those of these keys of a table whose rows it holds."""
        found = self.find(self.hashes.of(pa.array([text_of((table, key)) for key in keys])))
        return {keys[place] for place in np.flatnonzero(found >= 0).tolist()}

    def _of_table(self, table: str) -> Bools:
        number = self._tables.get(table, len(self._tables))
        mine = self._stored["table"][: self._count] == number
        held = self._stored["touched"][: self._count] > self.edge
        return np.asarray(mine & held, dtype=np.bool_)

    def _rows(self, places: Ints) -> Iterator[RowState]:
        for place, row in zip(places.tolist(), self.at(places).rows(), strict=True):
            realign = self._realigns.get(place)
            yield row._replace(realign=realign) if realign else row

    # -- writing -----------------------------------------------------------------------------

    def merge(self, written: ChangedRows) -> None:
        """Store the rows that a committed batch changed."""
        one = written.accepted
        if len(one.places):
            numbers = np.array([self._number(name) for name in one.tables], dtype=np.int64)
            self._store(one.identities, numbers[one.table], one.columns, {})
        self.put(written.judged)

    def put(self, rows: Mapping[str, RowState]) -> None:
        """Store these rows, by their names."""
        if not rows:
            return
        states = list(rows.values())
        tables = [self._number(key_of(name)[0]) for name in rows]
        realigns = {n: row.realign for n, row in enumerate(states) if row.realign}
        identities = self.hashes.of(pa.array(list(rows), pa.string()))
        self._store(identities, np.array(tables, dtype=np.int64), _columns_of(states), realigns)

    def _store(
        self,
        identities: Identities,
        tables: Ints,
        rows: RowColumns,
        realigns: Mapping[int, tuple[Realign, ...]],
    ) -> None:
        """Store rows that differ; `realigns`: by their number here, of those that have some."""
        self._have_room_for(len(identities))
        places, touched = self._find(identities), rows.epoch.copy()
        new, old = np.flatnonzero(places < 0), places[places >= 0]
        self._tally(self._stored["touched"][old], -1)
        for place in old[self._stored["flags"][old] & _REALIGNED != 0].tolist():
            del self._realigns[place]
        places[new] = self._count + np.arange(len(new))
        for number, realign in realigns.items():
            self._realigns[int(places[number])] = realign
            touched[number] = max(touched[number], *(one.hub_epoch for one in realign))
        self._count += len(new)
        for name, values in (
            ("high", identities.high),
            ("low", identities.low),
            ("touched", touched),
            ("table", tables),
        ):
            self._stored[name][places] = values
        self._write(places, rows)
        self._tally(touched, 1)
        self._link(places[new])

    def truncate(self, table: str, truncation: Truncation) -> None:
        """Store a committed truncate: the rows that it took are tombstones."""
        older = self._stored["epoch"][: self._count] < truncation.hub_epoch
        places = np.flatnonzero(self._of_table(table) & older)
        self._tally(self._stored["touched"][places], -1)
        rows = self.at(places).truncated(np.ones(len(places), dtype=np.bool_), truncation)
        self._write(places, rows)
        touched = np.maximum(self._stored["touched"][places], truncation.hub_epoch)
        self._stored["touched"][places] = touched
        self._tally(touched, 1)

    def advance(self, edge: int) -> None:
        """Forget the rows that nothing touched above the new edge."""
        for epoch in [epoch for epoch in self._by_epoch if epoch <= edge]:
            self._length -= self._by_epoch.pop(epoch)
        self.edge = max(self.edge, edge)
        if self._count > max(_LEAST, 2 * self._length):
            self._make_room(self._length)

    def shrink(self, size: int) -> None:
        """Forget the oldest hub epochs until no more than so many rows are left."""
        while len(self) > size:
            self.advance(min(self._by_epoch))

    # -- the table ---------------------------------------------------------------------------

    def _write(self, places: Ints, rows: RowColumns) -> None:
        for name, values in (
            ("epoch", rows.epoch),
            ("csn_high", rows.csn.high),
            ("csn_low", rows.csn.low),
            ("author", rows.author),
            ("flags", rows.flags),
        ):
            self._stored[name][places] = values

    def _number(self, table: str) -> int:
        return self._tables.setdefault(table, len(self._tables))

    def _tally(self, touched: Ints, sign: int) -> None:
        """Count rows that were touched in these epochs in (1), or out (-1)."""
        epochs, counts = np.unique(touched[touched > self.edge], return_counts=True)
        for epoch, count in zip(epochs.tolist(), counts.tolist(), strict=True):
            self._by_epoch[epoch] += sign * count
            self._length += sign * count
            if not self._by_epoch[epoch]:
                del self._by_epoch[epoch]

    def _find(self, identities: Identities) -> Ints:
        """The place of each row, also where it is forgotten; -1: it has none."""
        found = np.full(len(identities), _NONE, dtype=np.int64)
        mask, stored = len(self._slots) - 1, self._stored
        slot = self._slot_of(identities.high)
        asked = np.arange(len(identities))
        while len(asked):
            place = self._slots[slot].astype(np.int64)
            taken = place >= 0
            asked, slot, place = asked[taken], slot[taken], place[taken]
            same = stored["high"][place] == identities.high[asked]
            same &= stored["low"][place] == identities.low[asked]
            found[asked[same]] = place[same]
            asked, slot = asked[~same], (slot[~same] + 1) & mask
        return found

    def _slot_of(self, high: NDArray[np.uint64]) -> Ints:
        return (high & np.uint64(len(self._slots) - 1)).astype(np.int64)

    def _link(self, places: Ints) -> None:
        """Enter rows into the hash table that are not in it."""
        slot, mask = self._slot_of(self._stored["high"][places]), len(self._slots) - 1
        while len(places):
            free = self._slots[slot] < 0
            self._slots[slot[free]] = places[free]  # of several for one slot the last stays
            missed = self._slots[slot] != places
            places, slot = places[missed], (slot[missed] + 1) & mask

    def _have_room_for(self, more: int) -> None:
        if self._count + more > len(self._stored["high"]):
            self._make_room(3 * (self._length + more) // 2)

    def _make_room(self, rows: int) -> None:
        """Have room for so many rows, without those that are forgotten."""
        rows, before = max(_LEAST, rows), self._stored
        kept = np.flatnonzero(before["touched"][: self._count] > self.edge)
        blocked = np.array(list(self._realigns), dtype=np.int64)
        moved = np.searchsorted(kept, blocked)
        stays = np.append(kept, _NONE)[moved] == blocked
        realigns = zip(moved.tolist(), stays.tolist(), self._realigns.values(), strict=True)
        self._realigns = {place: one for place, is_kept, one in realigns if is_kept}
        self._stored = {name: np.zeros(rows, kind) for name, kind in _STORED.items()}
        for name, values in before.items():
            self._stored[name][: len(kept)] = values[kept]
        self._count = len(kept)
        self._slots = np.full(1 << (2 * rows - 1).bit_length(), _NONE, dtype=np.int32)
        self._link(np.arange(self._count))
