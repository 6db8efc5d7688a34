"""What a hub exports as packets: all since the last one, when it is due, and the same again."""

from dataclasses import dataclass, replace
from pathlib import Path

from checkpoints.commit.epochs import Plan
from connectors.packets.format import packet_files, read_updates, write_updates
from connectors.packets.header import UpdatesHeader
from connectors.wire import decode_answer
from streaming.carriers.carrier import DriverCarrier
from streaming.core.delivery.consumer import ApplyBatch, BufferChunk, Position, receive
from streaming.core.matrix.packets import Place
from streaming.core.model.change import Op
from streaming.core.model.command import Command, CommandName
from streaming.core.model.statuses import AgreementStatus
from streaming.core.records.record import Applied, Item, PacketMarker
from streaming.core.state.topology import Topology
from streaming.hub.batch.hub import resume
from streaming.hub.batch.pipeline import process
from streaming.hub.batch.publishing import publish
from tests.e2e.test_bulk import real_hub, topology_of
from tests.e2e.test_catch_up import Site
from tests.harness.carried import facts_from

FED = "a3"
"""The agreement that is sent packets; its consumer is replica 3."""
EVERY_MS = 3_000
"""So that a packet is due after two batches of 2 s each."""


def fed_topology(every_ms: int = EVERY_MS) -> Topology:
    """Three replicas, the third of which is sent packets."""
    topology = replace(topology_of(("EPOCH", "EPOCH")), page_items=4)
    fed = replace(topology.subscriptions[FED], packet_every_ms=every_ms)
    return replace(topology, subscriptions={**topology.subscriptions, FED: fed})


@dataclass
class FedSite(Site):
    """A hub that writes packets of one agreement into a folder."""

    folder: Path = Path()
    refuses: bool = False

    def write(self, header: UpdatesHeader, records: object) -> bool:
        """Write a packet, or refuse it as a full disk does."""
        if not self.refuses:
            write_updates(self.folder, header, records)  # type: ignore[arg-type]
        return not self.refuses

    def order(self) -> None:
        """A batch with an operator's `export`."""
        self.command(CommandName.EXPORT, FED)

    def command(self, name: CommandName, argument: str) -> None:
        """A batch with an operator's command."""
        self.clock_ms += 10
        number = self.hub.ledger.last.command_number + 1
        self.run(self.hub.next_plan({}, self.clock_ms, [Command(number, name, argument)]))

    def run(self, plan: Plan) -> None:
        """A batch without input."""
        tables = self.hub.settings.topology.tables
        process(self.hub, plan, lambda _: DriverCarrier(facts_from([], tables)))

    def packets(self) -> list[Path]:
        """The packets that are there, the oldest first."""
        return packet_files(self.folder)

    def headers(self) -> list[UpdatesHeader]:
        """Their headers."""
        return [read_updates(path).header for path in self.packets()]

    def notes(self) -> list[PacketMarker]:
        """What the updates topic of the agreement holds: the notes of packets, and nothing else."""
        found = [decode_answer(value) for name, value in self.sent if name == FED]
        notes = [one for one in found if isinstance(one, PacketMarker)]
        assert len(notes) == len(found)
        return notes

    def until_quiet(self) -> None:
        """Batches without input while one is due at this very time."""
        while self.hub.is_due(plan := self.hub.next_plan({}, self.clock_ms, ())):
            self.run(plan)


def fed_site(folder: Path, every_ms: int = EVERY_MS) -> FedSite:
    """A hub with an empty folder of packets."""
    packets = folder / "packets"
    packets.mkdir()
    hub = real_hub(folder / "state", fed_topology(every_ms))
    at = FedSite(hub, [], folder=packets)
    hub.outlets = replace(
        hub.outlets,
        send=lambda name, _id, value: at.sent.append((name, value)),
        write_packet=at.write,
    )
    hub.place_at = lambda _topic, offset: Place("box", offset) if offset else None
    return at


def applied(position: Position, paths: list[Path]) -> tuple[Position, list[Item]]:
    """What a consumer makes of these packets."""
    items = list[Item]()
    for path in paths:
        for record in read_updates(path).records():
            match receive(position, decode_answer(record)):
                case ApplyBatch(after) as batch:
                    position, items = after, items + batch.rows
                case BufferChunk(after):
                    position = after
                case _:
                    pass
    return position, items


def said_hello(at: FedSite) -> Position:
    """Every replica says hello; the fed one's position."""
    for author in at.authors.values():
        author.hello(0)
    at.batch()
    return Position().in_session(at.authors[3].session)


def written(at: FedSite, count: int) -> None:
    """Batches of others, each with a change."""
    for number in range(count):
        at.authors[1].change(number % 4, Op.UPDATE, back=0, prim=None, part=False)
        at.batch()


