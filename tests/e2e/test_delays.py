"""A hub records up to when each consumer has what each origin wrote, and how late it came."""

from dataclasses import dataclass, replace
from pathlib import Path

from checkpoints.commit.protocol import open_ledger
from checkpoints.query import open_table
from checkpoints.reading.delays import recorded_delays
from checkpoints.tables import TableName
from streaming.core.delivery.day_delay import DayDelay
from streaming.core.model.change import Op
from streaming.core.model.table import DEFAULT_DATASET
from streaming.core.records.record import Applied, Heartbeat
from streaming.hub.batch.hub import resume
from tests.e2e.test_catch_up import Site, a_site

EVERY_MS = 5_000


@dataclass
class Watch:
    """A hub with three replicas whose records are written when it reads them."""

    site: Site

    def batch(self, *acking: int) -> None:
        """A batch in which every replica is heard; these have acknowledged what they were sent."""
        self.site.clock_ms += EVERY_MS - 2_000  # the site adds these
        state = self.site.hub.state
        for rid, author in self.site.authors.items():
            if rid in acking:
                known, covers = state.agreements[f"a{rid}"], state.agreements[f"a{rid}"].sent_covers
                author.send(Applied(author.epoch, covers, 1, known.sent_ruv))
            else:
                author.send(Heartbeat(author.epoch))
            came_ms = self.site.clock_ms + 1_000
            author.received = [replace(one, time_ms=came_ms) for one in author.received]
        self.site.batch()

    def restart(self) -> None:
        """Another process goes on with the state."""
        hub = self.site.hub
        ledger = open_ledger(hub.ledger.store, "next")
        self.site.hub = resume(ledger, hub.settings, hub.outlets)

    def delay(self, origin: int, consumer: int) -> DayDelay:
        """As the hub has it."""
        return self.site.hub.delays.pairs[origin, consumer]


def test_a_consumer_that_is_away_is_late_by_what_it_lacks(tmp_path: Path) -> None:
    """The number is the same before and behind a restart, and stays in the table."""
    watch = Watch(a_site(tmp_path))
    authors = watch.site.authors
    for author in authors.values():
        author.hello(0)
    watch.batch()
    watch.batch(1, 2, 3)
    authors[1].change(1, Op.INSERT, back=0, prim=None, part=False)
    watch.batch(2, 3)
    wrote_ms = watch.site.clock_ms - 1_000

    for number in range(40):
        watch.batch(*((1, 2, 3) if number == 0 else (1, 2)))
        if number == 0:
            authors[1].change(2, Op.UPDATE, back=0, prim=None, part=False)
    lost_ms = wrote_ms + 2 * EVERY_MS
    away, there = watch.delay(1, 3), watch.delay(1, 2)
    watch.restart()
    watch.batch(1, 2)
    after_restart = watch.delay(1, 3)
    authors[3].hello(watch.site.hub.state.agreements["a3"].acked_covers)
    watch.batch(1, 2)
    for _ in range(3):
        watch.batch(1, 2, 3)

    assert (away.complete_to_ms, away.is_lacking) == (lost_ms - 1, True)
    assert away.last_ms == watch.site.clock_ms - 5 * EVERY_MS - lost_ms + 1
    assert there.last_ms == 1_000
    assert there.worst_ms <= 2 * EVERY_MS
    assert after_restart.complete_to_ms == away.complete_to_ms
    assert after_restart.worst_ms == away.worst_ms + EVERY_MS
    back = watch.delay(1, 3)
    assert (back.complete_to_ms, back.is_lacking) == (watch.site.clock_ms - 1_000, False)
    assert back.worst_ms > after_restart.worst_ms
    assert watch.site.hub.state.ruv_of(DEFAULT_DATASET).max_of(1) == authors[1].csn()


def test_delays_are_appended_once_a_minute(tmp_path: Path) -> None:
    """A hub that dies has what was known a minute before; no batch pays for another table."""
    watch = Watch(a_site(tmp_path))
    for author in watch.site.authors.values():
        author.hello(0)
    watch.batch()

    for _ in range(36):
        watch.batch(1, 2, 3)

    table = open_table(tmp_path, TableName.DELAYS)
    assert table is not None
    rows = table.to_pyarrow_table().to_pylist()
    assert {row["batch"] for row in rows} == {1, 13, 25, 37}
    newest = recorded_delays(table, watch.site.hub.state.batch)
    assert set(newest.pairs) == {(a, b) for a in (1, 2, 3) for b in (1, 2, 3) if a != b}
    assert all(one.worst_ms <= 1_000 for one in newest.pairs.values())
