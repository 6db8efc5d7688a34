"""A replica that was away longer than the window is judged against `rows` and the tail."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from checkpoints.tables import TableName
from connectors.kafka.embedded.broker import Broker
from tests.harness import verdict
from tests.harness.hub_process import wait_until
from tests.harness.site import Site, site

pytestmark = pytest.mark.more

EVERY_EPOCHS = 4


@pytest.fixture(params=[500_000, pytest.param(0, marks=pytest.mark.slow)])
def small(
    request: pytest.FixtureRequest, tmp_path: Path, broker: Broker, topic_prefix: str
) -> Iterator[Site]:
    """A hub whose window holds two rows, with three replicas; 0: executors carry its input."""
    limits = {
        "window_rows": 2,
        "kept_image_bytes": 1,
        "materialize_every_epochs": EVERY_EPOCHS,
        "driver_batch_records": request.param,
    }
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "abc", limits) as made:
        yield made


def test_late_writes_of_a_replica_that_was_away(small: Site, spark: SparkSession) -> None:
    """The window has long forgotten the rows; the verdicts are those of a window without end."""
    a, b, c = (small.replicas[name] for name in "abc")
    with small.running(spark) as hub:
        for replica in (a, b, c):
            replica.hello()
        for key in ("updated", "deleted", "untouched", "rewritten"):
            a.write(key, "first")
        hub.takes(a)
        hub.brings(b, c)
        for number in range(EVERY_EPOCHS):
            a.write("updated", f"while c is away {number}")
            hub.takes(a)
            hub.brings(b)
            b.write("deleted", None if number % 2 else f"while c is away {number}")
            hub.takes(b)
            hub.brings(a)
        for number in range(EVERY_EPOCHS):
            a.write(f"filler {number}", "pushes the others out of the window")
            hub.takes(a)

        def is_merged() -> bool:
            a.write("filler", "its batch notes how far `rows` is")
            hub.takes(a)
            return bool(verdict.last_commit(small)["rows_epoch"])

        wait_until(is_merged, lambda: "`rows` has some of them", every_s=1)

    with small.running(spark) as hub:
        late = [c.write(key, "late") for key in ("updated", "deleted", "untouched", "new")]
        again = c.write("updated", "late again")
        hub.takes(c)
        hub.brings(c)
        early = a.write("rewritten", "by its author")
        hub.takes(a)
        retried = c.write("updated", "retried after the refresh")
        hub.takes(c)

    log = verdict.rows_of(small.state, TableName.CHANGELOG)
    verdicts = {row["csn"]: row["verdict"] for row in log if row["kind"] == "change"}
    expected = ["rejected", "rejected", "accepted", "accepted"]
    assert [verdicts[change.csn] for change in late] == expected
    assert verdicts[again.csn] == "rejected"
    assert verdicts[early.csn] == verdicts[retried.csn] == "accepted"
    kinds = {
        row["loser_csn"]: row["kind"] for row in verdict.rows_of(small.state, TableName.CONFLICTS)
    }
    assert kinds[late[0].csn] == "update_origin_change"
    assert kinds[late[1].csn] == "update_recently_deleted"
    for replica in (a, b, c):
        replica.catch_up()
    verdict.check(small)


@pytest.fixture
def pair(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with two replicas that materializes now and then."""
    limits = {"materialize_every_epochs": 4}
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "ab", limits) as made:
        yield made


def test_refresh_that_is_still_on_its_way_after_a_restart(pair: Site, spark: SparkSession) -> None:
    """What blocks a row stands in `rows`; a later entry of that row must not hide it.

    b is sent a refresh of its own row, for a late change. Behind it, and behind the materialized
    epoch, the row is refreshed for a too. Then the hub starts anew, and b writes the row without
    having seen its refresh, which would undo that write at b.
    """
    a, b = pair.replicas.values()
    with pair.running(spark) as hub:
        a.hello()
        b.hello()
        late = b.change("k", "late")
        b.write("k", "first")
        b.publish(late)
        hub.takes(a, b)
        while not verdict.last_commit(pair)["rows_epoch"]:
            a.write("filler", "moves the hub on")
            hub.takes(a)
        a.write("k", "without having seen it")
        hub.takes(a)

    blocked = b.write("k", "without the refresh")
    pair.run_available(spark)

    log = verdict.rows_of(pair.state, TableName.CHANGELOG)
    assert [row["verdict"] for row in log if row["csn"] == blocked.csn] == ["rejected"]
    for replica in (a, b):
        replica.catch_up()
    verdict.check(pair)
