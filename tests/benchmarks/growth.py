"""Whether a batch of 1,000 events gets slower as the state grows, and how its files grow.

The large tables are generated directly, as if a hub of that past had been stopped here: of
`rows` and `changelog` only the sizes differ. The many commits are real ones.
"""

import time
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from checkpoints.commit.epochs import Checkpoint
from checkpoints.commit.protocol import create_state
from checkpoints.root import local_folder
from checkpoints.store import StateStore
from checkpoints.tables import TableName
from streaming.config.config import Config
from streaming.core.model.csn import CsnParts, format_csn
from streaming.core.model.ruv import Ruv
from streaming.core.state.hub_state import HubState
from tests.benchmarks.batch_time import EVENTS, batch_times
from tests.benchmarks.environment import (
    BenchmarkEnvironment,
    HubKind,
    HubRun,
    process_backlog,
    run_preloaded,
    topics_of,
)
from tests.benchmarks.files import disk_numbers, table_files
from tests.benchmarks.load import CSNS_PER_S, TABLE, WRITERS, new_load, preload, publish_hellos
from tests.benchmarks.report import Numbers
from tests.benchmarks.sizes import Sizes

PAST_EPOCHS = 1_000
GENERATION = 1
_ROWS_OF_A_FILE = 1_000_000
_FIRST_COMMITS, _SOME_COMMITS = 100, 300
"""Which commits are the early ones: from the 100th on, and as many at the end."""


def growth(environment: BenchmarkEnvironment, sizes: Sizes) -> Numbers:
    """Batch times by size, and the largest in proportion to the smallest."""
    numbers: dict[str, object] = {"generated_directly": "rows, changelog"}
    peak_mib = 0
    each = sizes.growth_batches * EVENTS // len(WRITERS)
    _on(environment, Past("growth_warm_up", 1_000, 1_000), each)
    for what, counts in (("rows", sizes.rows), ("changelog", sizes.changelog)):
        times = []
        for size in counts:
            rows, log = (size, 1_000) if what == "rows" else (1_000, size)
            run = _on(environment, Past(f"growth_{what}_{size}", rows, log), each)
            times.append(median(batch_times(run)))
            numbers[f"{what}_{size}_batch_p50_s"] = round(times[-1], 4)
            peak_mib = max(peak_mib, run.memory.peak_mib)
        numbers[f"{what}_ratio"] = round(max(times) / times[0], 3)
    numbers |= _commits(environment, sizes.commits)
    return {"growth": {**numbers, "peak_mib": peak_mib}}


