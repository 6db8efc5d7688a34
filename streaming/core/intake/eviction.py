"""Which open changes stay in memory when a replica has many: of each transaction a few.

A transaction becomes eligible by its smallest and largest CSN in each list and by its largest opno,
and it holds the window back by its smallest MRE: the changes that have these stay, without their
images. Whole transactions that wait one behind the other become eligible together: they are merged.
Table `pending` has all of them.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from streaming.core.model.change import RowKey
from streaming.core.model.row import Arrived
from streaming.core.state.open_transactions import EndedTransaction, Evicted, OpenTransactions
from streaming.core.state.pending import Context, ListKey
from streaming.core.state.replica_state import ReplicaState


def evict(
    opened: OpenTransactions, replicas: Mapping[int, ReplicaState], pending_changes: int
) -> None:
    """Evict, of each replica with at least so many open changes in memory, all that can be.

    `pending` must have them. What is in memory afterwards is up to four changes of an uncommitted
    transaction (per list two, and two more), and three of what waits in one piece.
    """
    held = Counter[int]()
    for (_, rid), entries in opened.lists.by_list.items():
        held[rid] += len(entries)
    for rid in (rid for rid, count in held.items() if count >= pending_changes):
        for context in [context for context in opened.lists.members if context[1] == rid]:
            _thin(opened, context)
        for key in [key for key in opened.lists.by_list if key[1] == rid]:
            _merge_waiting(opened, key, replicas[rid].opno)


def restore(
    opened: OpenTransactions, context: Context, facts: Iterable[tuple[Arrived, ListKey]]
) -> None:
    """Bring all changes of an evicted transaction back to memory, without images."""
    was_merged = opened.evicted[context].merged
    if was_merged:
        opened.lists.remove(context)
        del opened.evicted[context]
    for arrived, key in facts:
        change = arrived.change
        own = (change.prim_csn or change.csn, context[1]) if was_merged else context
        if change.csn not in opened.lists.members.get(own, {}):
            opened.lists.insert(change.csn, key, own)
        opened.changes.setdefault(change.csn, arrived)
        opened.evicted[own] = Evicted(0)
        if was_merged:
            opened.lists.commit(own)


def restore_ended(opened: OpenTransactions, context: Context, rows: Iterable[RowKey]) -> None:
    """Bring the rows of an ended transaction back to memory."""
    reason = opened.ended[context].reason
    opened.ended[context] = EndedTransaction(reason, tuple(dict.fromkeys(rows)))


def _thin(opened: OpenTransactions, context: Context) -> None:
    """Keep the few changes by which a transaction is decided, without images."""
    members, evicted = opened.lists.members[context], opened.evicted.get(context, Evicted(0))
    if evicted.merged:
        return
    kept = _deciding(opened, members)
    _drop(opened, context, members.keys() - kept)
    for csn in kept:
        opened.changes[csn] = _without_images(opened.changes[csn])
    opened.evicted[context] = replace(evicted, absent=evicted.absent + len(members) - len(kept))


def _deciding(opened: OpenTransactions, members: Mapping[str, ListKey]) -> set[str]:
    """Of these changes the first and last of each list, the largest opno, and the smallest MRE."""
    ends: dict[ListKey, list[str]] = {}
    for csn, key in members.items():
        first, last = ends.setdefault(key, [csn, csn])
        ends[key] = [min(first, csn), max(last, csn)]
    opno = max(members, key=lambda csn: (opened.changes[csn].change.opno or 0, csn))
    mre = min(members, key=lambda csn: (opened.changes[csn].mre, csn))
    return {opno, mre}.union(*ends.values())


def _drop(opened: OpenTransactions, context: Context, csns: Collection[str]) -> None:
    """Take changes of a transaction out of memory; `pending` has them."""
    if not csns:
        return
    gone = set(csns)
    for csn in gone:
        del opened.changes[csn]
    members = opened.lists.members[context]
    for key in {members[csn] for csn in gone}:
        entries = opened.lists.by_list[key]
        opened.lists.by_list[key] = [entry for entry in entries if entry[0] not in gone]
    opened.lists.members[context] = {c: key for c, key in members.items() if c not in gone}
    known = opened.on_disk.get(context[1], "")
    opened.on_disk[context[1]] = max([known, *gone])


def _without_images(arrived: Arrived) -> Arrived:
    return arrived._replace(change=arrived.change._replace(before=None, after=None))


def _merge_waiting(opened: OpenTransactions, key: ListKey, opno: int) -> None:
    """Merge what waits in one piece; every opno up to this one is filled.

    Nothing in between may hold back a part of it only: no other transaction begins there, and
    its own ones do not overlap.
    """
    groups: list[list[Context]] = [[]]
    last = ""
    for first, context in _beginnings(opened, key):
        if first < last:  # the one before overlaps this one
            before = groups[-1].pop()
            groups += [[before], []]
        if _is_mergeable(opened, context, opno):
            groups[-1].append(context)
            last = max(opened.lists.members[context])
        else:
            groups.append([])
            last = ""
    for group in groups:
        if len(group) > 1:
            _merge(opened, key, group)


def _beginnings(opened: OpenTransactions, key: ListKey) -> list[tuple[str, Context]]:
    """The transactions in this list by their smallest CSN there."""
    found: dict[Context, str] = {}
    for csn, context in opened.lists.by_list[key]:
        found.setdefault(context, csn)
    return [(csn, context) for context, csn in found.items()]


def _is_mergeable(opened: OpenTransactions, context: Context, opno: int) -> bool:
    """Return whether a transaction only waits for what is below it in one list."""
    members = opened.lists.members[context]
    filled = all((opened.changes[csn].change.opno or 0) <= opno for csn in members)
    return context in opened.lists.committed and len(set(members.values())) == 1 and filled


def _merge(opened: OpenTransactions, key: ListKey, group: list[Context]) -> None:
    """Make one of several evicted transactions, under the name of the last."""
    csns = [csn for context in group for csn in opened.lists.members[context]]
    absent = sum(opened.evicted[context].absent for context in group)
    for context in group:
        opened.lists.members.pop(context)
        opened.lists.committed.discard(context)
        del opened.evicted[context]
    name, own = group[-1], set(csns)
    entries = opened.lists.by_list[key]
    opened.lists.by_list[key] = [(c, name if c in own else context) for c, context in entries]
    opened.lists.members[name] = dict.fromkeys(csns, key)
    opened.lists.committed.add(name)
    kept = _deciding(opened, opened.lists.members[name])
    _drop(opened, name, own - kept)
    opened.evicted[name] = Evicted(absent + len(own) - len(kept), merged=True)
