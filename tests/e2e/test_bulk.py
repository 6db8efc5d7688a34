"""The stages' bulk decisions are core's rule, one change at a time."""

from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from checkpoints.commit.epochs import Checkpoint, Plan
from checkpoints.commit.protocol import create_state, open_ledger
from checkpoints.store import StateStore
from checkpoints.tables import TableName
from checkpoints.times import time_of
from connectors import wire
from streaming.carriers.carrier import Carrier, DriverCarrier
from streaming.core.batch.sending import EpochMark, RangeRefresh, Refresh, SendingView
from streaming.core.conflict.judge import Judged
from streaming.core.intake.intake import Intake
from streaming.core.intake.shares import BatchBounds
from streaming.core.model.change import Change, Op, RowKey
from streaming.core.model.column_filter import ColumnFilter
from streaming.core.model.function import ConflictRule, parse_function
from streaming.core.model.row import RowState
from streaming.core.model.table import ColumnType, OnHidden, Table
from streaming.core.records.arrival import ControlOutcome
from streaming.core.records.kept_bytes import KeptBytes
from streaming.core.records.kinds import KIND_OF
from streaming.core.records.record import Commit, Hello, ReceivedRecord
from streaming.core.retention.purge import Purge
from streaming.core.state.hub_state import HubState
from streaming.core.state.membership import adopted
from streaming.core.state.topology import Subscription, Topology
from streaming.filters.row_predicate import RowPredicate
from streaming.functions import ConflictFacts, Image, Winner
from streaming.hub.batch.hub import Hub, resume
from streaming.hub.batch.pipeline import process
from streaming.hub.batch.settings import BatchSettings, Effects
from streaming.hub.resync.pages import ResyncSource
from streaming.hub.upkeep import MaterializeEvery
from streaming.stages.checked import checked_records
from streaming.stages.intake import take
from streaming.stages.publish import ChunkLimits
from streaming.stages.window import Window
from tests.harness.carried import facts_from
from tests.harness.examples import examples
from tests.harness.histories import NUMBERED, OPEN_STEPS, STEPS, Author, Steps, batches
from tests.harness.other_values import Elsewhere
from tests.reference.batch import decide
from tests.reference.window import last_touched
from tests.streaming.stages.batches import nothing_evicted

COLUMNS = {"id": ColumnType.INT64, "v": ColumnType.TEXT, "w": ColumnType.TEXT}
USER = "tests.e2e.test_bulk:longer"
FUNCTIONS = (
    *("EPOCH", "EPOCH(2)", "EPOCH_TRANS", "EPOCH2", "OLD(w)", "MAX(v)", "MAX_DELETE_WIN(v)"),
    *("MAX_INS(v)", "MAX_DEL_WIN_INS(v)", "CSN", "PRIMARY(r1)", "PASS", USER),
)
GENERATION = "00000001000000000000"
assert {parse_function(one).rule for one in FUNCTIONS} == {*ConflictRule}, (
    "a function is in no history"
)


def longer(row: Image | None, change: Image | None, facts: ConflictFacts) -> Image | Winner:
    """A user's function: deletes win, one replica's changes are merged, another's make it fail."""
    if row is None or change is None:
        return Winner.CHANGE
    if facts.author == 3:
        raise ValueError("not this one")
    return {**row, **change} if facts.author == 2 else Winner.ROW


def topology_of(functions: tuple[str, str]) -> Topology:
    """Two tables with these functions, and three replicas that get both."""
    tables = {
        name: Table(name, ("id",), COLUMNS, replace(parse_function(text), replica=1))
        for name, text in zip("tu", functions, strict=True)
    }
    subscriptions = {f"a{r}": Subscription(f"a{r}", r, frozenset(tables)) for r in (1, 2, 3)}
    return Topology(tables, subscriptions, {USER: longer})


def two_datasets(topology: Topology) -> Topology:
    """The same with u in a data set of its own, and each replica served one of the two."""
    tables = {**topology.tables, "u": replace(topology.tables["u"], dataset="other")}
    served = {1: "t", 2: "u", 3: "t"}
    subscriptions = {f"a{r}": Subscription(f"a{r}", r, frozenset(t)) for r, t in served.items()}
    return replace(topology, tables=tables, subscriptions=subscriptions)


