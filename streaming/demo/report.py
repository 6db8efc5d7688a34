"""The result of a demonstration, as facts and as text."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from streaming.cli.output import as_counts, write_line, write_pairs, write_table
from streaming.core.conflict.judge import ConflictKind, Verdict
from streaming.demo.evidence import Evidence, ReplicaEvidence, Row
from streaming.demo.latency import latencies_ms, percentile
from streaming.demo.verdict import KINDS, Finding, conflict_counts, winning_retries

EXAMPLES = 3
"""How many conflicts of each kind are shown."""
PROBLEMS = 10
"""How many problems of a check are shown."""


def facts(
    evidence: Evidence, findings: Sequence[Finding], seconds: Mapping[str, float], folder: Path
) -> dict[str, Any]:
    """The document of `demo --json`."""
    return {
        "holds": all(finding.holds for finding in findings),
        "folder": folder,
        "seconds": dict(seconds),
        "replicas": [_replica(evidence, replica) for replica in evidence.replicas],
        "conflicts": {
            "total": len(evidence.conflicts),
            "by_kind": conflict_counts(evidence),
            "by_exact_kind": dict(Counter(row["kind"] for row in evidence.conflicts)),
            "retries_won": len(winning_retries(evidence)),
            "examples": [_conflict(evidence, row) for row in _examples(evidence.conflicts)],
        },
        "latency_ms": _latency(evidence),
        "verdict": [
            {"claim": f.claim, "holds": f.holds, "problems": list(f.problems)} for f in findings
        ],
    }


def _replica(evidence: Evidence, replica: ReplicaEvidence) -> dict[str, Any]:
    verdicts = Counter(row["verdict"] for row in evidence.judged if row["rid"] == replica.rid)
    others = (row for row in evidence.judged if row["rid"] != replica.rid)
    return {
        "replica": replica.name,
        "rid": replica.rid,
        "written": len(replica.writes),
        "accepted": verdicts[Verdict.ACCEPTED],
        "rejected": verdicts[Verdict.REJECTED],
        "quarantined": sum(row["rid"] == replica.rid for row in evidence.quarantine),
        "received": sum(row["verdict"] == Verdict.ACCEPTED for row in others),
        "refreshes": sum(row["to"] == replica.rid for row in evidence.refreshes),
        "batches": len(replica.applied),
        "rows": len(replica.rows),
    }


def _examples(conflicts: Sequence[Row]) -> list[Row]:
    shown = Counter[str]()
    found = []
    for row in conflicts:
        shown[row["kind"]] += 1
        if shown[row["kind"]] <= EXAMPLES:
            found.append(row)
    return sorted(found, key=lambda row: str(row["kind"]))


def _conflict(evidence: Evidence, row: Row) -> dict[str, Any]:
    name = evidence.names.get
    return {
        "kind": row["kind"],
        "table": row["table"],
        "key": row["key"],
        "loser": name(row["loser_rid"]),
        "loser_csn": row["loser_csn"],
        "loser_epoch": row["loser_epoch"],
        "winner": name(row["winner_rid"]),
        "winner_csn": row["winner_csn"],
        "winner_epoch": row["winner_epoch"],
        "mre": row["mre"],
    }


def _latency(evidence: Evidence) -> dict[str, Any]:
    by_pair = latencies_ms(evidence)
    everything = [value for values in by_pair.values() for value in values]
    return _percentiles(everything) | {
        "by_pair": [
            {"origin": origin, "replica": replica} | _percentiles(values)
            for (origin, replica), values in by_pair.items()
        ]
    }


def _percentiles(values: Sequence[int]) -> dict[str, int | None]:
    return {
        "count": len(values),
        "p50": percentile(values, 50),
        "p99": percentile(values, 99),
        "max": max(values, default=None),
    }


def show(found: Mapping[str, Any]) -> None:
    """Print the facts as text."""
    write_line()
    _show_replicas(found["replicas"])
    write_line()
    _show_conflicts(found["conflicts"])
    write_line()
    _show_latency(found["latency_ms"])
    write_line()
    for claim in found["verdict"]:
        write_line(f"{'yes' if claim['holds'] else 'NO '}  {claim['claim']}")
        for problem in claim["problems"][:PROBLEMS]:
            write_line(f"       {problem}")
        if len(claim["problems"]) > PROBLEMS:
            write_line(f"       ... and {len(claim['problems']) - PROBLEMS} more")


def _show_replicas(replicas: Sequence[Mapping[str, Any]]) -> None:
    write_table(
        (
            *("replica", "rid", "out: written", "accepted", "rejected", "quarantined"),
            *("in: changes", "refreshes", "batches", "rows"),
        ),
        (tuple(replica.values()) for replica in replicas),
    )


def _show_conflicts(conflicts: Mapping[str, Any]) -> None:
    write_table(
        (
            *("conflict", "row", "loser", "loser epoch", "MRE"),
            *("winner", "winner epoch"),
        ),
        (
            (
                row["kind"],
                f"{row['table']} {row['key']}",
                f"{row['loser']} {row['loser_csn']}",
                row["loser_epoch"],
                row["mre"],
                f"{row['winner'] or 'nobody'} {row['winner_csn'] or ''}".rstrip(),
                row["winner_epoch"],
            )
            for row in conflicts["examples"]
        ),
    )
    write_line()
    exact = conflicts["by_exact_kind"]
    kinds = {**KINDS, "delete-delete": (ConflictKind.DELETE_RECENTLY_DELETED,)}
    write_pairs(
        [
            *(
                (name, as_counts({kind: exact[kind] for kind in of if kind in exact}))
                for name, of in kinds.items()
            ),
            ("all conflicts", conflicts["total"]),
            ("retries that won", conflicts["retries_won"]),
        ]
    )


def _show_latency(latency: Mapping[str, Any]) -> None:
    write_table(
        ("from commit at", "to commit at", "changes", "p50 ms", "p99 ms", "max ms"),
        [
            *(tuple(pair.values()) for pair in latency["by_pair"]),
            ("all", "all", *(latency[name] for name in ("count", "p50", "p99", "max"))),
        ],
    )
