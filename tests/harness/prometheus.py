"""A real Prometheus on loopback that scrapes a hub, and its answers."""

import json
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.harness.hub_process import wait_until
from tests.harness.served_hub import free_port

JOB = "slackwater"

_CONFIG = """\
global:
  scrape_interval: 1s
  evaluation_interval: 1s
rule_files: [{rules}]
scrape_configs:
  - job_name: {job}
    static_configs: [{{targets: {targets}}}]
"""


@dataclass(frozen=True, slots=True)
class Series:
    """One series of an answer, with its present value."""

    labels: dict[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A server that scrapes every second."""

    port: int
    process: "subprocess.Popen[bytes]"

    def ask(self, expr: str) -> list[Series]:
        """The answer to an instant query, which is a vector or a scalar."""
        data = self._get("/api/v1/query?" + urllib.parse.urlencode({"query": expr}))
        if data["resultType"] == "scalar":
            return [Series({}, float(data["result"][1]))]
        return [Series(one["metric"], float(one["value"][1])) for one in data["result"]]

    def scrapes(self, seconds: int) -> None:
        """Wait until the hub has been scraped for so long."""
        wait_until(
            lambda: any(
                one.value >= seconds
                for one in self._ask_or_nothing(f'count_over_time(up{{job="{JOB}"}}[10m])')
            ),
            lambda: f"{seconds} scrapes",
        )

    def _ask_or_nothing(self, expr: str) -> list[Series]:
        assert self.process.poll() is None, "prometheus has ended"
        try:
            return self.ask(expr)
        except (urllib.error.URLError, ConnectionError):
            return []  # it is starting

    def _get(self, path: str) -> dict[str, Any]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=30) as answer:
            found = json.load(answer)["data"]
        assert isinstance(found, dict)
        return found


@contextmanager
def prometheus(
    folder: Path, ports: Sequence[int], rules: Path | None = None
) -> Iterator[Prometheus]:
    """A Prometheus that scrapes these ports, and evaluates the rules."""
    config = folder / "prometheus.yml"
    named = json.dumps(str(rules)) if rules else ""
    targets = json.dumps([f"127.0.0.1:{one}" for one in ports])
    config.write_text(_CONFIG.format(rules=named, job=JOB, targets=targets))
    port = free_port()
    process = subprocess.Popen(
        [
            *("prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'tsdb'}"),
            *(f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"),
        ]
    )
    try:
        yield Prometheus(port, process)
    finally:
        process.terminate()
        process.wait()