def test_nothing_goes_out_between_two_packets(tmp_path: Path) -> None:
    """A packet for each batch would be a file every tenth of a second."""
    at = fed_site(tmp_path)
    said_hello(at)
    exported = len(at.packets())

    written(at, 1)
    assert len(at.packets()) == exported
    written(at, 1)
    assert len(at.packets()) == exported + 1
    assert {note.number for note in at.notes()} == {one.number for one in at.headers()}


def test_packets_bring_all_and_each_row_once_a_packet(tmp_path: Path) -> None:
    """What it lacks since the last packet is one batch, cut where that has too many rows."""
    at = fed_site(tmp_path)
    start = said_hello(at)
    written(at, 9)
    at.clock_ms += EVERY_MS
    at.until_quiet()

    position, items = applied(start, at.packets())
    assert position.covers == at.hub.state.hub_epoch
    assert {item.key for item in items} == {f'{{"id":"{n}"}}' for n in range(4)}
    assert [one.number for one in at.headers()] == list(range(1, len(at.packets()) + 1))
    assert at.hub.state.agreements[FED].status is AgreementStatus.IN_SYNC


def test_a_second_export_is_empty(tmp_path: Path) -> None:
    """MultiSite's: the row was raised by the first, and nobody asks whether that arrived."""
    at = fed_site(tmp_path)
    said_hello(at)
    written(at, 1)

    at.order()
    at.order()
    first, second = at.headers()[-2:]
    assert first.content.records == 1
    assert (second.content.records, second.first_prev) == (0, None)
    assert second.row_before == second.row_after == first.row_after


def test_an_idle_hub_exports_what_it_has_got_and_then_rests(tmp_path: Path) -> None:
    """The replica scrubs its outbox by that; a header every few seconds would say nothing."""
    at = fed_site(tmp_path)
    said_hello(at)
    at.clock_ms += EVERY_MS
    at.until_quiet()
    before = len(at.packets())

    at.authors[3].send(Applied(1, 0, 1, Position().ruv, 0))
    at.batch()
    at.clock_ms += EVERY_MS
    at.until_quiet()
    at.clock_ms += 10 * EVERY_MS

    assert not at.hub.is_due(at.hub.next_plan({}, at.clock_ms, ()))
    assert len(at.packets()) == before + 1
    got = at.headers()[-1].got
    assert got is not None
    assert (got.outbox, got.place) == ("box", at.authors[3].offset)


def test_one_that_was_never_heard_is_told_so(tmp_path: Path) -> None:
    """What it sent first may be lost, and it waits for an answer."""
    at = fed_site(tmp_path)
    at.hub.place_at = lambda *_: None
    at.authors[1].hello(0)
    at.batch()
    at.until_quiet()

    assert [(one.session, one.got, one.content.records) for one in at.headers()] == [
        (None, None, 0)
    ]


def test_only_an_order_exports_where_the_clock_does_not(tmp_path: Path) -> None:
    """Someone who carries a stick wants one packet, and the newest."""
    at = fed_site(tmp_path, every_ms=0)
    start = said_hello(at)
    written(at, 6)
    at.clock_ms += 1_000_000
    at.until_quiet()
    assert at.packets() == []

    at.order()
    at.until_quiet()
    assert applied(start, at.packets())[0].covers == at.hub.state.hub_epoch


def test_a_packet_that_cannot_be_written_is_exported_again(tmp_path: Path) -> None:
    """A full disk loses nothing, and keeps nobody else waiting."""
    at = fed_site(tmp_path)
    start = said_hello(at)
    at.refuses = True
    written(at, 5)
    at.refuses = False
    at.clock_ms += 20_000
    at.until_quiet()

    position, items = applied(start, at.packets())
    assert position.covers == at.hub.state.hub_epoch
    assert len({item.key for item in items}) == 4


def test_silence_is_no_absence(tmp_path: Path) -> None:
    """A consumer that answers in a week is not away, and does not hold up the window."""
    at = fed_site(tmp_path)
    said_hello(at)
    written(at, 3)
    at.clock_ms += 10**9
    at.until_quiet()

    state = at.hub.state
    assert state.agreements[FED].status is AgreementStatus.IN_SYNC
    heard = replace(state, replicas={r: one for r, one in state.replicas.items() if r != 3})
    assert state.smallest_mre == heard.smallest_mre


def test_a_packet_is_written_again_as_it_was(tmp_path: Path) -> None:
    """One that was carried off already must be the same, or nobody knows what the replica has."""
    at = fed_site(tmp_path)
    said_hello(at)
    written(at, 6)
    assert at.hub.state.exported == [FED]
    last = at.packets()[-1]
    before, notes = last.read_bytes(), at.notes()
    last.unlink()

    again = resume(at.hub.ledger, at.hub.settings, at.hub.outlets)
    publish(again, again.state)
    assert last.read_bytes() == before
    assert at.notes() == [*notes, notes[-1]]
