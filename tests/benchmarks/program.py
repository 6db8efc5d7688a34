"""The program behind `make bench` and `make bench-quick`: measure, check, print, write."""

import argparse
import json
import logging
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from connectors.kafka.embedded.broker import Broker
from streaming.jvm.session import session
from tests.benchmarks import report
from tests.benchmarks.counting import WrongCountError
from tests.benchmarks.environment import BenchmarkEnvironment
from tests.benchmarks.report import Numbers
from tests.benchmarks.sizes import Sizes

Measure = Callable[[BenchmarkEnvironment, Sizes], Numbers]


def run(
    module: str,
    measures: Mapping[str, Measure],
    sizes: Sizes,
    arguments: Sequence[str],
    *,
    apart: bool,
    repeated: Collection[str] = (),
) -> int:
    """Take the chosen measures; 1 when a count is wrong: then there is no number at all.

    `apart`: every measure has a process, a JVM and a broker of its own, so that none inherits the
    memory or the compiled code of another. `repeated`: those that run several times, for medians.
    """
    options = _parser(measures, sizes, apart=apart).parse_args(arguments)
    sizes = replace(sizes, **{f.name: _given(options, f.name, sizes) for f in fields(Sizes)})
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    chosen = {name: measures[name] for name in options.only or measures}
    try:
        if options.apart:
            times = {name: sizes.repeats if name in repeated else 1 for name in chosen}
            found = _apart(module, times, arguments)
        else:
            found = _here(chosen, sizes)
    except WrongCountError as error:
        print(f"wrong count, so there is no result: {error}", file=sys.stderr)  # noqa: T201
        return 1
    except subprocess.CalledProcessError as error:
        return error.returncode
    if options.part:
        report.write(found, options.part)
        return 0
    numbers: Numbers = {"machine": report.machine(), **found, "memory": report.memory_of(found)}
    report.write(numbers, options.result)
    report.show(numbers)
    return 0


def _here(measures: Mapping[str, Measure], sizes: Sizes) -> Numbers:
    """All measures in this process."""
    found: Numbers = {}
    with tempfile.TemporaryDirectory(prefix="slackwater-bench-") as name:
        folder = Path(name)
        settings = {
            "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
            "spark.log.level": "ERROR",
        }
        with Broker.start(folder / "broker") as broker:
            spark = session("benchmark", settings)
            for measure in measures.values():
                found |= measure(BenchmarkEnvironment(folder, broker, spark), sizes)
            spark.stop()
    return found


def _apart(module: str, times: Mapping[str, int], arguments: Sequence[str]) -> Numbers:
    """Measure -> how often; each time in a process. CalledProcessError when one fails."""
    found: Numbers = {}
    with tempfile.TemporaryDirectory(prefix="slackwater-bench-") as name:
        for measure, count in times.items():
            runs: list[Numbers] = []
            for turn in range(count):
                part = Path(name) / f"{measure}{turn}.json"
                command = [sys.executable, "-m", module, *arguments, "--no-apart"]
                subprocess.run([*command, "--part", str(part), "--only", measure], check=True)
                runs.append(json.loads(part.read_text()))
            found |= report.medians(runs)
    return found


def _parser(
    measures: Mapping[str, Measure], sizes: Sizes, *, apart: bool
) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(measures), help="only these measures")
    parser.add_argument("--result", type=Path, default=report.RESULT, help="where the JSON goes")
    parser.add_argument("--part", type=Path, help=argparse.SUPPRESS)
    parser.add_argument(
        "--apart",
        action=argparse.BooleanOptionalAction,
        default=apart,
        help="a process for each measure",
    )
    for field in fields(Sizes):
        default = getattr(sizes, field.name)
        several = isinstance(default, tuple)
        parser.add_argument(
            f"--{field.name.replace('_', '-')}",
            type=type(default[0] if several else default),
            nargs="*" if several else None,
            default=default,
            help="see sizes.py",
        )
    return parser


def _given(options: argparse.Namespace, name: str, sizes: Sizes) -> Any:  # noqa: ANN401
    value = getattr(options, name)
    return tuple(value) if isinstance(getattr(sizes, name), tuple) else value
