"""`make bench-quick`: a small version of `make bench` in less than five minutes."""

import sys

from tests.benchmarks import program
from tests.benchmarks.batch_time import batch_1000
from tests.benchmarks.contention import contention
from tests.benchmarks.latency import latency
from tests.benchmarks.sizes import QUICK
from tests.benchmarks.throughput import throughput

MEASURES = {
    "throughput": throughput,
    "batch_1000": batch_1000,
    "latency": latency,
    "contention": contention,
}

if __name__ == "__main__":
    sys.exit(program.run("tests.benchmarks.quick", MEASURES, QUICK, sys.argv[1:], apart=False))
