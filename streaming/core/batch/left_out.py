"""The rows of a range that it leaves to its consumer, which wrote there what nobody else can take.

See docs/protocol.md, Pages and ranges.
"""

from collections.abc import Collection, Iterable, Mapping

from streaming.core.model.change import RowKey
from streaming.core.model.row import RowState
from streaming.core.model.table import Table
from streaming.core.records.arrival import Quarantined
from streaming.core.records.images import row_named
from streaming.core.state.replica_state import ReplicaState
from streaming.core.tracking.ranges import KeyRange, key_order


def is_left_out(row: RowState, consumer: ReplicaState, covers: int) -> bool:
    """Return whether a range leaves a row alone of which its consumer has an uncarried write.

    `row`: as the hub has it; `covers`: what the consumer had before the resync. The write stays if
    its writer had seen that row. Otherwise it would write the row again as if it had, so it is
    sent what it has not seen, as it is when it is not away.
    """
    if not row.hub_epoch:
        return True
    floors = (floor.hub_epoch for floor in consumer.floors)
    refreshes = (r.hub_epoch for r in row.realign if r.rid == consumer.rid and not r.is_of_range)
    is_seen = row.author == consumer.rid or row.hub_epoch <= covers
    return is_seen and max((*floors, *refreshes), default=0) <= covers


def kept_in(keys: KeyRange, left: Collection[RowKey], table: Table) -> list[str]:
    """Return the keys of the rows left out that a range of this table holds, in their order."""
    order = key_order(table)
    return sorted((k for of, k in left if of == keys.table and keys.holds(k, order)), key=order)


def uncarried_rows(
    quarantined: Iterable[Quarantined], tables: Mapping[str, Table]
) -> set[tuple[int, RowKey]]:
    """Return (rid, row) of the records in quarantine that are uncarried and name a row."""
    found = set[tuple[int, RowKey]]()
    for one in quarantined:
        if one.reason.is_uncarried and one.change is not None:
            row = row_named(one.change.table, one.change.key, tables)
            if row is not None:
                found.add((one.rid, row))
    return found
