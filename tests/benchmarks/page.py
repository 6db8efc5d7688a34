"""Writes results to docs/benchmarks.md, with its picture and, as JSON, its numbers.

A measure that a result lacks keeps the numbers, the day and the commit of its last run. The
text between the headline and the table of all measures is written by hand and stays unchanged.

python -m tests.benchmarks.page [RESULT.json]
"""

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from tests.benchmarks import report
from tests.benchmarks.report import RESULT, Numbers

PAGE = Path("docs/benchmarks.md")
PICTURE = Path("docs/benchmarks.svg")
NUMBERS = Path("docs/benchmarks.json")
_ALL = "\n## All measures\n"
_SECTION = "\n## "
NOT_MEASURED = "not measured yet"

DAY, COMMIT = "day", "commit"
"""The names beside the numbers of a measure: when it ran, and on which commit."""
_ABOUT_MACHINE = "machine"

HEADLINE: Mapping[str, str] = {
    "throughput.hub_per_s": "Changes a second, judged, logged and delivered to three replicas",
    "throughput.ratio_to_bound": "… compared with Spark that only reads and parses them",
    "throughput.ratio_to_naive_10m": (
        "… compared with a plain MERGE, append and Kafka sink, 10 million rows in its table"
    ),
    "latency_2000.p50_s": "Seconds from one replica's topic to the others, median, at 2,000/s",
    "latency_2000.p99_s": "… 99 of 100",
    "batch_1000.ratio_to_floor": (
        "A batch of 1,000 changes, compared with one Delta append by Spark and one Kafka record"
    ),
    "contention_epoch.ratio_10_percent": (
        "Throughput with 10 % of the changes in conflict, compared with none"
    ),
    "foreign.ratio_to_canonical": (
        "Throughput of records written by another JSON library, compared with our agent's"
    ),
    "filters.ratio_to_unfiltered": (
        "Throughput with a condition on the rows of each agreement, compared with none"
    ),
    "bad.per_s": "Broken records quarantined a second, each broken in another way",
    "flood.others_p99_ratio": (
        "Seconds for 99 of 100 changes while another replica floods its topic, compared with usual"
    ),
    "transaction_1m.seconds": "Seconds for one transaction of 1,000,000 rows",
    "growth.rows_ratio": "Batch time with 10 million rows, compared with 1 million",
    "backlog.ratio_to_throughput": "Throughput after a long outage, compared with the usual one",
    "absence.items_ratio_to_rows": "Items that a consumer gets which was away, for each row",
    "past.replay_ratio_to_hub": "Time to replay a history, compared with the hub's own",
    "past.verify_ratio_to_reading": "Time to verify it, compared with reading the tables",
    "observed.cost_of_one_core": "An open page and a scrape each second, of one core",
    "compare.seconds": "Seconds to compare 1,000,000 equal rows of SQLite and PostgreSQL",
    "takeover.seconds": "Seconds from kill -9 to the standby's first hub epoch",
    "start_after_kill.seconds": "Seconds from kill -9 until nothing is left to deliver",
    "memory.peak_mib": "MiB of driver and JVM together, the largest of all measures",
}
"""The headline rows: measure.name -> its text."""

