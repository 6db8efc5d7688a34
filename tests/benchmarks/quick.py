"""`make bench-quick`: a small version of `make bench` in about six minutes."""

import sys

from tests.benchmarks import program
from tests.benchmarks.bad import bad
from tests.benchmarks.batch_time import batch_1000
from tests.benchmarks.contention import contention
from tests.benchmarks.foreign import foreign
from tests.benchmarks.latency import latency
from tests.benchmarks.sizes import QUICK
from tests.benchmarks.throughput import throughput

MEASURES = {
    "batch_1000": batch_1000,
    "latency": latency,
    "contention": contention,
    "foreign": foreign,
    "bad": bad,
    "throughput": throughput,
}
"""Throughput comes last, so the memory that its peers leave in the JVM distorts no measure."""

if __name__ == "__main__":
    sys.exit(program.run("tests.benchmarks.quick", MEASURES, QUICK, sys.argv[1:], apart=False))
