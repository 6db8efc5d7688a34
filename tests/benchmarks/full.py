"""`make bench`: every measure side by side, in one run, on one machine; it takes hours."""

import sys

from tests.benchmarks import program
from tests.benchmarks.absence import absence
from tests.benchmarks.agent import agent
from tests.benchmarks.apply import apply
from tests.benchmarks.backlog import backlog
from tests.benchmarks.bad import bad
from tests.benchmarks.batch_time import batch_1000
from tests.benchmarks.cluster import cluster
from tests.benchmarks.comparison import compare
from tests.benchmarks.contention import contention
from tests.benchmarks.fan_out import fan_out
from tests.benchmarks.filters import filters
from tests.benchmarks.flood import flood
from tests.benchmarks.foreign import foreign
from tests.benchmarks.growth import growth
from tests.benchmarks.idle import idle
from tests.benchmarks.initial_load import initial_load
from tests.benchmarks.latency import latency
from tests.benchmarks.observed import observed
from tests.benchmarks.past import past
from tests.benchmarks.postgres_agent import postgres_agent
from tests.benchmarks.sizes import Sizes
from tests.benchmarks.start import start
from tests.benchmarks.takeover import takeover
from tests.benchmarks.throughput import executors, throughput
from tests.benchmarks.transaction import transaction_1m

MEASURES = {
    "throughput": throughput,
    "executors": executors,
    "batch_1000": batch_1000,
    "latency": latency,
    "contention": contention,
    "foreign": foreign,
    "filters": filters,
    "bad": bad,
    "flood": flood,
    "transaction_1m": transaction_1m,
    "fan_out": fan_out,
    "growth": growth,
    "backlog": backlog,
    "absence": absence,
    "initial_load": initial_load,
    "past": past,
    "start": start,
    "takeover": takeover,
    "cluster": cluster,
    "agent": agent,
    "postgres_agent": postgres_agent,
    "apply": apply,
    "compare": compare,
    "idle": idle,
    "observed": observed,
}

REPEATED = ("latency", "fan_out", "growth", "backlog")
"""A round of these is a process of its own; the other ones take their rounds themselves."""

if __name__ == "__main__":
    sys.exit(
        program.run(
            "tests.benchmarks.full",
            MEASURES,
            Sizes(),
            sys.argv[1:],
            apart=True,
            repeated=REPEATED,
        )
    )
