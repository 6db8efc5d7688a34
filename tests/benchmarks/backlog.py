"""A hub that was down: how fast it is level again, and whether its memory stays flat."""

from tests.benchmarks.agents import answering, report_of
from tests.benchmarks.counting import count
from tests.benchmarks.ground import (
    Ground,
    Probe,
    RecordKind,
    fill,
    running,
    topics_of,
    wait,
    watching,
)
from tests.benchmarks.load import WRITERS, new_load, preload
from tests.benchmarks.report import Numbers
from tests.benchmarks.sizes import Sizes

BEFORE = 30_000
"""Changes after which the hub goes down, in step with everybody."""


def backlog(ground: Ground, sizes: Sizes) -> Numbers:
    """One run: the hub is in step, ends, misses the changes, and starts again."""
    config, load = ground.config(RecordKind("backlog")), new_load(15)
    before, after = Probe(), Probe()
    first, each = BEFORE // len(WRITERS), (BEFORE + sizes.backlog_events) // len(WRITERS)
    fill(ground, config, load, first)
    task = ground.task(config)
    missed = (each - first) * len(WRITERS)
    with answering(task):
        with running(ground, config, before):
            wait(lambda: before.judged >= first * len(WRITERS), "the hub is in step", before)
        preload(ground.spark, ground.bootstrap, topics_of(config), load, first, each)
        with watching(ground) as memory, running(ground, config, after):
            wait(lambda: after.judged >= missed, "the hub is level again", after)
    counted = count(config, ground.bootstrap, load, each, restarts=1)
    started_s, ended_s = after.working[0].planned_s, after.working[-1].published_s
    middle_s = (started_s + ended_s) / 2
    earlier, later = (
        memory.peak_between_mib(*span) for span in ((started_s, middle_s), (middle_s, ended_s))
    )
    return {
        "backlog": {
            "events": missed,
            "seconds_to_level": round(after.seconds, 1),
            "events_per_s": round(missed / after.seconds),
            "contended_percent": counted.contended_percent,
            "delivered": counted.delivered,
            "memory_earlier_half_mib": earlier,
            "memory_later_half_mib": later,
            "memory_later_to_earlier": round(later / max(earlier, 1), 3),
            "agents_cpu_s": round(report_of(task).cpu_s, 2),
            "peak_mib": memory.peak_mib,
        }
    }