def filtered(topology: Topology) -> Topology:
    """The same, two replicas of which are shown some rows only, or some columns."""
    texts = {2: {"t": "w IS NULL", "u": "w = 'x'"}, 3: {"t": "v <> 'o' AND NOT w IS NULL"}}
    subscriptions = {
        name: replace(
            one,
            rows={
                table: RowPredicate(text, topology.tables[table])
                for table, text in texts.get(one.consumer, {}).items()
            },
            columns={"u": ColumnFilter(frozenset({"id", "v"}))} if one.consumer == 3 else {},
        )
        for name, one in topology.subscriptions.items()
    }
    tables = {**topology.tables, "t": replace(topology.tables["t"], on_hidden=OnHidden.QUARANTINE)}
    return replace(topology, tables=tables, subscriptions=subscriptions)


def all_rows(topology: Topology) -> Topology:
    """The same."""
    return topology


def archives(topology: Topology) -> Topology:
    """The same, two replicas of which are sent no deletes."""
    subscriptions = {
        name: replace(one, sends_deletes=one.consumer == 3)
        for name, one in topology.subscriptions.items()
    }
    return replace(topology, subscriptions=subscriptions)


BOTH = st.tuples(st.sampled_from(FUNCTIONS), st.sampled_from(FUNCTIONS))


@dataclass
class Model:
    """Core's hub with everything it needs around it, in memory."""

    state: HubState
    topology: Topology
    rows: dict[RowKey, RowState] = field(default_factory=dict)
    known: dict[str, set[str]] = field(default_factory=dict)
    marks: list[EpochMark] = field(default_factory=list)
    intake: Intake = field(init=False)

    def batch(self, received: list[ReceivedRecord], clock_ms: int) -> list[Judged | Refresh]:
        """One batch by the exact rule."""
        history = {csn: frozenset(contents) for csn, contents in self.known.items()}
        view = SendingView(
            0,
            0,
            {},
            clock_ms,
            nudged=False,
            marks=lambda a, to: [m for m in self.marks if a < m.hub_epoch <= to],
        )
        decision = decide(self.state, received, self.rows, self.topology, view, history)
        self.rows |= decision.rows
        for entry in decision.entries:
            if isinstance(entry, Judged):
                self.known.setdefault(entry.arrived.change.csn, set()).add(entry.arrived.content)
        for one in decision.intake.quarantined:
            if one.change is not None and one.content is not None:
                self.known.setdefault(one.change.csn, set()).add(one.content)
        if decision.hub_epoch > self.state.hub_epoch:
            self.marks.append(
                EpochMark(decision.hub_epoch, len(decision.entries), decision.state.ruvs)
            )
        self.state = decision.state
        self.intake = decision.intake
        return [entry for entry in decision.entries if not isinstance(entry, RangeRefresh)]


def real_hub(
    root: Path, topology: Topology, window_rows: int = 1_000, pending_changes: int = 1_000_000
) -> Hub:
    """The pipeline's hub on real Delta tables, publishing into nothing."""
    store = StateStore(root)
    state = adopted(HubState(1, GENERATION), topology, [1, 2, 3])
    create_state(store, Checkpoint(state, {"1": 0, "2": 0, "3": 0}, {}, 0), "test")
    outlets = Effects(
        send=lambda _a, _i, _v: None,
        flush=frozenset,
        originals=lambda places: dict.fromkeys(places, KeptBytes(b"", 0)),
        revalidate=lambda records: records,
        maintenance=NeverDone(),
        resyncs=cast("ResyncSource", NeverDone()),
    )
    chosen = BatchSettings(
        topology,
        {"1": 1, "2": 2, "3": 3},
        {1: "one", 2: "two", 3: "three"},
        65_534,
        ChunkLimits(3, 1_000),
        BatchBounds(1_000_000, 1_000.0, 1_000.0),
        pending_changes=pending_changes,
        open_transactions=1_000_000,
        window_rows=window_rows,
        kept_image_bytes=200,  # those of few rows
        materialize_every=MaterializeEvery(1_000_000, 1_000_000),
    )
    return resume(open_ledger(store, "test"), chosen, outlets)


class NeverDone:
    """Maintenance, and a source of resyncs, that take longer than any test."""

    def materialize(self, after: int, to: int) -> "Future[None]":
        """Bring `rows` up to date, some day."""
        del after, to
        return Future()

    def maintain(self) -> "Future[None]":
        """Keep files and logs few, some day."""
        return Future()

    vacuum = maintain

    def start(self, work: object) -> "Future[None]":
        """Find what a consumer lacks, some day."""
        del work
        return Future()

    def find_purge(self, asked: object) -> "Future[Purge | None]":
        """Find what may be purged, some day."""
        del asked
        return Future()

    def purge(self, purged: object) -> "Future[bool]":
        """Purge it, some day."""
        del purged
        return Future()


