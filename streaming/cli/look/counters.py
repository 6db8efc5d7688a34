"""The conflict counters of `status`: by replica and table, and what is still in progress."""

from collections.abc import Sequence

from streaming.facts.status.conflict_counters import ConflictCounters
from streaming.facts.status.replicas import ReplicaSummary
from streaming.terminal.output import write_line, write_table


def handling(replicas: Sequence[ReplicaSummary]) -> str:
    """The replicas with conflict handling in progress, as text; empty if there are none."""
    names = [str(one.name or one.rid) for one in replicas if one.conflict_handling]
    return f"conflict handling in progress: {', '.join(names)}" if names else ""


def show(replicas: Sequence[ReplicaSummary], counters: Sequence[ConflictCounters]) -> None:
    """The conflict epochs of each replica, and the counters if there are any."""
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


def _progress(one: ReplicaSummary) -> str | None:
    if not one.conflict_handling:
        return None
    return f"in progress until it has reflected {one.last_conflict_epoch}"
