"""The hub as its own process, which records when it reaches each point of its start.

    python -m tests.benchmarks.timed_hub CONFIG.toml MARKS.jsonl

It does what `slackwater run` does, in the same order.
"""

import time

STARTED_S = time.time()

import json  # noqa: E402 - what is imported behind this line is measured
import logging  # noqa: E402
import os  # noqa: E402
import signal  # noqa: E402
import sys  # noqa: E402
import threading  # noqa: E402
from pathlib import Path  # noqa: E402

from checkpoints.commit.faults import FaultPoint  # noqa: E402
from checkpoints.root import local_folder  # noqa: E402
from streaming.config.sources.load import load  # noqa: E402
from streaming.hub.service import Service  # noqa: E402
from streaming.jvm.java import check_java  # noqa: E402
from streaming.jvm.private import jvm_pid  # noqa: E402
from streaming.jvm.session import session  # noqa: E402
from tests.benchmarks.memory import watched  # noqa: E402


def main(config_path: Path, marks: Path) -> None:
    """Run until SIGTERM."""

    def mark(what: str, **more: float) -> None:
        with marks.open("a") as file:
            file.write(json.dumps({"what": what, "at_s": time.time(), **more}) + "\n")

    mark("imported")
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    end = threading.Event()
    signal.signal(signal.SIGTERM, lambda _number, _frame: end.set())
    config = load(config_path)
    check_java()
    mark("checked")
    warehouse = (local_folder(config.hub.state) / "spark" / "warehouse").absolute().as_uri()
    settings = {"spark.sql.warehouse.dir": warehouse, "spark.log.level": "ERROR"}
    spark = session("benchmark of the hub", settings)
    mark("session")

    def at(point: FaultPoint) -> None:
        if point in (FaultPoint.AFTER_PLAN, FaultPoint.AFTER_COMMIT, FaultPoint.AFTER_PUBLISH):
            last = service.hub.ledger.last if service else None
            judged = last.totals.get("judged", 0) if last else 0
            mark(str(point), judged=judged, hub_epoch=last.state.hub_epoch if last else 0)

    service: Service | None = None
    with watched([os.getpid(), jvm_pid(spark)]) as memory:
        service = Service(config, spark, at)
        mark("opened")
        service.run(end)
        mark("ended", peak_mib=memory.peak_mib)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
