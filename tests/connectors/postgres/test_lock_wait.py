"""The agent waits for the locks of users, and gives up before the server kills one of them."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from connectors.agent.contract import StoreBusyError
from tests.connectors.postgres.apply_site import CREATE_ITEMS, ITEMS, ApplySite, item, made

ROWS = 10
CONTENTION_S = 6


@pytest.fixture
def site(dsn: str) -> Iterator[ApplySite]:
    """A replica whose table has a few rows."""
    with psycopg.connect(dsn, autocommit=True) as session:
        fill = f"INSERT INTO items SELECT n FROM generate_series(1, {ROWS}) n"
        yield made(dsn, session, [ITEMS], CREATE_ITEMS, fill)


def test_after_some_failures_a_batch_queues_for_the_table(site: ApplySite) -> None:
    """Otherwise it starves where somebody always has a row of it open."""
    with psycopg.connect(site.dsn) as user, ThreadPoolExecutor(1) as pool:
        user.execute("UPDATE items SET price = 1 WHERE id = 5")
        for _ in range(3):
            begun = time.monotonic()
            with pytest.raises(StoreBusyError):
                site.apply(item(5, "theirs"))
            assert time.monotonic() - begun < 1

        applied = pool.submit(site.apply, item(5, "theirs"))
        time.sleep(1.2)  # longer than the server takes to look for deadlocks
        assert not applied.done()
        user.execute("UPDATE items SET price = 2 WHERE id = 6")
        user.commit()

        assert applied.result(timeout=5).refused == ()
    assert site.rows("SELECT name FROM items WHERE id = 5") == [("theirs",)]
    assert site.lock_wait.failures == 0


def test_no_user_is_the_victim_and_the_agent_does_not_starve(site: ApplySite) -> None:
    """Each writes the same rows, in opposite orders."""
    until = time.monotonic() + CONTENTION_S

    with ThreadPoolExecutor(2) as pool:
        users = [pool.submit(_write_until, site, until) for _ in range(2)]
        batches = 0
        while time.monotonic() < until:
            try:
                site.apply(*(item(number, f"n{batches}-{number}") for number in range(1, ROWS + 1)))
                batches += 1
            except StoreBusyError:
                continue
        written = [user.result() for user in users]

    assert batches > 0
    assert all(count > 0 for count in written)


def _write_until(site: ApplySite, until: float) -> int:
    """How many transactions were committed; any error of the server is raised."""
    count = 0
    with psycopg.connect(site.dsn) as user:
        while time.monotonic() < until:
            for number in range(ROWS, 0, -1):
                user.execute("UPDATE items SET price = %s WHERE id = %s", (count, number))
                time.sleep(0.005)
            user.commit()
            count += 1
    return count
