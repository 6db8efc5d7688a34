"""Conflict counters per replica and table, with the names that NDB uses."""

from collections import Counter
from collections.abc import Iterable

from streaming.core.batch.sending import LogEntry, RangeRefresh, Refresh
from streaming.core.conflict.judge import ConflictKind, Judged
from streaming.core.counts.counter_keys import CountKey, ReplicaKey
from streaming.core.model.function import ConflictRule
from streaming.core.model.row import deletes_twice
from streaming.core.state.topology import Topology

FUNCTION = "conflict_fn_"
"""Followed by the rule in lower case: rows found in conflict under it (Ndb_conflict_fn_*)."""
ROW_CONFLICT = "conflict_trans_row_conflict"
"""Rows in conflict themselves under EPOCH_TRANS."""
ROW_REJECT = "conflict_trans_row_reject"
"""Rows rejected with their transactions, those included."""
TRANSACTION_REJECT = "conflict_trans_reject"
"""Transactions rejected whole."""
CONFLICT_COMMIT = "conflict_trans_conflict_commit"
"""Batches in which a transaction was rejected whole."""
DELETE_DELETE = "conflict_epoch_delete_delete"
"""Concurrent deletes of a deleted row."""
REFRESH = "conflict_refresh"
"""Rows sent to correct a replica."""


def counted(entries: Iterable[LogEntry], topology: Topology) -> Counter[CountKey]:
    """Return the counters of one batch, by key. Changes accepted in bulk may be left out."""
    found = Counter[CountKey]()
    transactions: dict[tuple[str, int], str] = {}
    for entry in entries:
        if isinstance(entry, RangeRefresh):
            found[ReplicaKey(REFRESH, entry.to, entry.range.table)] += len(entry.rows)
            continue
        if isinstance(entry, Refresh):
            found[ReplicaKey(REFRESH, entry.to, entry.table)] += 1
            continue
        change = entry.arrived.change
        known = topology.tables.get(change.table)
        for name in _names(entry, known.function.rule) if known else ():
            found[ReplicaKey(name, change.rid, change.table)] += 1
        if entry.conflict is ConflictKind.TRANSACTION:
            transactions.setdefault((change.prim_csn or change.csn, change.rid), change.table)
    for (_, rid), table in transactions.items():
        found[ReplicaKey(TRANSACTION_REJECT, rid, table)] += 1
    first = {rid: table for (_, rid), table in reversed(transactions.items())}
    for rid, table in first.items():
        found[ReplicaKey(CONFLICT_COMMIT, rid, table)] = 1
    return found


def in_conflict(entries: Iterable[LogEntry]) -> frozenset[int]:
    """Return the replicas that wrote a change in conflict."""
    return frozenset(
        e.arrived.change.rid for e in entries if isinstance(e, Judged) and e.cause is not None
    )


def _names(judged: Judged, rule: ConflictRule) -> list[str]:
    twice = deletes_twice(judged.arrived.change, judged.before)
    names = []
    if judged.concurrent and (judged.conflict is not None or twice):
        names.append(FUNCTION + rule.value.lower())
    if judged.concurrent and twice:
        names.append(DELETE_DELETE)
    if judged.conflict is ConflictKind.TRANSACTION:
        names.append(ROW_REJECT)
        if judged.concurrent and rule is ConflictRule.EPOCH_TRANS:
            names.append(ROW_CONFLICT)
    return names
