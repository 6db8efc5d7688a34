"""A consumer that comes back is sent what it lacks, page by page, and then lives on."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from checkpoints.commit.epochs import Plan
from checkpoints.reading.reader import open_state
from streaming.carriers.carrier import DriverCarrier
from streaming.core.delivery.consumer import ApplyBatch, BufferChunk, Position, receive
from streaming.core.model.change import Op
from streaming.core.model.ruv import Ruv
from streaming.core.model.statuses import AgreementStatus
from streaming.core.model.table import DEFAULT_DATASET
from streaming.core.records.record import Applied, Hello, Item, ReceivedRecord
from streaming.facts.history.images import hub_images
from streaming.hub.batch.hub import Hub
from streaming.hub.batch.pipeline import process
from tests.e2e.test_bulk import real_hub, topology_of
from tests.harness.carried import facts_from
from tests.harness.histories import Author
from tests.reference.wire import decode_update

PAGE_ITEMS = 3


@dataclass
class Site:
    """A hub whose records are kept, and the topics of its replicas."""

    hub: Hub
    sent: list[tuple[str, bytes]]
    authors: dict[int, Author] = field(default_factory=lambda: {r: Author(r) for r in (1, 2, 3)})
    clock_ms: int = 10_000

    def batch(self) -> None:
        """One micro-batch of the records since the last."""
        self.clock_ms += 2_000
        received = [one for author in self.authors.values() for one in author.received]
        for author in self.authors.values():
            author.received.clear()
        offsets = {str(r): a.offset for r, a in self.authors.items()}
        process(
            self.hub,
            self.plan(offsets),
            lambda _: DriverCarrier(facts_from(received, self.hub.settings.topology.tables)),
        )

    def plan(self, offsets: dict[str, int] | None = None) -> Plan:
        """The next plan at this time."""
        return self.hub.next_plan(offsets or {}, self.clock_ms, ())

    def run_until_quiet(self) -> int:
        """Batches without input, as long as one is due; how many."""
        count = 0
        while self.hub.is_due(self.plan()):
            self.batch()
            count += 1
        return count


def a_site(folder: Path) -> Site:
    """A hub with small pages."""
    sent: list[tuple[str, bytes]] = []
    hub = real_hub(folder, replace(topology_of(("EPOCH", "EPOCH")), page_items=PAGE_ITEMS))
    hub.outlets = replace(hub.outlets, send=lambda name, _id, value: sent.append((name, value)))
    return Site(hub, sent)


def received(site: Site, name: str, position: Position) -> tuple[Position, list[Item], list[int]]:
    """What a consumer makes of its topic: its position, the items, the hub epochs it applied."""
    items: list[Item] = []
    epochs: list[int] = []
    for value in (v for n, v in site.sent if n == name):
        match receive(position, decode_update(value)):
            case ApplyBatch(after, hub_epoch) as batch:
                position = after
                items += batch.rows
                epochs.append(hub_epoch)
            case BufferChunk(after):
                position = after
            case _:
                pass
    return position, items, epochs


def test_a_consumer_that_starts_again_gets_every_page_once(tmp_path: Path) -> None:
    """A page that ran over its end would send the next ones twice, or with a gap between."""
    site = a_site(tmp_path)
    for author in site.authors.values():
        author.hello(0)
    site.batch()
    for number in range(8):
        site.authors[1].change(number % 4, Op.UPDATE, back=0, prim=None, part=False)
        site.authors[2].change(4 + number % 3, Op.UPDATE, back=0, prim=None, part=False)
        site.batch()
    site.sent.clear()

    site.authors[3].hello(0)
    site.batch()
    pages = 1 + site.run_until_quiet()
    site.authors[1].change(9, Op.INSERT, back=0, prim=None, part=False)
    site.batch()

    start = Position().in_session(site.authors[3].session)
    position, items, epochs = received(site, "a3", start)
    assert pages >= 16 // PAGE_ITEMS
    assert len(items) == len({item.csn for item in items}) == 17
    assert epochs == sorted(set(epochs))
    assert position.covers == site.hub.state.hub_epoch
    assert position.ruv.max_csns() == site.hub.state.ruv_of(DEFAULT_DATASET).max_csns()
    assert site.hub.state.agreements["a3"].status is AgreementStatus.IN_SYNC


def test_a_long_absence_costs_the_last_of_each_row(tmp_path: Path) -> None:
    """Five rows that were written 200 times in 40 hub epochs are sent once or twice each.

    Most writes name a part of the columns; what is sent is the whole row.
    """
    site = a_site(tmp_path)
    for author in site.authors.values():
        author.hello(0)
    site.batch()
    for number in range(40):
        for key in range(5):
            site.authors[1].change(key, Op.UPDATE, back=0, prim=None, part=number % 3 > 0)
        if number == 30:
            site.authors[2].change(4, Op.DELETE, back=0, prim=None, part=False)
        site.batch()
    site.sent.clear()

    site.authors[3].hello(0)
    site.batch()
    pages = 1 + site.run_until_quiet()

    start = Position().in_session(site.authors[3].session)
    position, items, epochs = received(site, "a3", start)
    rows = hub_images(open_state(tmp_path), site.hub.settings.topology.tables)
    held = {(item.table, item.key): item.after for item in items}
    assert position.covers == site.hub.state.hub_epoch
    assert len(rows) == 5
    assert {key: image for key, image in held.items() if image is not None} == rows
    assert len(items) <= 2 * len(rows)
    assert len(epochs) == pages


def test_an_answer_makes_no_hub_epoch(tmp_path: Path) -> None:
    """An applied that raised the hub epoch would be answered, and applied, for ever."""
    site = a_site(tmp_path)
    for author in site.authors.values():
        author.hello(0)
    site.batch()
    before = site.hub.state

    for rid, author in site.authors.items():
        covers = before.agreements[f"a{rid}"].sent_covers
        author.send(Applied(1, covers, 1, before.ruv_of(DEFAULT_DATASET)))
    site.batch()

    assert site.hub.state.hub_epoch == before.hub_epoch
    assert site.run_until_quiet() == 0


def test_an_idle_hub_finds_out_who_is_silent(tmp_path: Path) -> None:
    """Where nobody writes and nobody is heard no batch has anything else to do."""
    site = a_site(tmp_path)
    for author in site.authors.values():
        author.hello(0)
    site.batch()
    site.authors[1].change(1, Op.INSERT, back=0, prim=None, part=False)
    site.batch()
    site.run_until_quiet()
    timeout_ms = site.hub.settings.topology.ack_timeout_ms

    site.hub.unread = frozenset({3})
    for _ in range(2):
        site.clock_ms += timeout_ms
        site.run_until_quiet()

    states = {name: one.status_text for name, one in site.hub.state.agreements.items()}
    assert states.pop("a3") == "in_sync", "its acknowledgement may be among what is not read"
    assert states == dict.fromkeys(("a1", "a2"), "change_tracking: silent")
    assert site.run_until_quiet() == 0


def test_a_hello_beyond_the_hub_stops_that_agreement(tmp_path: Path) -> None:
    """A consumer that has seen more than the hub knows of a history that the hub lost."""
    site = a_site(tmp_path)
    ahead = Hello(1, 99, 1, Ruv(), None, lost=False)
    site.authors[1].received.append(ReceivedRecord(1, 0, 1_000, "one", ahead))
    site.batch()

    assert site.hub.state.agreements["a1"].status is AgreementStatus.HUB_BEHIND
    assert site.hub.state.replicas[1].stop_offset == 0
