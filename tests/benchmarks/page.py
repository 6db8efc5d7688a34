"""Writes the last result as a dated page with its picture: docs/benchmarks.md and .svg.

What is said about it, from the page's next heading on, stays as it is.

python -m tests.benchmarks.page [RESULT.json]
"""

import json
import subprocess
import sys
import time
from pathlib import Path

from tests.benchmarks import report
from tests.benchmarks.report import RESULT, Numbers

PAGE = Path("docs/benchmarks.md")
PICTURE = Path("docs/benchmarks.svg")
_SAID = "\n## "
"""Begins what is written by hand."""

_BARS = {
    "read_and_parse_per_s": "Spark reads and parses, from_json",
    "hub_per_s": "the hub: judged, logged, delivered to three",
    "naive_per_s": "the naive peer: MERGE, append, Kafka sink",
}
_BAR, _LEFT, _WIDTH = 34, 330, 420


def page(numbers: Numbers, day: str, commit: str) -> str:
    """The result as Markdown."""
    machine = ", ".join(f"{name} {value}" for name, value in numbers["machine"].items())
    rows = [
        f"| {' | '.join([name, report.text_of(value), *report.held(name, value)])} |"
        for name, value in report.values_of(numbers)
        if not name.startswith("machine.")
    ]
    return "\n".join(
        [
            "# Benchmarks",
            "",
            f"Measured on {day} at commit `{commit}` by `make bench`, in one run on one machine.",
            f"It has: {machine}.",
            "Every delivery of every run was counted from the topics afterwards.",
            "",
            f"![events a second]({PICTURE.name})",
            "",
            "| measure | value | target | |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


def picture(numbers: Numbers) -> str:
    """Throughput as bars, as SVG."""
    found = {text: numbers["throughput"].get(name) for name, text in _BARS.items()}
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


def main(result: Path) -> None:
    """Write both files."""
    numbers: Numbers = json.loads(result.read_text())
    day = time.strftime("%Y-%m-%d", time.localtime(result.stat().st_mtime))
    command = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    PAGE.parent.mkdir(exist_ok=True)
    _, heading, received = PAGE.read_text().partition(_SAID) if PAGE.exists() else ("", "", "")
    PAGE.write_text(page(numbers, day, commit) + heading + received)
    if "throughput" in numbers:
        PICTURE.write_text(picture(numbers))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else RESULT)