MEASURES: Mapping[str, str] = {
    "throughput": (
        "Preloaded changes, 1 % of them in conflict: the hub, Spark's `from_json` alone, and the"
        " naive peer in an empty table and in one of 10 million rows, in alternation."
    ),
    "executors": "The same when the executors carry the rows of a batch.",
    "batch_1000": (
        "The time from one batch of 1,000 changes to the next; the floor is a `foreachBatch` with"
        " one Delta append and one Kafka record."
    ),
    "latency_2000": "2,000 changes a second, from a replica's topic to the other replicas.",
    "latency_5000": "The same at 5,000 changes a second.",
    "contention_epoch": "Throughput by the share of changes that conflict, under EPOCH.",
    "contention_epoch_trans": "The same under EPOCH_TRANS, in transactions of four changes.",
    "foreign": (
        "The same input as `json.dumps` writes it by default, with a blank after comma and colon,"
        " and with its members in reverse order."
    ),
    "filters": (
        "The same input without filters, and with a condition on every agreement that all rows"
        " fulfil, so that the same is delivered."
    ),
    "bad": (
        "One replica's records are all broken, each in another way, while the others write good"
        " ones. `good_waited_batches`: how many batches ended between the append of a good record"
        " and its own; the one under way counts."
    ),
    "flood": (
        "One replica floods its topic with junk, with changes at full speed, and with changes that"
        " are wide and in conflict, while the others write 300 changes a second; the flood has"
        " 10,000 records a second, because a process that writes as fast as it can takes this"
        " machine's cores from the hub. Before each flood they are measured without it (`usual`)."
    ),
    "transaction_1m": "One transaction of 1,000,000 changed rows and its commit.",
    "fan_out": (
        "The same changes to more and more consumers; `us_per_delivered` is the hub's time for"
        " each delivered change."
    ),
    "growth": (
        "The time of a batch of 1,000 changes as `rows`, the changelog and the number of commits"
        " grow; and the files of the tables after those commits. Dead files were replaced by a"
        " compaction and go after ten minutes: `dead_kept_mib` is the most that they take on the"
        " disk at this rate of batches."
    ),
    "backlog": "A hub that was down catches up.",
    "absence": (
        "999 rows are written a million times while one consumer is away; then it says hello."
        " `items_of_who_was_there`: what the others were sent meanwhile."
    ),
    "initial_load": (
        "A replica joins and is filled from the hub; beside it what its database alone inserts."
    ),
    "past": (
        "The whole history of a hub, 1 % of it in conflict: replayed and verified, beside the hub's"
        " own time, and beside only reading the tables."
    ),
    "start": "From `slackwater run` to the first delivered batch.",
    "start_after_kill": "From kill -9 until everything written meanwhile is delivered.",
    "takeover": (
        "From kill -9 of the hub at work, while 500 changes a second are written, until its standby"
        " has committed a hub epoch."
    ),
    "cluster": (
        "A hub on a Spark cluster of two one-core workers, on the cores of everything else: latency"
        " at 2,000 changes a second by turns with a local hub, and changes a second in batches of"
        " 200,000 that executors carry, on one worker and on two."
    ),
    "agent": (
        "One agent beside plain sqlite3, on the same rows in transactions of 100: written with"
        " the agent's triggers, published to Kafka, and applied at another replica in batches of"
        " 1,000. `file_ratio_to_plain`: the used pages of the file afterwards."
    ),
    "postgres_agent": (
        "One agent of a PostgreSQL database beside pgbench -N (scale 10, 4 clients): pgbench alone"
        " and while its tables are captured and published; a backlog of 100 rows a transaction"
        " published alone, and batches of 1,000 rows applied alone, in rows a second."
    ),
    "apply": (
        "The items a second of processor time that an agent applies to a SQLite file where no"
        " trigger is in the way, 1,000 in a batch, beside the code of the commit before, by turns."
    ),
    "compare": (
        "Equal rows of five columns in SQLite and in PostgreSQL: rows a second of the digest inside"
        " each database, and a whole comparison of both; then with 10 rows that differ."
    ),
    "idle": "A hub without input.",
    "observed": (
        "2,000 changes a second, in turns on one hub: nobody looks; a scrape each second and an"
        " open page. Processor time of driver and JVM; `cost`: the median difference."
    ),
    "memory": "The largest resident memory of driver and JVM together, by measure.",
}
"""The measures in the order of the page, each with what it does."""

_BARS = {
    "read_and_parse_per_s": "Spark reads and parses, from_json",
    "hub_per_s": "the hub: judged, logged, delivered to three",
    "naive_per_s": "the naive peer, an empty table",
    "naive_10m_per_s": "the naive peer, 10 million rows",
}
_BAR, _LEFT, _WIDTH = 34, 330, 420


def merged(kept: Numbers, numbers: Numbers, day: str, commit: str) -> Numbers:
    """The kept numbers with those of a new result in their place, lists left out."""
    found = dict(kept)
    for measure, values in numbers.items():
        plain = {name: v for name, v in values.items() if not isinstance(v, list | dict)}
        found[measure] = {DAY: day, COMMIT: commit, **plain}
    found["memory"] = report.memory_of({n: v for n, v in found.items() if n != "memory"})
    return found


