"""The conflict counters of `status`: what happened to whose changes, and what is still open."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from streaming.cli.output import write_line, write_table
from streaming.core.conflict.counters import split_counter
from streaming.core.model.state import ReplicaState


def plain(totals: Mapping[str, int]) -> dict[str, int]:
    """The totals that are not counted per replica and table."""
    return {name: count for name, count in totals.items() if split_counter(name) is None}


def counter_facts(totals: Mapping[str, int], names: Mapping[int, str]) -> list[dict[str, Any]]:
    """Counter by counter of each replica and table that has any, in order of rid and table."""
    split = [(split_counter(key), count) for key, count in totals.items()]
    found: dict[tuple[int, str], dict[str, int]] = {}
    for (name, rid, table), count in ((of, count) for of, count in split if of and count):
        found.setdefault((rid, table), {})[name] = count
    return [
        {
            "rid": rid,
            "replica": names.get(rid, str(rid)),
            "table": table,
            "counters": dict(sorted(counters.items())),
        }
        for (rid, table), counters in sorted(found.items())
    ]


def conflict_facts(replica: ReplicaState) -> dict[str, Any]:
    """How far a replica has come with what its last conflict made it get."""
    return {
        "mre": replica.mre,
        "last_conflict_epoch": replica.last_conflict_epoch,
        "last_stable_epoch": replica.last_stable_epoch,
        "conflict_handling": replica.handles_conflict,
    }


def handling(replicas: Iterable[Mapping[str, Any]]) -> str:
    """Whose conflicts are being handled, in words; empty when nobody's are."""
    at_work = [str(one["name"] or one["rid"]) for one in replicas if one["conflict_handling"]]
    return f"conflict handling in progress: {', '.join(at_work)}" if at_work else ""


def show(replicas: Sequence[Mapping[str, Any]], counters: Sequence[Mapping[str, Any]]) -> None:
    """Where each replica stands with its conflicts, and the counters if there are any."""
    write_table(
        ("replica", "MRE", "last conflict epoch", "last stable epoch", "conflict handling"),
        (
            (
                one["name"] or one["rid"],
                one["mre"],
                one["last_conflict_epoch"],
                one["last_stable_epoch"],
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
            (of["replica"], of["table"], name, count)
            for of in counters
            for name, count in of["counters"].items()
        ),
    )


def _progress(one: Mapping[str, Any]) -> str | None:
    if not one["conflict_handling"]:
        return None
    return f"in progress until it has reflected {one['last_conflict_epoch']}"
