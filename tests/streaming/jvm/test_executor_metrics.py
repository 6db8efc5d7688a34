"""Spark serves the metrics of its executors with the settings that docs/metrics.md names."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"
QUICK = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1", "spark.ui.port": "0"}
"""A start that takes less time, and any port that is free."""

SERVING = """
import sys, urllib.request
from ast import literal_eval
from streaming.jvm.session import started
with started("metrics", literal_eval(sys.argv[1])) as spark:
    spark.range(10).count()
    with urllib.request.urlopen(spark.sparkContext.uiWebUrl + sys.argv[2]) as answer:
        print(answer.read().decode())
"""


@pytest.mark.more
def test_executors_are_scraped_once_sparks_pages_are_on() -> None:
    """Prometheus can read what it finds at the path on the page."""
    page = PAGE.read_text()
    block = next(one for one in re.findall(r"```toml\n(.*?)```", page, re.DOTALL) if "ui" in one)
    settings = {**tomllib.loads(block)["spark"], **QUICK}
    path = re.findall(r"`(/metrics/\S+)`", page)[0]

    done = subprocess.run(
        [sys.executable, "-c", SERVING, repr(settings), path],
        capture_output=True,
        text=True,
        check=True,
    )

    families = list(text_string_to_metric_families(done.stdout))
    tasks = next(one for one in families if one.name == "metrics_executor_completedTasks_total")
    assert sum(sample.value for sample in tasks.samples) > 0