def page(numbers: Numbers, by_hand: str) -> str:
    """The whole page as Markdown."""
    machine = numbers[_ABOUT_MACHINE]
    facts = [f"{name} {value}" for name, value in machine.items() if name not in (DAY, COMMIT)]
    lines = [
        "# Benchmarks",
        "",
        "Every delivery of every run was counted from the topics afterwards.",
        "The meaning of the numbers and where the time goes follow below, all measures at the end.",
        f"The machine: {', '.join(facts)}.",
        "",
        "| | result | target | |",
        "|---|---|---|---|",
        *(_row(text, name, numbers) for name, text in HEADLINE.items()),
        "",
        f"![changes a second]({PICTURE.name})",
        "",
    ]
    return "\n".join(lines) + by_hand + _ALL + "".join(_measures(numbers))


def _row(text: str, name: str, numbers: Numbers) -> str:
    measure, _, short = name.partition(".")
    value = numbers.get(measure, {}).get(short)
    if value is None:
        target = report.TARGETS.get(name)
        return _cells(text, NOT_MEASURED, str(target or ""), "")
    return _cells(text, report.text_of(value), *report.held(name, value))


def _measures(numbers: Numbers) -> list[str]:
    """A section for each measure."""
    return [_section(name, text, numbers.get(name)) for name, text in MEASURES.items()]


def _section(measure: str, text: str, values: Mapping[str, object] | None) -> str:
    title = f"\n### {measure}\n\n{text}\n"
    if values is None:
        return f"{title}It is {NOT_MEASURED}.\n"
    when = f"Measured on {values[DAY]} at `{values[COMMIT]}`.\n" if DAY in values else ""
    rows = [
        _cells(name, report.text_of(value), *report.held(f"{measure}.{name}", value))
        for name, value in values.items()
        if name not in (DAY, COMMIT)
    ]
    table = "\n".join(["| | value | target | |", "|---|---|---|---|", *rows])
    return f"{title}{when}\n{table}\n"


def _cells(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def picture(throughput: Mapping[str, object]) -> str:
    """Throughput as bars, as SVG."""
    found = {text: throughput.get(name) for name, text in _BARS.items()}
    bars = {text: float(str(speed)) for text, speed in found.items() if speed is not None}
    largest = max(bars.values())
    lines = []
    for place, (text, speed) in enumerate(bars.items()):
        y, width = 10 + place * _BAR, round(_WIDTH * speed / largest)
        lines += [
            f'<text x="{_LEFT - 10}" y="{y + 16}" text-anchor="end">{text}</text>',
            f'<rect x="{_LEFT}" y="{y}" width="{width}" height="22" fill="#3b6ea5"/>',
            f'<text x="{_LEFT + width + 8}" y="{y + 16}">{speed:,.0f}/s</text>',
        ]
    size = f'width="{_LEFT + _WIDTH + 100}" height="{20 + len(bars) * _BAR}"'
    style = 'font-family="sans-serif" font-size="13"'
    return "\n".join(
        [f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>', *lines, "</svg>", ""]
    )


def by_hand_of(text: str) -> str:
    """The text of a page between its headline and the table of all measures."""
    _, heading, rest = text.partition(_SECTION)
    return (heading + rest).partition(_ALL)[0]


def main(result: Path) -> None:
    """Write page, picture and numbers; without a result only the page and the picture."""
    numbers: Numbers = json.loads(NUMBERS.read_text()) if NUMBERS.exists() else {}
    if result.exists():
        day = time.strftime("%Y-%m-%d", time.localtime(result.stat().st_mtime))
        command = ["git", "rev-parse", "--short", "HEAD"]
        commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        numbers = merged(numbers, json.loads(result.read_text()), day, commit)
        NUMBERS.write_text(json.dumps(numbers, indent=2) + "\n")
    by_hand = by_hand_of(PAGE.read_text()) if PAGE.exists() else ""
    PAGE.write_text(page(numbers, by_hand))
    if "throughput" in numbers:
        PICTURE.write_text(picture(numbers["throughput"]))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else RESULT)
