"""A hub that is killed anywhere in a resync goes on with it: no row is missing, none is strange."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from checkpoints import query
from checkpoints.commit.faults import FaultPoint
from checkpoints.tables import TableName
from connectors.kafka.embedded.broker import Broker
from streaming.core.model.errors import HubError
from streaming.hub.service import Service
from tests.harness import verdict
from tests.harness.commits import last_commit
from tests.harness.fault_points import OF_TOPICS
from tests.harness.hub_process import wait_until
from tests.harness.scripted import ScriptedReplica
from tests.harness.site import Site, site
from tests.model.hub import HubKilledError
from tests.model.replica import row_of

pytestmark = pytest.mark.more

ROWS = 400
LIMITS = {
    "chunk_items": 3,
    "resync_page_rows": 3,
    "resync_pages": 2,
    "materialize_every_epochs": 1_000,
}
ROUND_S = 0.5
"""From one round of traffic to the next; the more there is, the longer a hub takes."""
PAGES = {"c", "d"}
"""Who is in resync: c gets pages of tracked rows, d ranges of a full copy."""
OF_INPUT = {
    *(FaultPoint.AFTER_CONFLICTS, FaultPoint.AFTER_QUARANTINE, FaultPoint.AFTER_PENDING),
    *(FaultPoint.AFTER_EVENTS, FaultPoint.AFTER_DELAYS, FaultPoint.AFTER_ROWS),
}
"""Where a batch with nothing but pages does not come; the hub dies there between two of them."""


@pytest.fixture
def four(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with four replicas and small pages."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "abcd", LIMITS) as made:
        yield made


@dataclass(slots=True)
class Traffic:
    """What replicas write and acknowledge while hubs die; each round fills every table."""

    at: Site
    rounds: int = 0

    def go_on(self) -> None:
        """One round: a conflict, a bad record, a transaction across batches, rows of all parts."""
        a, b, *_ = self.at.replicas.values()
        for replica in self.at.replicas.values():
            replica.catch_up()
        number, self.rounds = self.rounds, self.rounds + 1
        a.write("contended", f"a{number}")
        b.write("contended", f"b{number}")
        a.write(f"k{number * 37 % ROWS:03}", f"live {number}")
        b.write(f"k{number * 53 % ROWS:03}", None)
        b.write(f"across{number}", "", inside=f"t{number}")
        if f"t{number - 1}" in b.open:  # a hello, which a missing batch asks for, ends it
            b.commit(f"t{number - 1}")
        b.send_bytes(b"no record")


def strangers(replica: ScriptedReplica) -> None:
    """Rows that were lost, changed and made by hand: nobody was told."""
    for number in range(0, ROWS, 7):
        del replica.rows[row_of(f"k{number:03}")]
        replica.rows[row_of(f"k{number:03}x")] = "by hand"
        replica.rows[row_of(f"k{number + 1:03}")] = "by hand"


def epochs(at: Site) -> list[dict[str, Any]]:
    """Plans and commits, in order: of their many columns those that are looked at here."""
    columns = ("batch", "kind", "hub", "pages")
    table = query.open_table(at.state, TableName.EPOCHS)
    found = query.select(table, TableName.EPOCHS, columns=columns, order_by="batch")
    return query.records(found)


def hubs(at: Site) -> set[str]:
    """The processes that have written to `epochs`."""
    return {row["hub"] for row in epochs(at)}


def sends_pages(at: Site, earlier: set[str], *, now: bool) -> bool:
    """Whether the new hub has planned a page for each of those in resync; `now`: in this batch."""
    rows = epochs(at)
    plans = [row for row in rows if row["kind"] == "plan" and row["hub"] not in earlier]
    sent = [
        row["batch"] for row in plans if {page["agreement"] for page in row["pages"] or ()} == PAGES
    ]
    return rows[-1]["batch"] in sent if now else bool(sent)


def dies(at: Site, spark: SparkSession, fatal: FaultPoint, traffic: Traffic) -> None:
    """Let a hub work under traffic until it comes to this point of a batch with pages."""
    earlier, now = hubs(at), fatal not in OF_INPUT
    is_due = False

    def reach(point: FaultPoint) -> None:
        nonlocal is_due
        if point is FaultPoint.AFTER_PLAN:
            is_due = sends_pages(at, earlier, now=now)
        if point is fatal and is_due:
            raise HubKilledError

    with ThreadPoolExecutor(1) as pool:
        end = threading.Event()
        work = pool.submit(lambda: Service(at.config(), spark, reach).run(end))
        try:
            wait_until(
                lambda: is_dead(work, traffic), lambda: f"the hub dies {fatal}", every_s=ROUND_S
            )
        finally:
            end.set()
    with pytest.raises((HubKilledError, HubError), match=r"^$|HubKilledError"):
        work.result()


def is_dead(work: "Future[None]", traffic: Traffic) -> bool:
    """Whether the hub has died; otherwise there is traffic."""
    if not work.done():
        traffic.go_on()
    return work.done()


@pytest.mark.parametrize(
    "points",
    [
        pytest.param([*OF_TOPICS][::3], id="some"),
        pytest.param([*OF_TOPICS], id="all", marks=pytest.mark.slow),
    ],
)
def test_a_hub_that_dies_at_every_point_of_a_resync_ends_it(
    four: Site, spark: SparkSession, points: list[FaultPoint]
) -> None:
    """Pages and ranges are planned, logged, committed and published: a death may divide any two.

    A hub dies at each of these points in turn; last where it comes once a minute only, for until
    then the pages go out.
    """
    a, _, c, d = four.replicas.values()
    for replica in four.replicas.values():
        replica.hello()
    for number in range(ROWS):
        a.write(f"k{number:03}", "first")
    with four.running(spark) as hub:
        hub.takes(*four.replicas.values())
        hub.brings(*four.replicas.values())
        for name in PAGES:
            four.slackwater("pause", name)
        wait_until(lambda: open_paused(four) == PAGES, lambda: "c and d are paused")
        strangers(d)
        for number in range(0, ROWS, 2):
            a.write(f"k{number:03}", "second")
        hub.takes(a)
        four.slackwater("resync", "c")
        four.slackwater("resync", "d", "--full")

    traffic = Traffic(four)
    for point in sorted(points, key=lambda one: one is FaultPoint.AFTER_DELAYS):
        if point is FaultPoint.AFTER_ROWS:
            configure(four, "materialize_every_epochs", 1)
        dies(four, spark, point, traffic)
        under_way = {one["agreement"] for one in four.slackwater("resync")}
        is_seldom = point is FaultPoint.AFTER_DELAYS
        assert under_way == PAGES or is_seldom, f"a resync is over after the death {point}"

    traffic.at.replicas["b"].commit(f"t{traffic.rounds - 1}")
    configure(four, "resync_page_rows", 500)
    with four.running(spark) as hub:
        wait_until(lambda: not is_under_way(four), lambda: f"{four.slackwater('resync')}")
        hub.brings(*four.replicas.values())
    verdict.check_every_change_once(four)
    verdict.check_conflicts(four)
    verdict.check_order(four)
    verdict.check_commits(four)
    verdict.check_ruv(four)
    verdict.check_rows(four)
    verdict.check_materialized(four)
    without_ranges = {name: one for name, one in four.replicas.items() if name != "d"}
    verdict.check_records(replace(four, replicas=without_ranges))
    assert "by hand" not in d.rows.values()
    assert c.rows == d.rows


def configure(at: Site, limit: str, value: int) -> None:
    """Give the next hub another limit."""
    old = f"{limit} = {LIMITS[limit]}"
    text = at.file.read_text()
    assert old in text
    at.file.write_text(text.replace(old, f"{limit} = {value}"))


def open_paused(at: Site) -> set[str]:
    """The agreements that are paused."""
    commit = last_commit(at.state)
    agreements = commit.state.agreements.values() if commit else ()
    return {one.name for one in agreements if one.status_text == "change_tracking: paused"}


def is_under_way(at: Site) -> bool:
    """Whether a resync is under way; everybody applies and acknowledges meanwhile."""
    for replica in at.replicas.values():
        replica.catch_up()
    return bool(at.slackwater("resync"))