def _commits(environment: BenchmarkEnvironment, commits: int) -> dict[str, object]:
    """Batch times of one hub at the beginning and at the end of many commits."""
    kind = HubKind("growth_commits", events_per_batch=EVENTS)
    run = run_preloaded(environment, kind, new_load(10), commits * EVENTS // len(WRITERS))
    starts = [batch.planned_s for batch in run.probe.working]
    times = [b - a for a, b in pairwise(starts)]
    some = min(_SOME_COMMITS, len(times) // 3)
    first = min(_FIRST_COMMITS, some)
    early, late = median(times[first : first + some]), median(times[-some:])
    return {
        "commits": len(run.probe.working),
        "commits_early_batch_p50_s": round(early, 4),
        "commits_late_batch_p50_s": round(late, 4),
        "commits_ratio": round(late / early, 3),
        **disk_numbers(table_files(local_folder(run.config.hub.state)), starts[-1] - starts[0]),
    }


@dataclass(frozen=True, slots=True)
class Past:
    """What a state holds before its hub starts."""

    name: str
    rows: int
    changelog: int


def _on(environment: BenchmarkEnvironment, past: Past, each: int) -> HubRun:
    """A hub with this past works off batches of 1,000 events."""
    config, load = environment.config(HubKind(past.name, events_per_batch=EVENTS)), new_load(10)
    generate(environment, config, past)
    topics = topics_of(config)
    publish_hellos(environment.bootstrap, topics, PAST_EPOCHS, GENERATION)
    preload(environment.bootstrap, topics, load, 0, each)
    return process_backlog(environment, config, load, each)


def generate(environment: BenchmarkEnvironment, config: Config, past: Past) -> None:
    """A founded state with so many rows, and changelog entries that all replicas have."""
    store, now_s = StateStore(config.hub.state), int(time.time())
    replicageneration = format_csn(CsnParts(now_s - 86_400, 0, config.hub.rid, 0))
    state = HubState(
        GENERATION,
        replicageneration,
        hub_epoch=PAST_EPOCHS,
        ruvs={TABLE.dataset: Ruv(replicageneration)},
    )
    genesis = Checkpoint(state, {}, {}, 0, rows_epoch=PAST_EPOCHS, at_ms=(now_s - 7_200) * 1000)
    create_state(store, genesis, "benchmark")
    base_s = now_s - 80_000  # before all that the load writes
    _append(store, TableName.ROWS, _rows(environment, past.rows, base_s))
    _append(store, TableName.CHANGELOG, _log(environment, past.changelog, base_s))


def _append(store: StateStore, name: TableName, frame: DataFrame) -> None:
    frame.write.format("delta").mode("append").save(store.uri(name))


def _rows(environment: BenchmarkEnvironment, count: int, base_s: int) -> DataFrame:
    """Rows 0 and on, so that the load writes over some of them."""
    return _numbered(environment, count, base_s).select(
        *(F.lit(TABLE.name).alias("table"), "key", "author", "hub_epoch", "csn", "image"),
        F.expr(
            "cast(array() as array<struct<rid int, hub_epoch long, offset long,"
            " rejects_transaction boolean>>)"
        ).alias("realign"),
    )


def _log(environment: BenchmarkEnvironment, count: int, base_s: int) -> DataFrame:
    """Accepted changes, the older hub epochs first."""
    there = _numbered(environment, count, base_s)
    return there.select(
        F.lit(0).cast("long").alias("batch"),
        "hub_epoch",
        F.col("n").alias("place"),
        F.lit("change").alias("kind"),
        F.col("author").alias("rid"),
        F.col("n").alias("offset"),
        F.timestamp_seconds(F.lit(base_s)).alias("time"),
        F.lit("session-of-the-past").alias("session"),
        *("csn", F.lit(1).cast("long").alias("epoch"), F.lit(TABLE.name).alias("table"), "key"),
        *(F.lit("update").alias("op"), F.col("image").alias("after")),
        F.md5("csn").alias("content"),
        *(F.lit("accepted").alias("verdict"), F.lit(False).alias("concurrent")),  # noqa: FBT003
        *(F.lit(0).cast("long").alias(name) for name in ("mre", "mre_same", "realign_epoch")),
        F.col("author").alias("row_author"),
        *(F.lit(0).cast("long").alias("row_epoch"), "image"),
    )


def _numbered(environment: BenchmarkEnvironment, count: int, base_s: int) -> DataFrame:
    """`count` changes of the past, one for each row from 0 on."""
    n, writers = F.col("id"), len(WRITERS)
    time_s = F.lpad(F.lower(F.hex(F.lit(base_s) + F.floor(n / CSNS_PER_S))), 8, "0")
    sequence = F.lpad(F.lower(F.hex(n % CSNS_PER_S)), 4, "0")
    author = (n % writers + 1).cast("int")
    rid = F.lpad(F.lower(F.hex(author)), 4, "0")
    text = n.cast("string")
    image = F.concat(
        *(F.lit('{"id":"'), text, F.lit('","owner":"customer '), text),
        *(F.lit(' of the bank at the harbour","balance":"'), text, F.lit('.25","sent_ms":"0"}')),
    )
    files = max(1, count // _ROWS_OF_A_FILE)
    return environment.spark.range(0, count, 1, files).select(
        n.alias("n"),
        F.concat(F.lit('{"id":"'), text, F.lit('"}')).alias("key"),
        author.alias("author"),
        (F.floor(n * PAST_EPOCHS / count) + 1).alias("hub_epoch"),
        F.concat(time_s, sequence, rid, F.lit("0000")).alias("csn"),
        image.alias("image"),
    )
