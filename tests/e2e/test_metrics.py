"""A hub at work tells Prometheus what its catalogue names, and the same as its command line."""

import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime

import pytest
from pyspark.sql import SparkSession

from checkpoints.config import store_comparison
from checkpoints.store import StateStore
from connectors.kafka.embedded.broker import Broker
from streaming.core.records.record import Reason
from streaming.facts.consumers.compared import ComparedRound
from streaming.metrics.catalogue import (
    CERTIFICATE_EXPIRY,
    CHECKPOINT_TIME,
    HUB_METRICS,
    LOCAL_WRITES,
)
from tests.harness.busy_hub import collide, leave_open, say_hello, spoil
from tests.harness.hub_process import wait_until
from tests.harness.served_hub import Port, ServedHub, serving
from tests.harness.site import Site, site

WITHOUT_VALUES = {CERTIFICATE_EXPIRY.name, CHECKPOINT_TIME.name, LOCAL_WRITES.name}
"""There is no certificate here, a log gets its first checkpoint after twenty commits, and nobody
writes at one replica only."""


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory, broker: Broker) -> Iterator[Site]:
    """A hub with three replicas."""
    folder = tmp_path_factory.mktemp("metrics")
    with site(folder, broker.bootstrap_servers, "metrics.", "abc") as made:
        yield made


@pytest.fixture(scope="module")
def hub(at: Site, spark: SparkSession) -> Iterator[ServedHub]:
    """The hub behind conflicts, quarantine, open changes, duplicates and a consumer that lags."""
    with serving(at, spark) as running:
        say_hello(at, running)
        for round_ in range(3):
            collide(at, running, str(round_))
        spoil(at, running)
        leave_open(at, running)
        for name in "ab":
            found = ComparedRound(name, 9, 2, more_differ=False, in_flight=1, seconds=3.5)
            store_comparison(StateStore(at.state), found.text(), 1_700_000_000_000)
        running.reads_its_tables()
        yield running


def test_it_exposes_exactly_what_the_catalogue_names(hub: ServedHub) -> None:
    """Dashboards and alerts are written by the catalogue; a name more has no meaning anywhere."""
    wait_until(
        lambda: bool(hub.port.values("slackwater_kafka_offsets_behind")), lambda: "Spark's progress"
    )

    found = hub.port.names()

    assert set(found) == {one.name for one in HUB_METRICS}
    assert {name for name, count in found.items() if not count} <= WITHOUT_VALUES


def test_both_formats_are_served(hub: ServedHub) -> None:
    """Prometheus asks for OpenMetrics; a person's browser does not."""
    plain = hub.port.get("/metrics")
    open_metrics = hub.port.get("/metrics", "application/openmetrics-text;version=1.0.0")

    assert plain.type.startswith("text/plain; version=")
    assert open_metrics.type.startswith("application/openmetrics-text; version=1.0.0")
    assert open_metrics.text.endswith("# EOF\n")
    assert "# UNIT slackwater_agreement_lag_seconds seconds\n" in open_metrics.text


def test_metrics_agree_with_the_command_line(at: Site, hub: ServedHub) -> None:
    """One model: nobody has to ask which of two numbers is right."""
    port, status = hub.port, at.slackwater("status")

    assert port.value("slackwater_hub_epoch") == status["hub_epoch"] > 0
    assert port.value("slackwater_batches_total") == status["batch"]
    assert _by(port, "slackwater_conflicts_total", "kind") == status["conflicts"]["by_kind"]
    assert status["conflicts"]["by_kind"]["update_origin_change"] > 0
    kept = _by(port, "slackwater_quarantine_records", "reason")
    assert kept == status["quarantine"]["by_reason"] == {"json": 1}
    for one in status["replicas"]:
        name = one["name"]
        of_it = {
            state: port.value("slackwater_pending_changes", replica=name, state=state)
            for state in ("pending", "waiting")
        }
        assert of_it == {"pending": one["pending"], "waiting": one["waiting"]}
        assert port.value("slackwater_replica_mre", replica=name) == one["mre"]
        assert port.value("slackwater_replica_state", replica=name, state=one["state"]) == 1
        assert port.value("slackwater_duplicates_total", replica=name) == one["duplicates"]
    for one in status["agreements"]:
        of = {"agreement": one["name"]}
        for name in ("epochs", "changes"):
            labels = of | ({"position": "acked"} if name == "changes" else {})
            assert port.value(f"slackwater_agreement_lag_{name}", **labels) == one[f"lag_{name}"]
        assert port.value("slackwater_agreement_level", **of) == one["level"]
        assert (port.value("slackwater_agreement_lag_seconds", **of) > 0) == (one["lag_s"] > 0)
        for position, counted in (("acked", "changes"), ("sent", "unsent")):
            labels = of | {"position": position}
            lacking = _by(port, "slackwater_origin_lag_changes", "origin", **labels)
            assert lacking == {o["origin"]: o[counted] for o in one["origins"] if o[counted]}


