"""The checks of a demonstration: each reads the evidence and yields a line for each problem."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from streaming.core.conflict.judge import ConflictKind, Verdict
from streaming.demo.databases.replica_evidence import (
    JournaledBatch,
    JournaledWrite,
    Key,
    ReplicaEvidence,
    Typed,
)
from streaming.demo.replicas.collisions import INSERT_INSERT, UPDATE_DELETE, UPDATE_UPDATE
from streaming.demo.verdict.evidence import Evidence, LostPacket, Row
from streaming.demo.verdict.rule import rejected_by_journals

QUOTA = 20
"""With fewer conflicts of a kind the run proves nothing."""

KINDS = {
    INSERT_INSERT: (ConflictKind.INSERT_EXISTS,),
    UPDATE_UPDATE: (ConflictKind.UPDATE_ORIGIN_CHANGE,),
    UPDATE_DELETE: (ConflictKind.UPDATE_RECENTLY_DELETED, ConflictKind.DELETE_RECENTLY_UPDATED),
}


@dataclass(frozen=True, slots=True)
class CheckedClaim:
    """One claim and the problems that contradict it; it holds without any."""

    claim: str
    problems: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Return whether no problem contradicts it."""
        return not self.problems


Check = Callable[[Evidence], Iterator[str]]


def check_evidence(evidence: Evidence) -> tuple[CheckedClaim, ...]:
    """All findings, in the order in which they are shown."""
    own = LOST_ORIGIN if evidence.dead else RESTORED if evidence.restored else COLLIDED
    checks = ALWAYS | (LOST_PACKET if evidence.lost_packet else own)
    rows = sum(one.rows for one in evidence.compared.values())
    return tuple(
        CheckedClaim(claim.format(rows=rows), tuple(check(evidence)))
        for claim, check in checks.items()
    )


def same_rows(evidence: Evidence) -> Iterator[str]:
    """Every row of every replica that lives against the first one's, with types."""
    first, *others = evidence.survivors
    for other in others:
        for key in sorted(first.rows.keys() | other.rows.keys(), key=repr):
            one, two = first.rows.get(key), other.rows.get(key)
            if one != two:
                yield f"{_row(key)}: {first.name} has {_shown(one)}, {other.name} {_shown(two)}"


def nothing_refused(evidence: Evidence) -> Iterator[str]:
    """A database that refused an item differs from the others."""
    for replica in evidence.survivors:
        if replica.refused:
            yield f"{replica.name} refused {replica.refused} items, see its log"


def each_write_once(evidence: Evidence) -> Iterator[str]:
    """Journals against changelog and quarantine, in both directions."""
    judged = Counter(row["csn"] for row in evidence.judged)
    kept = evidence.known_csns - judged
    written = {w.change.csn: w for replica in evidence.replicas for w in evidence.arrived(replica)}
    for csn, write in written.items():
        places = judged[csn] + kept[csn]
        if places != 1:
            yield (
                f"{_change(evidence, write)} is {judged[csn]} times in the changelog and"
                f" {kept[csn]} times in quarantine, not once in one of them"
            )
    for csn in (judged | kept).keys() - written.keys():
        yield f"change {csn} is known to the hub, but no journal has it"


def as_written(evidence: Evidence) -> Iterator[str]:
    """What was judged equals what was written."""
    fields = ("epoch", "table", "key", "op", "before", "after", "prim_csn", "opno")
    for replica in evidence.replicas:
        for write in replica.all_writes:
            row = evidence.verdicts.get(write.change.csn)
            for field in fields if row else ():
                written, found = getattr(write.change, field), (row or {})[field]
                if written != found:
                    yield f"{_change(evidence, write)}: {field} is {found} in the changelog"


def losers_recorded(evidence: Evidence) -> Iterator[str]:
    """Rejected changes against `conflicts`, in both directions."""
    recorded = Counter(row["loser_csn"] for row in evidence.conflicts)
    rejected = {row["csn"] for row in evidence.judged if row["verdict"] == Verdict.REJECTED}
    for csn in sorted(rejected):
        if recorded[csn] != 1:
            yield f"change {csn} lost, but is {recorded[csn]} times in conflicts, not once"
    for csn in sorted(recorded.keys() - rejected):
        yield f"change {csn} is in conflicts, but did not lose by the changelog"


def losers_by_rule(evidence: Evidence) -> Iterator[str]:
    """The losers by what each replica had applied when it wrote, independent of the hub."""
    expected = rejected_by_journals(evidence)
    for row in evidence.judged:
        csn, lost = row["csn"], row["verdict"] == Verdict.REJECTED
        if lost != (csn in expected):
            yield f"change {csn} {'lost' if lost else 'won'}, by its replica's journal it must not"


