"""One transaction of very many rows: whether it passes at all, and in how much memory."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from streaming.config.config import Config
from streaming.core.model.errors import HubError
from tests.benchmarks.agents import answering
from tests.benchmarks.counting import count
from tests.benchmarks.ground import Ground, HubKind, Probe, fill, running, wait, watching
from tests.benchmarks.load import new_load
from tests.benchmarks.report import Numbers
from tests.benchmarks.sizes import Sizes

PASSED = "passed"
STALLED_S = 60
"""Without a batch for so long the hub has stopped reading."""


def transaction_1m(ground: Ground, sizes: Sizes) -> Numbers:
    """Changes with one prim_csn and their commit, as the agent writes a transaction."""
    rows = sizes.transaction_rows
    load = replace(new_load(own_rows=rows, transaction=rows), writers=("alpha",))
    config, probe = ground.config(HubKind("transaction")), Probe()
    fill(ground, config, load, rows)
    with watching(ground) as memory, answering(ground.task(config)):
        outcome = _outcome(ground, config, probe, rows)
    seconds: float | str = "not finished"
    if outcome == PASSED:
        count(config, ground.bootstrap, load, rows)
        seconds = round(probe.batches[-1].published_s - probe.batches[0].planned_s, 1)
    return {
        "transaction_1m": {
            "outcome": outcome,
            "share_passed": probe.judged / rows,
            "seconds": seconds,
            "rows": rows,
            "peak_mib": memory.peak_mib,
        }
    }


def _outcome(ground: Ground, config: Config, probe: Probe, rows: int) -> str:
    """What became of the transaction; a hub that stops reading or ends is a result as well."""
    progress = _Progress(probe, time.monotonic)

    def is_over() -> bool:
        ended = probe.service is not None and probe.service.ended
        return probe.judged >= rows or ended or progress.is_stalled()

    try:
        with running(ground, config, probe):
            wait(is_over, "the transaction")
    except HubError as error:
        return f"the hub ended: {error}"
    return PASSED if probe.judged >= rows else f"no batch for {STALLED_S} s"


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
