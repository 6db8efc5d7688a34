"""How fast an agent applies rows where no trigger is in the way, beside the commit before.

Both sides are processes of the same program that take turns; the code of the commit before comes
out of the repository's history.
"""

import os
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path

from tests.benchmarks import applying
from tests.benchmarks.environment import BenchmarkEnvironment
from tests.benchmarks.report import Numbers
from tests.benchmarks.rounds import Round, middle, ratio
from tests.benchmarks.sizes import Sizes

REPOSITORY = Path(__file__).parents[2]
PACKAGES = ("connectors", "streaming", "checkpoints")


def apply(environment: BenchmarkEnvironment, sizes: Sizes) -> Numbers:
    """The items a second of both sides, and their ratio within a round."""
    folder = environment.folder / "before"
    return measured(folder, sizes.apply_before, sizes.apply_rows, sizes.apply_rounds)


def measured(folder: Path, before: str, rows: int, turns: int) -> Numbers:
    """The numbers of this code and of the commit `before`, which is unpacked in the folder."""
    sides = {"now": REPOSITORY, "before": folder}
    command = ["git", "-C", str(REPOSITORY), "archive", before, *PACKAGES]
    packed = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    rounds = list[Round]()
    for turn in range(turns + 1):  # the first one warms up
        order = sorted(sides, reverse=turn % 2 == 0)
        rounds.append({side: _items_per_s(sides[side], rows) for side in order})
    del rounds[0]
    return {
        "apply": {
            "now_per_s": round(middle(rounds, "now")),
            "before_per_s": round(middle(rounds, "before")),
            "ratio_to_before": ratio(rounds, "now", "before"),
            "before": before,
            "rows": rows,
            "rounds": rounds,
        }
    }


def _items_per_s(root: Path, rows: int) -> float:
    environment = {**os.environ, "PYTHONPATH": str(root)}
    command = [sys.executable, applying.__file__, str(rows)]
    done = subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE, cwd=root)
    return float(done.stdout)
