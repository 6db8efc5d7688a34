"""docs/metrics.md is made from the catalogue, and the catalogue keeps to Prometheus' rules."""

import re

import pytest

from streaming.metrics.catalogue import HUB_METRICS
from streaming.metrics.metric import Metric, MetricType
from streaming.metrics.page import PLACE, page

NAMES = {one.name for one in HUB_METRICS}

REQUIRED = {
    "slackwater_hub_epoch",
    "slackwater_conflicts_total",
    "slackwater_quarantined_total",
    "slackwater_pending_changes",
    "slackwater_agreement_lag_seconds",
}


def test_the_page_is_current() -> None:
    """`make docs` writes it; dashboards and alerts are written by what it says."""
    assert PLACE.read_text("utf-8") == page()


def test_no_name_is_given_twice_and_none_is_missing() -> None:
    """Two metrics of one name cannot be told apart."""
    assert len(NAMES) == len(HUB_METRICS)
    assert NAMES >= REQUIRED


@pytest.mark.parametrize("metric", HUB_METRICS, ids=[one.name for one in HUB_METRICS])
def test_a_metric_keeps_to_the_rules_of_names(metric: Metric) -> None:
    """Prefix, base units at the end, `_total` for what only grows; no label is in the name."""
    assert re.fullmatch(r"slackwater(_[a-z]+)+", metric.name)
    assert metric.name.endswith("_total") == (metric.type is MetricType.COUNTER)
    assert metric.unit in {"", "seconds", "bytes", "ratio"}
    assert metric.family.endswith(metric.unit)
    assert not {"id", "csn", "key", "batch", "offset"} & set(metric.labels)


@pytest.mark.parametrize("metric", HUB_METRICS, ids=[one.name for one in HUB_METRICS])
def test_a_metric_says_what_it_is_and_what_to_ask(metric: Metric) -> None:
    """A query that names what is not there answers nothing."""
    asked = set(re.findall(r"slackwater_\w+", metric.query))
    asked = {re.sub(r"_(bucket|sum|count)$", "", name) for name in asked}

    assert metric.help.endswith(".")
    assert metric.help.isascii()
    assert asked
    assert asked <= NAMES
