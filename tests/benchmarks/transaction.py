"""One transaction of very many rows: whether it is processed, and in how much memory."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from streaming.config.config import Config
from streaming.core.model.errors import HubError
from tests.benchmarks.agents import agents_running
from tests.benchmarks.counting import count
from tests.benchmarks.environment import (
    BenchmarkEnvironment,
    HubKind,
    HubProbe,
    fill,
    running,
    wait,
    watching,
)
from tests.benchmarks.load import new_load
from tests.benchmarks.report import Numbers
from tests.benchmarks.sizes import Sizes

PASSED = "passed"
STALLED_S = 60
"""Without a batch for so long the hub has stopped reading."""


def transaction_1m(environment: BenchmarkEnvironment, sizes: Sizes) -> Numbers:
    """Changes with one prim_csn and their commit, as the agent writes a transaction."""
    rows = sizes.transaction_rows
    load = replace(new_load(own_rows=rows, transaction=rows), writers=("alpha",))
    config, probe = environment.config(HubKind("transaction")), HubProbe()
    fill(environment, config, load, rows)
    with watching(environment) as memory, agents_running(environment.task(config)):
        outcome = _outcome(environment, config, probe, rows)
    seconds: float | str = "not finished"
    if outcome == PASSED:
        count(config, environment.bootstrap, load, rows)
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


def _outcome(environment: BenchmarkEnvironment, config: Config, probe: HubProbe, rows: int) -> str:
    """The outcome; a hub that stops reading or ends is a result as well."""
    progress = _Progress(probe, time.monotonic)

    def is_over() -> bool:
        ended = probe.service is not None and probe.service.ended
        return probe.judged >= rows or ended or progress.is_stalled()

    try:
        with running(environment, config, probe):
            wait(is_over, "the transaction")
    except HubError as error:
        return f"the hub ended: {error}"
    return PASSED if probe.judged >= rows else f"no batch for {STALLED_S} s"


@dataclass(slots=True)
class _Progress:
    """Detects that a hub has stopped processing batches."""

    probe: HubProbe
    clock_s: Callable[[], float]
    batches: int = 0
    moved_s: float = 0.0

    def is_stalled(self) -> bool:
        """Return whether there was no batch for STALLED_S."""
        now_s = self.clock_s()
        if not self.moved_s or len(self.probe.batches) > self.batches:
            self.batches, self.moved_s = len(self.probe.batches), now_s
        return now_s - self.moved_s > STALLED_S
