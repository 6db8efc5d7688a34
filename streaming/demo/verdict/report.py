"""The result of a demonstration, as facts and as text."""

import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from streaming.core.conflict.judge import Verdict
from streaming.core.text.wording import as_count
from streaming.demo.databases.replica_evidence import ReplicaEvidence
from streaming.demo.replicas.collisions import UPDATE_UPDATE
from streaming.demo.verdict.checks import KINDS, CheckedClaim, conflict_counts, winning_retries
from streaming.demo.verdict.evidence import Evidence, Row
from streaming.demo.verdict.latency import ChangeLatency, latencies, percentile
from streaming.terminal.output import write_line, write_pairs

EXAMPLES = 3
"""How many conflicts of each kind are in the JSON document."""
PROBLEMS = 10
"""How many problems of a check are shown."""
PARTS = ("agent", "hub", "apply")
"""The parts of a latency: see `ChangeLatency`."""


def facts(
    evidence: Evidence, findings: Sequence[CheckedClaim], seconds: Mapping[str, float], folder: Path
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
        "warm_up_writes": _warm_up_writes(evidence),
        "latency_ms": _latency(evidence),
        "verdict": [
            {"claim": f.claim, "holds": f.holds, "problems": list(f.problems)} for f in findings
        ],
        "try_next": _try_next(evidence, folder),
    }


def _replica(evidence: Evidence, replica: ReplicaEvidence) -> dict[str, Any]:
    verdicts = Counter(row["verdict"] for row in evidence.judged if row["rid"] == replica.rid)
    others = (row for row in evidence.judged if row["rid"] != replica.rid)
    return {
        "replica": replica.name,
        "rid": replica.rid,
        "written": len(replica.all_writes),
        "lost": len(replica.lost_writes),
        "never_arrived": len(replica.all_writes) - len(evidence.arrived(replica)),
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
        "id": row["id"],
        "kind": row["kind"],
        "table": row["table"],
        "key": row["key"],
        "loser": name(row["loser_rid"]),
        "loser_csn": row["loser_csn"],
        "loser_epoch": row["loser_epoch"],
        "loser_hub_epoch": row["loser_hub_epoch"],
        "winner": name(row["winner_rid"]),
        "winner_csn": row["winner_csn"],
        "winner_hub_epoch": row["winner_hub_epoch"],
        "mre": row["mre"],
    }


def _warm_up_writes(evidence: Evidence) -> int:
    since_ms = evidence.timing.measured_since_ms
    return sum(write.at_ms < since_ms for one in evidence.replicas for write in one.all_writes)


def _latency(evidence: Evidence) -> dict[str, Any]:
    found = latencies(evidence)
    by_pair = groupby(found, key=lambda one: (one.origin, one.replica))
    return {
        "by_part": {
            part: _percentiles([getattr(one, f"{part}_ms") for one in found]) for part in PARTS
        },
        **_percentiles(_totals(found)),
        "by_pair": [
            {"origin": origin, "replica": replica} | _percentiles(_totals(list(some)))
            for (origin, replica), some in by_pair
        ],
    }


def _totals(found: Sequence[ChangeLatency]) -> list[int]:
    return [one.total_ms for one in found]


def _percentiles(values: Sequence[int]) -> dict[str, int | None]:
    return {
        "count": len(values),
        "p50": percentile(values, 50),
        "p99": percentile(values, 99),
        "max": max(values, default=None),
    }


def _try_next(evidence: Evidence, folder: Path) -> list[str]:
    """Lines for a shell: into the folder, where `hub.toml` is the default, and three commands."""
    program = _program()
    of = [row["id"] for row in evidence.conflicts if row["kind"] in KINDS[UPDATE_UPDATE]]
    show_one = f"conflicts show {of[-1]}" if of else "conflicts list --limit 20"
    return [
        f"cd {shlex.quote(str(folder.absolute()))}",
        f"{program} conflicts list --limit 3",
        f"{program} {show_one}",
        f"{program} demo --check .",
    ]


def _program() -> str:
    """`slackwater` as this shell finds it, or where it is installed."""
    installed = Path(sys.executable).parent / "slackwater"
    found = shutil.which("slackwater")
    if found is not None and Path(found).absolute() == installed.absolute():
        return "slackwater"
    if installed.exists():
        return shlex.quote(str(installed.absolute()))
    return f"{shlex.quote(sys.executable)} -m streaming.cli.entry"


def show(found: Mapping[str, Any]) -> None:
    """Print the facts as text: the verdict first, then what happened, then what to try next."""
    _show_verdict(found["verdict"])
    write_line()
    write_pairs(
        [
            *((one["replica"], _of_replica(one)) for one in found["replicas"]),
            ("conflicts", _of_conflicts(found["conflicts"])),
            ("latency", _of_latency(found["latency_ms"])),
        ]
    )
    write_line()
    for line in found["try_next"]:
        write_line(line)


def _show_verdict(claims: Sequence[Mapping[str, Any]]) -> None:
    wrong = sum(not claim["holds"] for claim in claims)
    if wrong:
        write_line(f"{wrong} of {len(claims)} checks fail:")
    else:
        write_line(f"All {len(claims)} checks pass:")
    for claim in claims:
        write_line(f"{'yes' if claim['holds'] else 'NO '}  {claim['claim']}")
        for problem in claim["problems"][:PROBLEMS]:
            write_line(f"       {problem}")
        if len(claim["problems"]) > PROBLEMS:
            write_line(f"       ... and {len(claim['problems']) - PROBLEMS} more")


def _of_replica(replica: Mapping[str, Any]) -> str:
    """What it wrote, and what came to it; one that was restored received most of it twice."""
    quarantined, lost, gone = replica["quarantined"], replica["lost"], replica["never_arrived"]
    received = f"received {as_count(replica['received'], 'change')}"
    return (
        f"wrote {replica['written']}: {replica['accepted']} accepted, {replica['rejected']} lost"
        f"{f', {quarantined} quarantined' if quarantined else ''};"
        f" {_fate(lost, gone) or received}"
    )


def _fate(lost: int, never_arrived: int) -> str:
    """What became of the writes of a replica that was restored or died."""
    if never_arrived:
        return f"it died, and {never_arrived} never arrived"
    return f"{lost} came back to its backup" if lost else ""


def _of_conflicts(conflicts: Mapping[str, Any]) -> str:
    exact = Counter(conflicts["by_exact_kind"])
    counts = (f"{name} {sum(exact[kind] for kind in of)}" for name, of in KINDS.items())
    return f"{conflicts['total']}; {', '.join(counts)}"


def _of_latency(latency: Mapping[str, Any]) -> str:
    """The percentiles of each part do not add up to the whole's."""
    if not latency["count"]:
        return "not measured"
    p50, p99 = (_parts_of(latency, name) for name in ("p50", "p99"))
    return f"p50 {latency['p50']} ms from commit to commit: {p50}\np99 {latency['p99']} ms: {p99}"


def _parts_of(latency: Mapping[str, Any], name: str) -> str:
    return ", ".join(f"{part} {latency['by_part'][part][name]}" for part in PARTS)
