"""docs/metrics.md from the catalogue: `python -m streaming.metrics.page` writes it."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from connectors.agent.metrics import METRICS
from streaming.core.text.markdown import code, table
from streaming.metrics.catalogue import HUB
from streaming.metrics.metric import Metric

PLACE = Path(__file__).parents[2] / "docs" / "metrics.md"

_HEAD = """\
# Metrics

This page is made from `streaming/metrics/catalogue.py` and what it imports; `make docs` writes it.

A hub serves its metrics at `/metrics` of `[http]` (port 9470 on loopback unless configured), in the
text format of Prometheus or in OpenMetrics, as the scraper asks.
A scrape starts no job and asks no broker: the hub answers from memory, and also reads its tables for what only they know, every 15 seconds at most.
What counts since the state was made goes on when a hub starts again; histograms and `slackwater_slow_batches_total` begin anew.
Besides these there are `process_*` metrics of the hub's Python process.

```yaml
scrape_configs:
  - job_name: slackwater
    static_configs: [{targets: ["127.0.0.1:9470"]}]
    # authorization: {credentials_file: /etc/prometheus/slackwater-token}  # with http.token
    # scheme: https                                                       # with http.certificate
```

Spark's own metrics of its executors (tasks, memory, time of garbage collection) are served by Spark, under `/metrics/executors/prometheus` at a port of its own, once its pages are switched on:

```toml
[spark]
"spark.ui.enabled" = "true"
"spark.ui.port" = "4040"
```

Spark's pages listen where the driver does: on loopback unless `spark.master` names a cluster, where everyone who reaches the driver reaches them.

Series of conflicts and refreshes begin at 0 if there are at most 1,000 of them, and otherwise with the first one.
"""


_COLUMNS = ("metric", "type", "unit", "labels", "meaning", "example")


def page() -> str:
    """The whole page."""
    return "\n".join([_HEAD, *map(_section, HUB, HUB.values()), _AGENTS, _agents()])


_AGENTS = """\
## Agents

An agent serves its metrics if it is started with `slackwater agent --metrics-port PORT`, on loopback unless `--metrics-host ADDRESS` says otherwise.
To whom it answers is what `[http]` says of the hub's port: an address that others reach needs `http.token` or `http.client_ca` ([security.md](security.md#the-port)).
Each has the label `replica`; counters begin at 0 when the agent starts.
"""


def _agents() -> str:
    columns = ("metric", "type", "unit", "meaning", "example")
    rows = (
        (
            code(one.name),
            "counter" if one.name.endswith("_total") else "gauge",
            one.unit,
            one.help,
            code(one.query),
        )
        for one in METRICS
    )
    return table(columns, rows)


def _section(title: str, metrics: Iterable[Metric]) -> str:
    return f"## {title}\n\n{table(_COLUMNS, map(_cells, metrics))}"


def _cells(metric: Metric) -> Iterator[str]:
    yield code(metric.name)
    yield metric.type
    yield metric.unit
    yield ", ".join(map(code, metric.labels))
    yield metric.help
    yield code(metric.query)


if __name__ == "__main__":
    PLACE.write_text(page(), encoding="utf-8")