def compared(evidence: Evidence) -> Iterator[str]:
    """What the comparison beside the hub found last, by the rows that the databases have."""
    for replica in evidence.survivors:
        found, has = evidence.compared.get(replica.name), len(replica.rows)
        if found is None:
            yield f"{replica.name} was never compared with the hub"
        elif found.differing or found.rows != has:
            yield (
                f"{replica.name} has {has} rows: {found.rows} were compared with the hub's, and"
                f" {found.differing} differed"
            )


def _last_accepted(evidence: Evidence) -> dict[Key, Row]:
    return {
        evidence.key(row["table"], row["key"]): row
        for row in evidence.judged
        if row["verdict"] == Verdict.ACCEPTED
    }


def last_images(evidence: Evidence) -> Iterator[str]:
    """The last accepted image of each row against the databases."""
    last = _last_accepted(evidence)
    for replica in evidence.survivors:
        for key in replica.rows.keys() - last.keys():
            yield f"{_row(key)} is at {replica.name}, but no change of it was ever accepted"
        for key, row in last.items():
            image = None if row["image"] is None else evidence.image(row["table"], row["image"])
            if replica.rows.get(key) != image:
                yield (
                    f"{_row(key)}: {replica.name} has {_shown(replica.rows.get(key))}, the last"
                    f" accepted change {row['csn']} made it {_shown(image)}"
                )


def collided(evidence: Evidence) -> Iterator[str]:
    """Enough conflicts of each kind."""
    for kind, count in conflict_counts(evidence).items():
        if count < QUOTA:
            yield f"{count} conflicts of kind {kind}, at least {QUOTA} are required"


def retried(evidence: Evidence) -> Iterator[str]:
    """At least one loser wrote the row again after it had the winner's, and won."""
    if not winning_retries(evidence):
        yield "no change that lost was written again and accepted after its refresh"


def loss_found(evidence: Evidence) -> Iterator[str]:
    """Enough was lost, its agent reported it, and the file was written before that."""
    for replica in evidence.restored:
        lost, loss = len(replica.lost_writes), evidence.losses.get(replica.rid)
        if lost < QUOTA:
            yield f"{replica.name} lost {lost} writes, at least {QUOTA} are required"
        if loss is None:
            yield f"no hello of {replica.name} reported a loss"
        elif all(write.at_ms >= loss.at_ms for write in replica.new_writes):
            yield f"nothing was written to the file of {replica.name} before its agent started"


def loss_given_back(evidence: Evidence) -> Iterator[str]:
    """The row of each lost write that stands, in the file that was restored."""
    last = _last_accepted(evidence)
    for replica in evidence.restored:
        lost = {write.change.csn for write in replica.lost_writes}
        for key, row in last.items():
            image = None if row["image"] is None else evidence.image(row["table"], row["image"])
            if row["csn"] in lost and replica.rows.get(key) != image:
                yield (
                    f"{_row(key)}: {replica.name} has {_shown(replica.rows.get(key))}, its own"
                    f" lost change {row['csn']} made it {_shown(image)}"
                )


def died(evidence: Evidence) -> Iterator[str]:
    """The dead one's journal goes on beyond what arrived, and a survivor lacked enough of that."""
    if evidence.dead is None or evidence.retirement is None:
        return
    arrived, lacking = evidence.arrived(evidence.dead), evidence.retirement.lacking
    if len(arrived) == len(evidence.dead.all_writes):
        yield f"every write of {evidence.dead.name} arrived"
    if max(lacking.values(), default=0) < QUOTA:
        yield f"nobody lacked {QUOTA} of {len(arrived)} changes of {evidence.dead.name}"


def levelled(evidence: Evidence) -> Iterator[str]:
    """The RUV that each survivor applied last against the dead one's changes that were judged."""
    if evidence.dead is None:
        return
    rid = evidence.dead.rid
    largest = max((row["csn"] for row in evidence.judged if row["rid"] == rid), default=None)
    for replica in evidence.survivors:
        has = replica.applied[-1].ruv.max_of(rid) if replica.applied else None
        if has != largest:
            name = evidence.dead.name
            yield f"{replica.name} has the changes of {name} up to {has}, not {largest}"


def waited(evidence: Evidence) -> Iterator[str]:
    """The journal of the replica between the loss and the moment when it was asked for again."""
    lost = evidence.lost_packet
    if lost is None:
        return
    for batch in _applied_at(evidence, lost):
        is_between = lost.at_ms < batch.at_ms < lost.asked_ms
        if is_between and batch.hub_epoch > lost.first_prev:
            yield f"hub epoch {batch.hub_epoch} was applied, though what comes before it was lost"
    if not lost.waiting:
        yield "no packet waited behind the one that was lost"