def test_the_last_comparison_is_exposed(hub: ServedHub) -> None:
    """Of who was compared: a zero of anybody else would say that his rows do not differ."""
    found = {
        name: hub.port.values(f"slackwater_compared_{name}")
        for name in ("rows", "differing_rows", "timestamp_seconds")
    }

    assert {name: sorted(of.values()) for name, of in found.items()} == {
        "rows": [9, 9],
        "differing_rows": [2, 2],
        "timestamp_seconds": [1.7e9, 1.7e9],
    }


def test_delays_agree_with_the_command_line(at: Site, hub: ServedHub) -> None:
    """It reads the table, which is up to a minute behind: too early a time, and never too late.

    Of a consumer that lacks something it may know nothing yet in the first minute of a hub.
    """
    metric = "slackwater_origin_complete_to_timestamp_seconds"
    told = {
        (one["name"], delay["origin"]): delay
        for one in at.slackwater("status")["agreements"]
        for delay in one["delays"]
    }

    now_s = {of: hub.port.value(metric, agreement=of[0], origin=of[1]) for of in told}

    pairs = {(a, b) for a in "abc" for b in "abc" if a != b}
    assert pairs >= set(told) >= {of for of in pairs if of[0] != "c"}
    for of, delay in told.items():
        then_s = datetime.fromisoformat(delay["complete_to"]).timestamp()
        assert then_s <= now_s[of] + 0.001
        assert 0 <= delay["delay_s"] <= delay["worst_today_s"] + 0.001
    document = hub.port.get("/status").document["agreements"]
    known = {(a["name"], d["origin"]): d["delay_s"] for a in document for d in a["delays"]}
    assert pairs >= known.keys() >= {of for of in pairs if of[0] != "c"}
    assert all(delay_s > 0 for (consumer, _), delay_s in known.items() if consumer == "c")


def test_metrics_say_what_happened(hub: ServedHub) -> None:
    """The workload was: conflicts, a record that is no JSON, one that came twice, open changes."""
    port = hub.port

    assert port.value("slackwater_quarantined_total", replica="b", reason=Reason.JSON) == 1
    assert port.value("slackwater_duplicates_total", replica="a") == 1
    assert port.value("slackwater_pending_changes", replica="a") == 2
    assert port.value("slackwater_pending_oldest_seconds", replica="b") > 0
    assert port.value("slackwater_changes_total", verdict="rejected") > 0
    assert port.value("slackwater_refreshes_total") > 0
    assert port.value("slackwater_agreement_lag_changes", agreement="c", position="acked") > 0
    assert port.value("slackwater_agreement_time_to_level_seconds", agreement="c") > 0
    assert port.value("slackwater_batch_seconds_count") > 0
    assert port.value("slackwater_hubs_seen") == 1


def test_the_conflicts_are_those_of_the_table(at: Site, hub: ServedHub) -> None:
    """By table and by who lost, as `slackwater conflicts list` shows them."""
    listed = at.slackwater("conflicts", "list")
    expected = Counter((one["kind"], one["function"], one["table"], one["loser"]) for one in listed)

    counts = hub.port.values("slackwater_conflicts_total")

    found = {
        (of["kind"], of["function"], of["table"], of["replica"]): count
        for labels, count in counts.items()
        if count and (of := dict(labels))
    }
    assert found == expected


def test_health_over_http(at: Site, hub: ServedHub) -> None:
    """A probe restarts a process by /livez, and sends traffic by /readyz."""
    ready = hub.port.get("/readyz")
    live = hub.port.get("/livez")
    status = hub.port.get("/status")

    assert (live.code, live.text) == (200, "ok\n")
    assert (ready.code, ready.document["ready"], ready.document["reasons"]) == (200, True, [])
    assert ready.document["hub_epoch"] == at.slackwater("status")["hub_epoch"]
    assert status.code == 200
    assert _without_ages(status.document) == _without_ages(at.slackwater("status"))


def _by(port: Port, metric: str, label: str, **labels: str) -> dict[str, float]:
    """The values of a metric summed up by a label; only those with some."""
    found = Counter[str]()
    for of, value in port.values(metric).items():
        if set(labels.items()) <= of:
            found[dict(of)[label]] += int(value)
    return {name: count for name, count in found.items() if count}


def _without_ages(value: object) -> object:
    """A document without what depends on when it was asked for, or was last written."""
    match value:
        case dict():
            ages = re.compile(r".*(age_s|lag_s|_at|stale|delays)$")
            return {k: _without_ages(v) for k, v in value.items() if not ages.match(k)}
        case list():
            return [_without_ages(one) for one in value]
        case _:
            return value
