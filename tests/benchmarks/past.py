"""The history of a hub judged again by replay, and audited by verify, beside the hub's own time."""

import time

from checkpoints.commit.recorded import from_store, recorded_rows
from checkpoints.reading.past import PastStore
from checkpoints.tables import TableName
from streaming.replay.report.answer import Chosen, choose, replay
from streaming.replay.verify import verify
from tests.benchmarks.counting import WrongCountError
from tests.benchmarks.environment import BenchmarkEnvironment, HubKind, run_preloaded
from tests.benchmarks.load import WRITERS, new_load
from tests.benchmarks.report import Numbers
from tests.benchmarks.sizes import Sizes

SHARED_OF_1000 = 15


def past(environment: BenchmarkEnvironment, sizes: Sizes) -> Numbers:
    """Seconds of the hub, of replay and verify over its whole history, and of reading the tables.

    Tables are read once before anything is measured: all sides find the files in memory.
    """
    each = sizes.past_events // len(WRITERS)
    run = run_preloaded(environment, HubKind("past"), new_load(SHARED_OF_1000), each)
    store = PastStore(run.config.hub.state)
    chosen = choose(store, None, None)
    read = from_store(store)
    _read(store, chosen)
    read_s = _read(store, chosen)
    answer, audit = replay(store, chosen, read), verify(store, chosen, read)
    store.close()
    if not (answer.is_equal and audit.is_sound):
        raise WrongCountError(f"replay: {answer.count}; verify: {audit.findings[:3]}")
    return {
        "past": {
            "changes": run.counted.written,
            "hub_s": round(run.probe.seconds, 1),
            "replay_s": round(answer.seconds, 1),
            "replay_ratio_to_hub": round(answer.seconds / run.probe.seconds, 3),
            "read_s": round(read_s, 1),
            "verify_s": round(audit.seconds, 1),
            "verify_ratio_to_reading": round(audit.seconds / read_s, 2),
            "peak_mib": run.memory.peak_mib,
        }
    }


def _read(store: PastStore, chosen: Chosen) -> float:
    """Seconds that reading all tables takes."""
    started_s = time.perf_counter()
    for _ in recorded_rows(from_store(store), chosen.marks):
        pass
    store.read(TableName.ROWS)
    return time.perf_counter() - started_s
