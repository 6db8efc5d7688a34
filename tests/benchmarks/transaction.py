"""One transaction of very many rows: whether it passes at all, and in how much memory."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from tests.benchmarks.agents import answering
from tests.benchmarks.counting import count
from tests.benchmarks.ground import Ground, HubKind, Probe, fill, running, wait, watching
from tests.benchmarks.load import new_load
from tests.benchmarks.report import Numbers
from tests.benchmarks.sizes import Sizes

STALLED_S = 60
"""Without a batch for so long the hub has stopped reading."""


def transaction_1m(ground: Ground, sizes: Sizes) -> Numbers:
    """Changes with one prim_csn and their commit, as the agent writes a transaction."""
    rows = sizes.transaction_rows
    load = replace(new_load(own_rows=rows, transaction=rows), writers=("alpha",))
    config, probe = ground.config(HubKind("transaction")), Probe()
    fill(ground, config, load, rows)
    progress = _Progress(probe, time.monotonic)
    with (
        watching(ground) as memory,
        answering(ground.task(config)),
        running(ground, config, probe),
    ):
        wait(lambda: probe.judged >= rows or progress.is_stalled(), "the transaction", probe)
    passed = probe.judged >= rows
    if passed:
        count(config, ground.bootstrap, load, rows)
    seconds = probe.batches[-1].published_s - probe.batches[0].planned_s
    return {
        "transaction_1m": {
            "outcome": "passed" if passed else f"no batch for {STALLED_S} s, then given up",
            "share_passed": probe.judged / rows,
            "seconds": round(seconds, 1) if passed else "not finished",
            "rows": rows,
            "peak_mib": memory.peak_mib,
        }
    }


@dataclass(slots=True)
class _Progress:
    """Notes when a hub last did a batch."""

    probe: Probe
    clock_s: Callable[[], float]
    batches: int = 0
    moved_s: float = 0.0

    def is_stalled(self) -> bool:
        """Return whether there was no batch for STALLED_S."""
        now_s = self.clock_s()
        if not self.moved_s or len(self.probe.batches) > self.batches:
            self.batches, self.moved_s = len(self.probe.batches), now_s
        return now_s - self.moved_s > STALLED_S
