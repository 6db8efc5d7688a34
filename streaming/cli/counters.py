"""The conflict counters of `status`: what happened to whose changes, and what is still open."""

from collections.abc import Sequence

from streaming.cli.output import write_line, write_table
from streaming.facts.conflict_counters import ConflictCounters
from streaming.facts.status import ReplicaStatus


def handling(replicas: Sequence[ReplicaStatus]) -> str:
    """Whose conflicts are being handled, in words; empty when nobody's are."""
    at_work = [str(one.name or one.rid) for one in replicas if one.conflict_handling]
    return f"conflict handling in progress: {', '.join(at_work)}" if at_work else ""


def show(replicas: Sequence[ReplicaStatus], counters: Sequence[ConflictCounters]) -> None:
    """Where each replica stands with its conflicts, and the counters if there are any."""
    write_table(
        ("replica", "MRE", "last conflict epoch", "last stable epoch", "conflict handling"),
        (
            (
                one.name or one.rid,
                one.mre,
                one.last_conflict_epoch,
                one.last_stable_epoch,
                _progress(one),
            )
            for one in replicas
        ),
    )
    if not counters:
        return
    write_line()
    write_table(
        ("replica", "table", "counter", "total"),
        (
            (of.replica, of.table, name, count)
            for of in counters
            for name, count in of.counters.items()
        ),
    )


def _progress(one: ReplicaStatus) -> str | None:
    if not one.conflict_handling:
        return None
    return f"in progress until it has reflected {one.last_conflict_epoch}"