FEW = 1
"""The size of a window that forgets all but a row, or of open changes that keeps none."""

NOT_SHRUNK = settings(
    phases=[Phase.explicit, Phase.generate],
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def histories(usual: int) -> settings:
    """The same ones in every run, none of them made smaller: each takes a hub on real tables."""
    return examples(usual, share=150, is_fixed=True, base=NOT_SHRUNK)


@histories(10)
@given(STEPS, BOTH)
def test_bulk_decides_as_core_does(steps: Steps, functions: tuple[str, str]) -> None:
    """A verdict that depended on how it was computed would make replays lie."""
    check(steps, topology_of(functions))


@pytest.mark.slow
@histories(12)
@given(STEPS, BOTH)
def test_bulk_decides_as_core_does_in_two_data_sets(
    steps: Steps, functions: tuple[str, str]
) -> None:
    """A run that went on from one data set into the other would move the wrong RUV."""
    check(steps, two_datasets(topology_of(functions)))


@pytest.mark.more
@histories(8)
@given(STEPS, BOTH, st.sampled_from([FEW, 1_000]), st.sampled_from([filtered, archives]))
def test_bulk_decides_as_core_does_with_filters(
    steps: Steps,
    functions: tuple[str, str],
    window_rows: int,
    sends_some: Callable[[Topology], Topology],
) -> None:
    """Who writes a row that is hidden from him, or hides it, is not decided for in bulk."""
    check(steps, sends_some(topology_of(functions)), window_rows=window_rows)


@histories(6)
@given(STEPS, BOTH, st.sampled_from([all_rows, archives]))
def test_bulk_decides_as_core_does_without_tombstones(
    steps: Steps, functions: tuple[str, str], sends: Callable[[Topology], Topology]
) -> None:
    """Who has not seen what is purged is not decided for in bulk."""
    check_batches(batches(steps), sends(topology_of(functions)), forgets=True)


@histories(6)
@given(STEPS, BOTH)
def test_bulk_decides_as_core_does_without_the_images(
    steps: Steps, functions: tuple[str, str]
) -> None:
    """The executors keep them, and only what is contended or waits brings them to the driver."""
    check(steps, topology_of(functions), apart=True)


@histories(6)
@given(STEPS, BOTH)
def test_bulk_decides_as_core_does_with_a_full_window(
    steps: Steps, functions: tuple[str, str]
) -> None:
    """What it forgot before `rows` had it is looked up in the changelog, after a restart too."""
    check(steps, topology_of(functions), window_rows=FEW)


@pytest.mark.more
@histories(6)
@given(OPEN_STEPS, BOTH)
def test_bulk_decides_as_core_does_with_open_changes_on_disk(
    steps: Steps, functions: tuple[str, str]
) -> None:
    """How many of them memory may hold decides nothing, after a restart neither."""
    check(steps, topology_of(functions), pending_changes=FEW)


@pytest.mark.slow
@histories(6)
@given(OPEN_STEPS, BOTH)
def test_bulk_decides_as_core_does_with_open_changes_of_two_data_sets_on_disk(
    steps: Steps, functions: tuple[str, str]
) -> None:
    """A transaction in both waits for what is below it in either."""
    check(steps, two_datasets(topology_of(functions)), apart=True, pending_changes=FEW)


def test_what_waits_on_disk_in_one_data_set_stays_there_when_the_other_goes() -> None:
    """The CSNs of both are of one clock, so what waits in one lies among those of the other."""
    steps = [
        (3, "transaction", 1, Op.UPDATE, True),
        (3, "transaction", 2, Op.DELETE, False),
        (3, "change", 2, Op.DELETE, True),
        (3, "transaction", 1, Op.INSERT, False),
        (3, "repeated after its commit", 3, Op.DELETE, True),
        (3, "change", 2, Op.DELETE, True),
        (3, "commit", 2, Op.DELETE, False),
        (3, "change", 1, Op.UPDATE, True),
        (2, "batch", 1, Op.UPDATE, True),
        (3, "commit", 0, Op.UPDATE, True),
    ]
    check(steps, two_datasets(topology_of(("PASS", "EPOCH2"))), apart=True, pending_changes=FEW)


def check(
    steps: Steps,
    topology: Topology,
    *,
    apart: bool = False,
    window_rows: int = 1_000,
    pending_changes: int = 1_000_000,
) -> None:
    """Run the steps through both, batch by batch; `apart`: the images are elsewhere."""
    check_batches(
        batches(steps),
        topology,
        apart=apart,
        window_rows=window_rows,
        pending_changes=pending_changes,
    )


def check_batches(
    cut: Iterable[list[ReceivedRecord]],
    topology: Topology,
    *,
    apart: bool = False,
    window_rows: int = 1_000,
    pending_changes: int = 1_000_000,
    forgets: bool = False,
) -> None:
    """Run these batches through both; `apart`: the images are elsewhere.

    `forgets`: each batch finds the tombstones purged up to the last hub epoch, whoever lacks them.
    """
    compared = comparable if pending_changes > FEW else without_evicted
    with TemporaryDirectory() as folder:
        hub = real_hub(Path(folder), topology, window_rows, pending_changes)
        model = Model(hub.state, topology)

        for number, received in enumerate(cut, start=1):
            expected = model.batch(received, number * 10_000)
            plan = hub.next_plan({"1": number}, number * 10_000, ())
            facts = facts_from(received, topology.tables)
            carrier = Elsewhere(facts, topology.tables) if apart else DriverCarrier(facts)
            process(hub, plan, partial(read, carrier))

            assert compared(hub.state) == compared(model.state)
            found, wanted = logged(hub, number), [summary(entry) for entry in expected]
            assert found == (looked_up(wanted, found) if window_rows == FEW else wanted)
            quarantined, counts = model.intake.quarantined, model.intake.counts
            assert kept(hub, number) == sorted((q.rid, q.offset, q.reason) for q in quarantined)
            assert events_in(hub, number) == [event(*one) for one in model.intake.events]
            assert counts.items() <= hub.ledger.last.counts.items()
            if forgets:
                epoch = hub.state.hub_epoch
                hub.state = replace(hub.state, tombstone_epoch=epoch)
                model.state = replace(model.state, tombstone_epoch=epoch)
                continue
            if FEW in (window_rows, pending_changes) and number % 3 == 2:
                hub = restarted(hub)
                model.state = model.state.waiting_anew()
        if forgets:  # what is in no table
            return
        again = restarted(hub)
        assert compared(again.state) == compared(hub.state.waiting_anew())
        edge = max(hub.window.edge, again.window.edge)
        assert len(again.window) <= window_rows
        assert above(edge, again.window, model.rows) == above(edge, hub.window, model.rows)


def test_a_truncate_meets_no_tombstone_that_may_be_purged() -> None:
    """The hub has it in its window until it starts again, and then finds it nowhere."""

    def story() -> Iterator[list[ReceivedRecord]]:
        deletes, truncates = Author(2), Author(1)
        deletes.hello(0)
        deletes.change(0, Op.INSERT, back=0, prim=None, part=False)
        deletes.change(0, Op.DELETE, back=0, prim=None, part=False)
        yield cut_of(deletes)
        truncates.hello(0)
        truncates.change(0, Op.INSERT, back=0, prim=None, part=False)
        truncates.spoil(Op.TRUNCATE)
        yield cut_of(truncates)

    check_batches(story(), topology_of(("EPOCH", "EPOCH")), forgets=True)


def between(author: Author, prim: str) -> None:
    """A transaction begins between changes that wait, and stays open: only those below it go."""
    author.change(0, Op.INSERT, back=9, prim="", part=False)
    author.send(Commit(prim))


def again(author: Author, prim: str) -> None:
    """A transaction that waits gets a change and a commit once more."""
    waiting = next(c for c in author.sent_changes if c.prim_csn not in (None, prim)).prim_csn
    author.send(Commit(waiting or ""))
    author.change(0, Op.INSERT, back=0, prim=waiting, part=False)
    author.send(Commit(prim))


def used_again(author: Author, prim: str) -> None:
    """The CSN of a change that waits is used again, with other content."""
    waiting = next(c for c in author.sent_changes if c.prim_csn is None)
    author.send(waiting._replace(after=None, op=Op.DELETE))
    author.send(waiting)
    author.send(Commit(prim))


@pytest.mark.parametrize("limit", [FEW, 1_000])
@pytest.mark.parametrize("follows", [between, again, used_again])
def test_what_names_a_change_that_waits_on_disk_is_decided_as_in_memory(
    limit: int, follows: Callable[[Author, str], None]
) -> None:
    """What waits in one piece is one in memory, until a record means a part of it."""
    author = Author(1)

    def cut() -> list[ReceivedRecord]:
        received = cut_of(author)
        author.sent_changes += [r.record for r in received if isinstance(r.record, Change)]
        return received

    def story() -> Iterator[list[ReceivedRecord]]:
        author.hello(0)
        prim = author.change(0, Op.INSERT, back=0, prim="", part=False)
        yield cut()
        for key in range(4):
            author.change(key, Op.UPDATE, back=0, prim=None, part=False)
            author.send(Commit(author.members(key, Op.UPDATE, one_table=True)))
        yield cut()
        follows(author, prim)
        yield cut()

    check_batches(story(), topology_of(("EPOCH", "EPOCH")), pending_changes=limit)


@pytest.mark.parametrize("is_ended_by_hello", [False, True])
def test_memory_changes_no_order_of_repairs(*, is_ended_by_hello: bool) -> None:
    """A transaction whose changes came in another order than that of their CSNs is kept by CSN.

    It ends by a change that is bad, or by a hello behind which it is committed.
    """
    author = Author(1)

    def story() -> Iterator[list[ReceivedRecord]]:
        author.hello(0)
        prim = author.change(2, Op.INSERT, back=0, prim="", part=False)
        author.change(0, Op.INSERT, back=0, prim=prim, part=False)
        author.change(1, Op.INSERT, back=3, prim=prim, part=False)
        author.change(3, Op.INSERT, back=0, prim=prim, part=False)
        yield cut_of(author)
        if is_ended_by_hello:
            author.hello(0)
        yield cut_of(author)
        if not is_ended_by_hello:
            author.change(2, Op.INSERT, back=0, prim=prim, part=False)
            author.spoil()
        author.send(Commit(prim))
        yield cut_of(author)

    check_batches(story(), topology_of(("EPOCH", "EPOCH")), pending_changes=FEW)


def cut_of(author: Author) -> list[ReceivedRecord]:
    """What it has sent since the last cut."""
    received, author.received = author.received, []
    return received


def restarted(hub: Hub) -> Hub:
    """The hub that the next process would be."""
    return resume(open_ledger(hub.ledger.store, "again"), hub.settings, hub.outlets)


def above(edge: int, window: Window, keys: Collection[RowKey]) -> dict[RowKey, object]:
    """Those of these rows in a window that were touched above this hub epoch.

    What ranges block stands in the state.
    """
    return {
        key: (
            *row[:4],
            {one for one in row.realign if one.hub_epoch > edge and not one.is_of_range},
        )
        for key, row in window.held(keys).items()
        if last_touched(row) > edge
    }


@pytest.mark.parametrize("rid", [1, NUMBERED])
def test_whole_transactions_go_in_bulk(rid: int) -> None:
    """Record by record, every change of a transaction would cost as much as twenty plain ones."""
    topology = topology_of(("EPOCH", "EPOCH"))
    author = Author(rid)
    author.hello(0)
    for key in (0, 3, 1):
        author.send(Commit(author.members(key, Op.INSERT, one_table=False)))
        author.change(key, Op.DELETE, back=0, prim=None, part=False)
    intake = Intake(adopted(HubState(1, GENERATION), topology, [1, 2, 3]), topology)
    facts = checked_records(facts_from(author.received, topology.tables), topology.tables)

    taken = take(intake, facts, nothing_evicted)

    assert (taken.eligible.num_rows, taken.commits.num_rows) == (10, 3)
    assert intake.eligible == []
    assert [type(received.record) for received, _ in intake.events] == [Hello]


def read(carrier: Carrier, _plan: Plan) -> Carrier:
    """What reading a plan gives."""
    return carrier


def comparable(state: HubState) -> dict[str, object]:
    """What must agree between two states; the order of memory does not count.

    What went to quarantine with its transaction is known by `ended_csns`; a hub that starts reads
    it back from both.
    """
    opened = state.open
    quarantined = {c: set(v) - {opened.ended_csns.get(c)} for c, v in opened.quarantined.items()}
    return {
        "hub_epoch": state.hub_epoch,
        "ruvs": {name: ruv.text() for name, ruv in state.ruvs.items()},
        "replicas": {rid: replace(r, known_sessions=()) for rid, r in state.replicas.items()},
        "agreements": state.agreements,
        "to_send": state.to_send,
        "changes": opened.changes,
        "committed": opened.lists.committed,
        "lists": opened.lists.by_list,
        "ended": opened.ended,
        "ended_csns": opened.ended_csns,
        "quarantined": {c: kept for c, kept in quarantined.items() if kept},
    }


def without_evicted(state: HubState) -> dict[str, object]:
    """The same where open and ended changes may be on disk."""
    found = comparable(state)
    ended = {context: one.reason for context, one in state.open.ended.items()}
    left = {name: found[name] for name in found if name not in ("changes", "lists", "ended_csns")}
    del left["committed"], left["quarantined"]
    return {**left, "ended": ended, "mre": state.smallest_mre}


def summary(entry: Judged | Refresh) -> tuple[object, ...]:
    """An entry as the changelog shows it."""
    if isinstance(entry, Refresh):
        return "refresh", entry.to, entry.key, entry.row.csn, entry.row.image, str(entry.cause)
    change, after = entry.arrived.change, entry.after
    image = after.image if entry.verdict == "accepted" else None
    facts = (entry.before.author, entry.before.hub_epoch, entry.before.csn, entry.realign_epoch)
    cause = entry.cause.value if entry.cause else None
    verdict = (entry.verdict.value, cause)
    return "change", change.csn, change.key, verdict, image, entry.arrived.mre, *facts


def logged(hub: Hub, batch: int) -> list[tuple[object, ...]]:
    """The changelog of a batch in hub order."""
    rows = hub.ledger.store.read(TableName.CHANGELOG).sort_by("place").to_pylist()
    found_: list[tuple[object, ...]] = []
    for row in (r for r in rows if r["batch"] == batch):
        if row["kind"] == "refresh":
            found_.append(
                ("refresh", row["to"], row["key"], row["csn"], row["image"], row["cause"])
            )
        else:
            facts = (row["row_author"], row["row_epoch"], row["row_csn"], row["realign_epoch"])
            verdict = (row["verdict"], row["cause"])
            found_.append(
                ("change", row["csn"], row["key"], verdict, row["image"], row["mre"], *facts)
            )
    return found_


NOT_LOOKED_UP = (0, 0, None)
"""Author, hub epoch and CSN of a row that the window forgot, before a change that has seen it."""


def looked_up(
    wanted: list[tuple[object, ...]], found: list[tuple[object, ...]]
) -> list[tuple[object, ...]]:
    """What core says of a batch, without what of the rows before nobody had to look up.

    That is of changes that were accepted, and not above what their replica had.
    """
    return [
        (*mine[:6], *seen(mine, theirs)) if mine[3:4] == (("accepted", None),) else mine
        for mine, theirs in zip(wanted, found, strict=True)
    ]


def seen(mine: tuple[object, ...], theirs: tuple[object, ...]) -> tuple[object, ...]:
    """The row before a change, and its realign, without what was not looked up."""
    mre, author, epoch, row_csn, realign = cast(tuple[int, ...], mine[5:])
    is_unknown = theirs[6:9] == NOT_LOOKED_UP and epoch <= mre
    row = NOT_LOOKED_UP if is_unknown else (author, epoch, row_csn)
    return *row, 0 if theirs[9:] == (0,) and realign <= mre else realign


def kept(hub: Hub, batch: int) -> list[tuple[int, int, str]]:
    """What a batch put into quarantine."""
    rows = hub.ledger.store.read(TableName.QUARANTINE).to_pylist()
    return sorted((r["rid"], r["offset"], r["reason"]) for r in rows if r["batch"] == batch)


def event(received: ReceivedRecord, outcome: ControlOutcome) -> tuple[object, ...]:
    """A control record, or the change that stops a replica, and its outcome as events show them."""
    assert received.record is not None
    is_change = isinstance(received.record, Change)
    value = "" if is_change else wire.encode(received.session or "", received.record).decode()
    at = received.rid, received.offset, time_of(received.time_ms), received.session
    return f"{received.rid}", *at, KIND_OF[type(received.record)].value, outcome.value, value


def events_in(hub: Hub, batch: int) -> list[tuple[object, ...]]:
    """The events of a batch, in their order."""
    names = ("topic", "rid", "offset", "time", "session", "kind", "outcome", "value")
    rows = hub.ledger.store.read(TableName.EVENTS).to_pylist()
    here = [row for row in rows if row["batch"] == batch]
    assert {row["hub_epoch"] for row in here} <= {hub.state.hub_epoch}
    return [tuple(row[name] for name in names) for row in here]
