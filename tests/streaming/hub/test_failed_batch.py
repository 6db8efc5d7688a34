"""A hub whose batch failed behind its commit: what it has in memory is not what is committed."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.sql import SparkSession

from checkpoints.commit.faults import FaultPoint
from streaming.core.model.errors import OvertakenError
from streaming.hub.batch.pipeline import process
from streaming.hub.service import Service
from tests.harness import verdict
from tests.harness.hub_process import TIMEOUT_S
from tests.harness.site import Site
from tests.model.hub import HubKilledError


def publishing_fails(point: FaultPoint) -> None:
    """Fail between the commit of a batch and what follows it."""
    if point is FaultPoint.AFTER_COMMIT:
        raise HubKilledError


def take_next(service: Service, at: Site) -> None:
    """Process one batch of all that the topics hold."""
    ends = {one.changes: one.ends.end(one.changes) for one in at.replicas.values()}
    process(service.hub, service.hub.next_plan(ends, 0, ()), service.planned)


def test_no_batch_follows_one_that_failed(pair: Site, spark: SparkSession) -> None:
    """It would judge the next records from the rows and positions of the batch before."""
    service = Service(pair.config(), spark, publishing_fails)
    a, b = pair.replicas.values()
    a.write("row", "a")
    with pytest.raises(HubKilledError):
        take_next(service, pair)
    b.write("row", "b")

    with pytest.raises(OvertakenError):
        take_next(service, pair)

    with pair.running(spark) as again:
        again.takes(a, b)
        again.brings(a, b)
    verdict.check(pair)


def test_a_hub_whose_batch_failed_ends_even_if_its_topics_changed(
    pair: Site, spark: SparkSession
) -> None:
    """A right that is taken away makes both happen; it would read on, and process nothing more."""
    service: Service

    def both(point: FaultPoint) -> None:
        if point is FaultPoint.BEFORE_COMMIT:
            service.is_misplaced = True
            raise HubKilledError

    service = Service(pair.config(), spark, both)
    with ThreadPoolExecutor(1) as pool:
        end = threading.Event()
        work = pool.submit(service.run, end)
        try:
            assert HubKilledError.__name__ in repr(work.exception(TIMEOUT_S))
        finally:
            end.set()
