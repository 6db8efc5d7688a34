"""The rule of conflicts once more, from the agents' journals instead of the hub's memory.

Deliberately written a second time and as plainly as possible: what a replica had applied when it
wrote stands in its own journal, so who must lose can be worked out without believing the hub.
"""

from bisect import bisect_left
from itertools import accumulate

from streaming.demo.evidence import Evidence, Replica


def rejected_by_journals(evidence: Evidence) -> set[str]:
    """The CSNs of all changes that had not seen the row that they met, in hub order."""
    seen = {
        csn: covers for replica in evidence.replicas for csn, covers in _seen_by(replica).items()
    }
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
        if (author != rid and epoch > mre) or refreshed.get((*key, rid), 0) > mre:
            rejected.add(row["csn"])
            refreshed[*key, rid] = row["hub_epoch"]
        else:
            rows[key] = (rid, row["hub_epoch"])
    return rejected


def _seen_by(replica: Replica) -> dict[str, int]:
    """CSN -> the hub epoch up to which the replica had applied everything when it wrote."""
    places = [applied.place for applied in replica.applied]
    covers = [0, *accumulate((applied.covers for applied in replica.applied), max)]
    return {w.change.csn: covers[bisect_left(places, w.place)] for w in replica.writes}
