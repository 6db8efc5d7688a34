"""The rule of conflicts, computed from the agents' journals instead of the hub's state.

Deliberately a second, simple implementation: a replica's journal records what it had applied when
it wrote, so the losers can be computed without trusting the hub.
"""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

from streaming.demo.databases.replica_evidence import JournaledWrite, ReplicaEvidence
from streaming.demo.verdict.evidence import Evidence, ReportedHello


def rejected_by_journals(evidence: Evidence) -> set[str]:
    """The CSNs of all changes made without knowledge of the row that they were judged against."""
    seen = {
        csn: covers
        for replica in evidence.replicas
        for csn, covers in _seen_by(replica, evidence.hellos.get(replica.rid, ())).items()
    }
    floors = _floors(evidence)
    rows = dict[tuple[str, str], tuple[int, int]]()  # row -> its author and its hub epoch
    refreshed = dict[tuple[str, str, int], int]()  # row and replica -> hub epoch of the refresh
    rejected = set[str]()
    for row in evidence.changelog:
        key, rid = (row["table"], row["key"]), row["rid"]
        if row["kind"] == "refresh":
            refreshed[*key, row["to"]] = row["hub_epoch"]
            continue
        author, epoch = rows.get(key, (rid, 0))
        mre = seen.get(row["csn"], 0)
        blocked = max(refreshed.get((*key, rid), 0), floors.get(row["csn"], 0))
        if (author != rid and epoch > mre) or blocked > mre:
            rejected.add(row["csn"])
            refreshed[*key, rid] = row["hub_epoch"]
        else:
            rows[key] = (rid, row["hub_epoch"])
    return rejected


def _floors(evidence: Evidence) -> dict[str, int]:
    """CSN -> the hub epoch that its replica had to apply first, because its file was restored."""
    return {
        write.change.csn: evidence.losses[replica.rid].hub_epoch
        for replica in evidence.restored
        if replica.rid in evidence.losses
        for write in replica.new_writes
    }


def _seen_by(replica: ReplicaEvidence, hellos: Sequence[ReportedHello]) -> dict[str, int]:
    """CSN -> the hub epoch up to which the replica had applied everything when it wrote.

    What it applied last before its agent ended is in the next hello, and not in its journal.
    """
    past = _seen_by(replica.past, hellos) if replica.past else {}
    places = [applied.place for applied in replica.applied]
    covers = [0, *accumulate((applied.covers for applied in replica.applied), max)]

    def seen_by(write: JournaledWrite) -> int:
        reported = (hello.covers for hello in hellos if hello.epoch < write.change.epoch)
        return max([covers[bisect_left(places, write.place)], *reported])

    return past | {write.change.csn: seen_by(write) for write in replica.new_writes}