def came_again(evidence: Evidence) -> Iterator[str]:
    """The journal of the replica behind that moment."""
    lost = evidence.lost_packet
    if lost is None:
        return
    later = [one for one in _applied_at(evidence, lost) if one.at_ms >= lost.asked_ms]
    if not any(one.hub_epoch >= lost.last_hub_epoch for one in later):
        yield f"{lost.replica} applied nothing of hub epoch {lost.last_hub_epoch} or behind it"


def _applied_at(evidence: Evidence, lost: LostPacket) -> tuple[JournaledBatch, ...]:
    return next(one.applied for one in evidence.replicas if one.name == lost.replica)


ALWAYS: dict[str, Check] = {
    "the databases hold the same rows": same_rows,
    "no database refused anything": nothing_refused,
    "every write is once in changelog or quarantine, and nothing else": each_write_once,
    "every write was judged as it was written": as_written,
    "every loser is once in conflicts, and nothing else": losers_recorded,
    "the losers are those that had not applied the row, by their own journals": losers_by_rule,
    "the last accepted image of every row is the row in the databases": last_images,
    "the hub compared {rows} rows of the databases with its own, and none differed": compared,
}
"""Claim -> its check, of every demonstration; `rows`: how many were compared."""

COLLIDED: dict[str, Check] = {
    f"at least {QUOTA} conflicts of each kind": collided,
    "a change that lost won when it was written again after its refresh": retried,
}
"""The same, where replicas wrote the same rows at once."""

RESTORED: dict[str, Check] = {
    f"a file was restored from a backup, and its agent found {QUOTA} lost writes": loss_found,
    "each lost write that stands is in the file again": loss_given_back,
}
"""The same, where a replica was restored from a backup."""


LOST_ORIGIN: dict[str, Check] = {
    f"a replica died, some writes never arrived, one lacked {QUOTA} that did": died,
    "each survivor has every change of it that the hub has": levelled,
}
"""The same, where a replica died for ever."""


LOST_PACKET: dict[str, Check] = {
    "a packet was lost, and nothing behind it was applied before it was sent again": waited,
    "what was lost came again": came_again,
}
"""The same, where a replica is fed by packets of which one was lost."""


def conflict_counts(evidence: Evidence) -> dict[str, int]:
    """The conflicts whose loser was rejected, by a user's names of the kinds."""
    kinds = Counter(row["kind"] for row in evidence.conflicts if _lost(evidence, row["loser_csn"]))
    return {name: sum(kinds[kind] for kind in of) for name, of in KINDS.items()}


def _lost(evidence: Evidence, csn: str) -> bool:
    return evidence.verdicts.get(csn, {}).get("verdict") == Verdict.REJECTED


def winning_retries(evidence: Evidence) -> list[tuple[str, str]]:
    """(the change that lost, the next one of its replica on its row, which won)."""
    refreshed = {(r["to"], r["table"], r["key"], r["hub_epoch"]) for r in evidence.refreshes}
    return [
        (lost.change.csn, again.change.csn)
        for replica in evidence.replicas
        for lost, again in _in_pairs(replica)
        if _lost(evidence, lost.change.csn)
        and evidence.verdicts.get(again.change.csn, {}).get("verdict") == Verdict.ACCEPTED
        and _was_refreshed(evidence, replica, lost, again, refreshed)
    ]


def _in_pairs(replica: ReplicaEvidence) -> Iterator[tuple[JournaledWrite, JournaledWrite]]:
    """Each write with the next one on the same row."""
    before = dict[tuple[str, str], JournaledWrite]()
    for write in replica.writes:
        if write.change.row in before:
            yield before[write.change.row], write
        before[write.change.row] = write


def _was_refreshed(
    evidence: Evidence,
    replica: ReplicaEvidence,
    lost: JournaledWrite,
    again: JournaledWrite,
    refreshed: set[tuple[int, str, str, int]],
) -> bool:
    """Return whether the refresh for the loser was applied before it was written again."""
    hub_epoch = evidence.verdicts[lost.change.csn]["hub_epoch"]
    return (replica.rid, *lost.change.row, hub_epoch) in refreshed and any(
        lost.place < applied.place < again.place and applied.hub_epoch == hub_epoch
        for applied in replica.applied
    )


def _change(evidence: Evidence, write: JournaledWrite) -> str:
    change = write.change
    name = evidence.names[change.rid]
    return f"change {change.csn} of {name} ({change.op} {change.table} {change.key})"


def _row(key: Key) -> str:
    return f"{key[0]} {', '.join(map(repr, key[1]))}"


def _shown(row: Typed | None) -> str:
    return "no row" if row is None else f"({', '.join(repr(value) for _, value in row)})"
