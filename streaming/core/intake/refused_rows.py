"""The refused rows during one batch: refused, refused again, sent again, applied at last."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from streaming.core.model.change import RowKey
from streaming.core.model.refusal import Lacking, Refusal, Refusals, sent_last
from streaming.core.model.row import RowState
from streaming.core.model.table import OnRefused, Table
from streaming.core.records.images import row_named
from streaming.core.records.members import RecordFault
from streaming.core.records.record import Reason, ReceivedRecord, Refused
from streaming.core.state.topology import Topology
from streaming.core.tracking.ranges import KeyOrder, KeyRange

NONE_REFUSED: Mapping[RowKey, Refusal] = {}
NONE_LACKING: Lacking = {}


SENT_AGAIN_AT_ONCE = 1_000
"""How many refused rows one batch sends again by itself at most."""


class Ending(StrEnum):
    """How the refusal of a row ended."""

    APPLIED = "applied"
    """the replica has taken a later version of the row"""
    REPLACED = "replaced"
    """the database that refused it is gone; the next one is sent the row anew"""


def refused_row(refused: Refused, sent: int, tables: Mapping[str, Table]) -> RowKey | RecordFault:
    """The row of a `refused`, or why it is none; `sent`: what the session was sent up to."""
    if refused.hub_epoch > sent:
        detail = f"refused of hub epoch {refused.hub_epoch}; this session was sent {sent}"
        return RecordFault(Reason.SESSION, detail)
    row = row_named(refused.table, refused.key, tables)
    if row is not None:
        return row
    reason = Reason.KEY if refused.table in tables else Reason.TABLE
    detail = f"refused of table {refused.table}, key {refused.key}: there is no such row"
    return RecordFault(reason, detail)


def lacks(lacking: Lacking, topology: Topology, rid: int, table: str) -> list[str]:
    """The columns of a table that a replica is sent and that its database lacks, by name."""
    names = lacking.get(rid, frozenset())
    return sorted(one for one in topology.sent_columns(rid, table) if f"{table}.{one}" in names)


def due(
    refusals: Refusals, topology: Topology, at_ms: int, lacking: Lacking = NONE_LACKING
) -> list[Refusal]:
    """The rows that are sent again now by themselves, those first that wait longest.

    Those of tables that say so, and those that lacked a column once their database lacks none of
    what it is sent of the table.
    """
    if not refusals:
        return []
    tables = topology.tables.values()
    again = {table.name for table in tables if table.on_refused is OnRefused.REFRESH}
    found = list[Refusal]()
    for rid, mine in refusals.items():
        sent = {table.name for table in tables if topology.sees(rid, table.name)}
        complete = {name for name in sent if not lacks(lacking, topology, rid, name)}
        found += [
            one
            for one in mine.values()
            if one.row[0] in (complete if one.lacks_column else sent & again)
            and one.is_due(at_ms, topology.refused_again_ms)
        ]
    found.sort(key=lambda one: (one.at_ms, one.rid, one.row))
    return found[:SENT_AGAIN_AT_ONCE]


@dataclass(slots=True)
class RefusedRows:
    """One batch's working copy of the refused rows; what does not change is not copied.

    `at_ms`: the clock of the batch. `fresh`: refused in this batch. `ended`: refused no more.
    """

    before: Refusals
    at_ms: int = 0
    fresh: dict[tuple[int, RowKey], None] = field(default_factory=dict)
    ended: list[tuple[Refusal, Ending]] = field(default_factory=list)
    after: dict[int, Mapping[RowKey, Refusal]] = field(init=False)
    _copies: dict[int, dict[RowKey, Refusal]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.after = dict(self.before)

    def of(self, rid: int) -> Mapping[RowKey, Refusal]:
        """The rows that this replica refused, as taken so far."""
        return self.after.get(rid, NONE_REFUSED)

    def named(self, name: str) -> list[Refusal]:
        """The refusals that an operator names: `r<rid>-<offset>` is one, `r<rid>` a replica's."""
        rid = name.removeprefix("r").partition("-")[0]
        mine = self.of(int(rid)).values() if rid.isdigit() else ()
        return [one for one in mine if name in (one.id, f"r{one.rid}")]

    # -- records --------------------------------------------------------------------------------

    def refuse(self, received: ReceivedRecord, refused: Refused, row: RowKey) -> bool:
        """Take a refusal; False: it is a repeat of one that is known."""
        known = self.of(received.rid).get(row)
        if known is not None and refused.hub_epoch <= known.hub_epoch:
            return False
        found = Refusal(
            known.id if known else f"r{received.rid}-{received.offset}",
            received.rid,
            row,
            refused.hub_epoch,
            refused.csn,
            refused.code,
            refused.text,
            known.offset if known else received.offset,
            received.time_ms,
            known.attempts + 1 if known else 1,
            known.sent_epoch if known and known.sent_epoch > refused.hub_epoch else 0,
            self.at_ms,
        )
        self._put(found)
        self.fresh[received.rid, row] = None
        return True

    def reflect(self, rid: int, covers: int) -> None:
        """Close what was sent again up to here: the replica would have refused it before."""
        for one in list(self.of(rid).values()):
            if 0 < one.sent_epoch <= covers:
                self._close(one, Ending.APPLIED)

    def after_hello(self, rid: int, covers: int) -> None:
        """Take the position of a hello; what a database refused that was restored is sent anew."""
        self.reflect(rid, covers)
        for one in list(self.of(rid).values()):
            if one.hub_epoch > covers:
                self._close(one, Ending.REPLACED)

    # -- the end of the batch -------------------------------------------------------------------

    def to_resolve(self, changed: Collection[RowKey]) -> list[Refusal]:
        """The refusals that may have been sent again: new ones, and those of changed rows."""
        found = {key: self.after[key[0]][key[1]] for key in self.fresh if key[1] in self.of(key[0])}
        for rid, mine in self.after.items():
            few, many = (mine, changed) if len(mine) < len(changed) else (changed, mine)
            found |= {(rid, row): mine[row] for row in few if row in many}
        return list(found.values())

    def send_range(self, rid: int, keys: KeyRange, order: KeyOrder, hub_epoch: int) -> None:
        """Note that a range was sent to a replica: what it refused of that is sent again."""
        for one in list(self.of(rid).values()):
            is_in = one.row[0] == keys.table and keys.holds(one.row[1], order)
            if is_in and one.hub_epoch < hub_epoch:
                self._put(replace(one, sent_epoch=hub_epoch, at_ms=self.at_ms))

    def resolve(
        self,
        refusals: Collection[Refusal],
        rows: Mapping[RowKey, RowState],
        sends_all: Callable[[int, str], bool],
        acked: Mapping[int, int],
    ) -> None:
        """Note which of these are sent again, by the rows as they stand after the batch.

        `sends_all`: whether a replica is sent every change of a table; else refreshes alone count.
        `acked`: rid -> the covers that it acknowledged last.
        """
        for one in refusals:
            state = rows.get(one.row, RowState())
            last = sent_last(state, one.rid, is_seen=sends_all(one.rid, one.row[0]))
            if last > max(one.hub_epoch, one.sent_epoch):
                self._put(replace(one, sent_epoch=last, at_ms=self.at_ms))
                if last <= acked.get(one.rid, 0):
                    self._close(self.after[one.rid][one.row], Ending.APPLIED)

    def for_judging(self) -> Refusals:
        """Every refusal that may hide a row from a change of this batch.

        Those that ended in it included: a change may stand before the record that ended one. What
        is written behind that record is sent, or reflected, later than the refusal anyway.
        """
        if not self.ended:
            return self.after
        found = {rid: dict(mine) for rid, mine in self.after.items()}
        for one, _ in self.ended:
            found.setdefault(one.rid, {}).setdefault(one.row, one)
        return found

    def changed(self) -> Iterator[Refusal]:
        """The open refusals that differ from the state before the batch."""
        for rid, mine in self.after.items():
            old = self.before.get(rid, NONE_REFUSED)
            if mine is not old:
                yield from (one for row, one in mine.items() if old.get(row) != one)

    def _put(self, refusal: Refusal) -> None:
        self._copy(refusal.rid)[refusal.row] = refusal

    def _close(self, refusal: Refusal, ending: Ending) -> None:
        self.ended.append((refusal, ending))
        del self._copy(refusal.rid)[refusal.row]

    def _copy(self, rid: int) -> dict[RowKey, Refusal]:
        """The rows of a replica, to be changed; copied once."""
        if rid not in self._copies:
            self._copies[rid] = dict(self.of(rid))
            self.after[rid] = self._copies[rid]
        return self._copies[rid]
