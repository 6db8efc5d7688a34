"""The result of a run: one table and one JSON file."""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

RESULT = Path("benchmarks/latest.json")

Numbers = dict[str, dict[str, object]]
"""Measure -> name -> value."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a value should be: at least, or at most."""

    value: float
    at_least: bool = False

    def holds(self, found: float) -> bool:
        """Return whether the value reaches the target."""
        return found >= self.value if self.at_least else found <= self.value

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {self.value:g}"


TARGETS: Mapping[str, Target] = {
    "throughput.ratio_to_bound": Target(0.45, at_least=True),
    "throughput.ratio_to_naive_10m": Target(5, at_least=True),
    "executors.ratio_to_bound": Target(0.25, at_least=True),
    "batch_1000.ratio_to_floor": Target(0.5),
    **{f"latency_{rate}.p50_s": Target(0.4) for rate in (2_000, 5_000)},
    **{f"latency_{rate}.p99_s": Target(1.2) for rate in (2_000, 5_000)},
    **{
        f"contention_{function}.ratio_10_percent": Target(0.7, at_least=True)
        for function in ("epoch", "epoch_trans")
    },
    "foreign.ratio_to_canonical": Target(0.6, at_least=True),
    "filters.ratio_to_unfiltered": Target(0.8, at_least=True),
    "bad.per_s": Target(15_000, at_least=True),
    "bad.good_waited_batches": Target(1),
    "bad.memory_last_to_first": Target(1.1),
    "flood.others_p99_ratio": Target(2),
    "transaction_1m.share_passed": Target(1, at_least=True),
    "fan_out.cost_ratio_last_to_first": Target(1),
    **{
        f"growth.{name}": Target(1.15)
        for name in ("rows_ratio", "changelog_ratio", "commits_ratio")
    },
    "growth.dead_kept_mib": Target(1_000),
    "backlog.ratio_to_throughput": Target(0.9, at_least=True),
    "backlog.memory_later_to_earlier": Target(1.1),
    "absence.items_ratio_to_rows": Target(2.0),
    "past.replay_ratio_to_hub": Target(1),
    "past.verify_ratio_to_reading": Target(2),
    "takeover.seconds": Target(3.0),
    "cluster.p50_ratio_to_local": Target(1.5),
    "observed.cost_of_one_core": Target(0.02),
    **{f"agent.{side}_per_s": Target(20_000, at_least=True) for side in ("published", "applied")},
    "agent.file_ratio_to_plain": Target(1.2),
    "apply.ratio_to_before": Target(0.95, at_least=True),
    "compare.seconds": Target(30),
    "memory.peak_mib": Target(4_096),
}
"""The targets of the numbers; a miss is shown and is no error."""


def machine() -> dict[str, object]:
    """Where it ran."""
    return {
        "cores": os.cpu_count(),
        "processor": platform.machine(),
        "python": platform.python_version(),
        "system": platform.system(),
        "load_average": [round(load, 1) for load in os.getloadavg()],
    }


def memory_of(numbers: Numbers) -> dict[str, object]:
    """The peak of driver and JVM together in each measure, and of all."""
    peaks = {n: int(str(v["peak_mib"])) for n, v in numbers.items() if "peak_mib" in v}
    largest = max(peaks.values(), default=0)
    return {"peak_mib": largest, **{f"{name}_mib": peak for name, peak in peaks.items()}}


def medians(runs: Sequence[Numbers]) -> Numbers:
    """The median of each number over several runs, which stand beside it; of memory the peak."""
    if len(runs) == 1:
        return runs[0]
    return {
        measure: {
            **{name: _median(name, [run[measure][name] for run in runs]) for name in values},
            "runs": [run[measure] for run in runs],
        }
        for measure, values in runs[0].items()
    }


def _median(name: str, found: list[object]) -> object:
    if all(isinstance(value, bool) for value in found):
        return all(found)
    numbers = [value for value in found if isinstance(value, int | float)]
    if len(numbers) < len(found):
        return found[0]
    return max(numbers) if name == "peak_mib" else plain(median(numbers))


def plain(value: float) -> float:
    """A number in readable form."""
    return round(value) if value == round(value) else round(value, 4)


def write(numbers: Numbers, path: Path) -> None:
    """One JSON file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(numbers, indent=2) + "\n")


def show(numbers: Numbers) -> None:
    """One table."""
    table = Table("measure", "value", "target", "")
    for name, value in values_of(numbers):
        table.add_row(name, text_of(value), *held(name, value))
    Console().print(table)


def held(name: str, value: object) -> tuple[str, str]:
    """The target of a value, and whether it is reached; empty where it has none."""
    target = TARGETS.get(name)
    if target is None:
        return "", ""
    return str(target), "yes" if target.holds(float(str(value))) else "NO"


def values_of(numbers: Numbers) -> list[tuple[str, object]]:
    """Measure.name and value, in order; what is no single value is left out."""
    return [
        (f"{measure}.{name}", value)
        for measure, values in numbers.items()
        for name, value in values.items()
        if not isinstance(value, list | dict)
    ]


def text_of(value: object) -> str:
    """A value in readable form."""
    is_count = isinstance(value, int) and not isinstance(value, bool)
    return f"{value:,}" if is_count else str(value)
