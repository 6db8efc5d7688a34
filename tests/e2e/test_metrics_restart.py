"""What a hub counts goes on with the next one."""

from pathlib import Path

from pyspark.sql import SparkSession

from connectors.kafka.embedded.broker import Broker
from tests.harness.served_hub import serving
from tests.harness.site import site


def test_it_goes_on_counting_after_a_restart(
    tmp_path: Path, broker: Broker, spark: SparkSession, topic_prefix: str
) -> None:
    """What counts since the state was made agrees with the tables, whichever hub counts."""
    names = ("slackwater_conflicts_total", "slackwater_quarantined_total", "slackwater_hub_epoch")
    with site(tmp_path, broker.bootstrap_servers, topic_prefix) as two:
        a, b = two.replicas.values()
        with serving(two, spark) as first:
            for one in (a, b):
                one.hello()
                one.write("contended", one.name)
            b.send_bytes(b"no JSON")
            first.takes(a, b)
            before = {name: first.port.value(name) for name in names}

        with serving(two, spark) as second:
            second.reads_its_tables()
            after = {name: second.port.value(name) for name in names}
            of_a = {"agreement": "a", "position": "acked"}
            lag = second.port.value("slackwater_agreement_lag_changes", **of_a)
            status_lag = two.slackwater("status")["agreements"][0]["lag_changes"]
            lag_s = second.port.value("slackwater_agreement_lag_seconds", agreement="a")

    assert after == before
    assert all(before.values())
    assert lag == status_lag
    assert lag_s > 0
