"""Pages are planned when their rows are prepared, and hold what was written meanwhile."""

import itertools
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pytest

from checkpoints.reading.resync_rows import SORTED, SortedRows
from streaming.core.model.change import RowKey
from streaming.core.model.row import RowState, with_image
from streaming.core.model.row_name import text_of
from streaming.core.model.ruv import NOTHING_KNOWN
from streaming.core.model.statuses import AgreementStatus
from streaming.core.model.table import ColumnType, Table
from streaming.core.records.arrival import Quarantined
from streaming.core.records.record import Reason
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.hub_state import HubState
from streaming.core.state.replica_state import ReplicaState
from streaming.core.state.topology import Subscription, Topology
from streaming.core.tracking.progress import WorkKind
from streaming.core.tracking.ranges import KeyRange, key_order
from streaming.core.tracking.resync import (
    CoveredPosition,
    PageRows,
    PlannedPage,
    Resync,
    ResyncPage,
    UnackedPage,
)
from streaming.hub.resync.pages import LackingRows, Resyncs
from streaming.stages.standing import RowsAt
from streaming.stages.tracked import TRACKED_ROWS
from streaming.stages.window import Window
from tests.checkpoints.sorted_files import sorted_files
from tests.harness.builders import change, csn

Result = TypeVar("Result")

TABLES = {name: Table(name, ("k",), {"k": ColumnType.TEXT}) for name in ("t", "u")}
TOPOLOGY = Topology(TABLES, {"a2": Subscription("a2", 2, frozenset(TABLES))}, resync_page_rows=2)
END, NOW = 10, 12
ROWS_EPOCH = 9


def key(name: str) -> str:
    """The key of a row."""
    return f'{{"k":"{name}"}}'


@dataclass(slots=True)
class WrittenRows:
    """A ResyncSource of a few rows; `waiting`: work that was started and is not done."""

    folder: Path
    rows: Mapping[str, Collection[str]]
    lacks: Mapping[RowKey, int] = field(default_factory=dict)
    since: Mapping[str, set[str]] = field(default_factory=dict)
    listed: Collection[RowKey] = ()
    asked: list[LackingRows] = field(default_factory=list)
    waiting: list[Callable[[], None]] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)

    def start(self, work: Callable[[], Result]) -> "Future[Result]":
        """Start work; see `finish`."""
        found: Future[Result] = Future()
        self.waiting.append(lambda: found.set_result(work()))
        return found

    def finish(self, count: int = 99) -> None:
        """Do so many of the works that were started."""
        for work in self.waiting[:count]:
            work()
        del self.waiting[:count]

    def lacking(self, asked: LackingRows) -> pa.Table:
        """What the consumer lacks."""
        self.asked.append(asked)
        rows = [{"table": t, "key": k, "tracked": e} for (t, k), e in self.lacks.items()]
        return pa.Table.from_pylist(rows, schema=TRACKED_ROWS)

    def counts(self) -> Mapping[str, int]:
        """The number of rows of each table."""
        return {name: len(keys) for name, keys in self.rows.items()}

    def touched(self, tables: Collection[str], after: int, to: int) -> Mapping[str, set[str]]:
        """What was written between `rows` and the beginning."""
        assert (after, to) == (ROWS_EPOCH, NOW)
        return {name: self.since.get(name, set()) for name in tables}

    def uncarried(self, consumer: int, topology: Topology) -> Collection[RowKey]:
        """What the consumer has listed so."""
        assert (consumer, topology) == (2, TOPOLOGY)
        return self.listed

    def sort(self, agreement: str, table: Table, tracked: pa.Table | None) -> SortedRows:
        """The rows in order, in a folder of their own."""
        asked = {one["key"]: one["tracked"] for one in tracked.to_pylist()} if tracked else {}
        keys = self.rows[table.name] if tracked is None else asked
        self.folders.append(self.folder / f"{agreement}-{len(self.folders)}")
        return sorted_files(self.folders[-1], key_order(table), sorted(keys), tracked=asked)


def state_of(resync: Resync | None, **changed: object) -> HubState:
    """A hub whose consumer 2 is in this resync."""
    agreement = AgreementState(
        "a2", 2, AgreementStatus.RESYNC, session="s", scanned=NOW, resync=resync
    )
    agreement = replace(agreement, **changed)  # type: ignore[arg-type]
    return HubState(
        1, "g", hub_epoch=NOW, replicas={2: ReplicaState(2)}, agreements={"a2": agreement}
    )


BEGUN = Resync(END, CoveredPosition(4, NOTHING_KNOWN), 1_000)


def scanning(
    folder: Path, names: str = "abc", since: Collection[str] = (), **changed: object
) -> tuple[Resyncs, WrittenRows, HubState]:
    """A resync of everything of table t, prepared as far as it goes."""
    source = WrittenRows(folder, {"t": [key(n) for n in names]}, since={"t": {*map(key, since)}})
    state = state_of(BEGUN, scans=frozenset("t"), **changed)
    resyncs = Resyncs(source, TOPOLOGY)
    for _ in range(2):
        resyncs.follow(state, ROWS_EPOCH)
        source.finish()
    return resyncs, source, state


def sent(state: HubState, page: ResyncPage, hub_epoch: int = NOW + 1) -> HubState:
    """The state when this page is committed."""
    agreement = state.agreements["a2"]
    assert agreement.resync is not None
    resync = agreement.resync.page_sent(page, hub_epoch)
    after = replace(agreement, resync=resync, scanned=hub_epoch)
    return replace(state, hub_epoch=hub_epoch, agreements={"a2": after})


# -- planning --------------------------------------------------------------------------------


def test_a_page_is_planned_when_its_rows_are_sorted(tmp_path: Path) -> None:
    """No batch waits for it: what a consumer lacks is found, and sorted, beside the batches."""
    source = WrittenRows(tmp_path, {"t": [key("a")], "u": []}, {("t", key("a")): 7})
    resyncs, state = Resyncs(source, TOPOLOGY), state_of(BEGUN)

    planned = []
    for _ in range(3):
        resyncs.follow(state, ROWS_EPOCH)
        planned.append(resyncs.due(state, 0))
        source.finish()
    resyncs.follow(state, ROWS_EPOCH)

    assert planned == [(), (), (PlannedPage("a2", (KeyRange("t"),)),)]
    assert source.asked == [
        LackingRows(TOPOLOGY.subscriptions["a2"], 4, END, NOTHING_KNOWN, (), is_full=False)
    ]
    assert source.waiting == []


def test_a_page_ends_before_a_table_that_is_not_sorted(tmp_path: Path) -> None:
    """It is sent without the second one, and is not the last."""
    source = WrittenRows(tmp_path, {"t": [], "u": []}, {("t", key("a")): 7, ("u", key("b")): 7})
    resyncs, state = Resyncs(source, TOPOLOGY), state_of(BEGUN)
    resyncs.follow(state, ROWS_EPOCH)
    source.finish()
    resyncs.follow(state, ROWS_EPOCH)
    source.finish(1)

    (planned,) = resyncs.due(state, 0)
    after = sent(state, resyncs.resolved(planned, state))

    assert planned.parts == (KeyRange("t"),)
    assert after.agreements["a2"].resync is not None
    assert after.agreements["a2"].resync.last_page == 0
    assert resyncs.due(after, 0) == ()
    source.finish()
    assert resyncs.due(after, 0) == (PlannedPage("a2", (KeyRange("u"),)),)


def test_a_resync_of_nothing_has_one_page_without_rows(tmp_path: Path) -> None:
    """Nothing need be sorted for it."""
    source = WrittenRows(tmp_path, {})
    resyncs, state = Resyncs(source, TOPOLOGY), state_of(BEGUN)
    resyncs.follow(state, ROWS_EPOCH)
    source.finish()
    resyncs.follow(state, ROWS_EPOCH)

    assert resyncs.due(state, 0) == (PlannedPage("a2", ()),)


@pytest.mark.parametrize(("unacked", "is_due"), [(3, True), (4, False)])
def test_a_consumer_that_is_slow_is_sent_a_few_pages_ahead(
    tmp_path: Path, unacked: int, *, is_due: bool
) -> None:
    """Its topic would hold the whole copy."""
    resyncs, _, state = scanning(tmp_path)
    pages = tuple(UnackedPage(n, ()) for n in range(unacked))
    slow = state_of(replace(BEGUN, unacked=pages), scans=frozenset("t"))

    assert bool(resyncs.due(slow, 0)) is is_due
    assert resyncs.due(state, 0)


@pytest.mark.parametrize(
    "changed",
    [
        {"scanned": NOW - 1},
        {"status": AgreementStatus.REFUSED, "detail": "t"},
        {"status": AgreementStatus.IN_SYNC, "resync": replace(BEGUN, last_page=NOW)},
    ],
    ids=["catching up", "stopped", "last page is sent"],
)
def test_a_page_is_planned_only_behind_all_that_was_sent(
    tmp_path: Path, changed: dict[str, object]
) -> None:
    """The batch sends it live, with its own hub epoch."""
    resyncs, _, state = scanning(tmp_path)
    agreement = replace(state.agreements["a2"], **changed)  # type: ignore[arg-type]

    assert resyncs.due(replace(state, agreements={"a2": agreement}), 0) == ()


def test_what_is_prepared_goes_with_its_resync(tmp_path: Path) -> None:
    """One that begins again has another end, so it is prepared anew."""
    resyncs, source, state = scanning(tmp_path)
    (first,) = source.folders

    again = state_of(replace(BEGUN, end=END + 1), scans=frozenset("t"))
    for _ in range(2):
        resyncs.follow(again, ROWS_EPOCH)
        source.finish()
    (_, second) = source.folders
    still_there = second.exists()
    resyncs.follow(state_of(None), ROWS_EPOCH)

    assert (first.exists(), still_there, second.exists()) == (False, True, False)
    assert state.agreements["a2"].resync != again.agreements["a2"].resync
    assert resyncs.work == {}


def test_the_end_of_a_hub_removes_what_is_still_being_sorted(tmp_path: Path) -> None:
    """Files that nobody reads would stay."""
    source = WrittenRows(tmp_path, {"t": [key("a")]})
    resyncs, state = Resyncs(source, TOPOLOGY), state_of(BEGUN, scans=frozenset("t"))
    for _ in range(2):
        resyncs.follow(state, ROWS_EPOCH)
        source.finish(1)
    resyncs.follow(state, ROWS_EPOCH)

    resyncs.close()
    source.finish()

    assert source.folders
    assert not any(folder.exists() for folder in source.folders)


# -- ranges ----------------------------------------------------------------------------------


def rows_now(names: str) -> Callable[[Collection[RowKey]], Mapping[RowKey, RowState]]:
    """Rows as they stand now: those of these names exist, with an image of their own."""
    existing = {key(name) for name in names.split()}

    def now(keys: Collection[RowKey]) -> Mapping[RowKey, RowState]:
        row = RowState(7, NOW, "new", exists=True, image='{"new":1}')
        return {(t, k): row if k in existing else RowState(7, NOW, "new") for t, k in keys}

    return now


def test_a_range_holds_what_was_written_since_its_rows_were_sorted(tmp_path: Path) -> None:
    """Before the preparation, beside it, and in the batch itself: changed, inserted, deleted."""
    resyncs, _, state = scanning(tmp_path, "abcd", since="a")
    resyncs.note([text_of(("t", key(name))) for name in ("b", "bb")])
    resyncs.note([text_of(("u", key("b")))])
    wanted = PlannedPage("a2", (KeyRange("t", None, key("c")),))

    page = resyncs.resolved(wanted, state)
    ((keys, rows),) = resyncs.range_rows(page, rows_now("a bb"), {})

    assert page.parts == (PageRows(KeyRange("t", None, key("c")), WorkKind.SCAN, 6),)
    assert keys == KeyRange("t", None, key("c"))
    assert rows.schema == SORTED
    found = {row["key"]: (row["author"], row["csn"], row["image"]) for row in rows.to_pylist()}
    new = (7, "new", '{"new":1}')
    assert found == {key("a"): new, key("bb"): new, key("c"): (1, csn(3), "{}")}


def test_a_scan_is_planned_page_by_page_to_its_open_end(tmp_path: Path) -> None:
    """Each page begins where the last one that is committed ended."""
    resyncs, source, state = scanning(tmp_path, "abcde")
    found = []

    for hub_epoch in itertools.count(NOW + 1):
        resyncs.follow(state, ROWS_EPOCH)
        source.finish()
        if not (due := resyncs.due(state, 0)):
            break
        found.append(due[0].parts)
        state = sent(state, resyncs.resolved(due[0], state), hub_epoch)

    assert found == [
        (KeyRange("t", None, key("b")),),
        (KeyRange("t", key("b"), key("d")),),
        (KeyRange("t", key("d"), None),),
    ]
    assert len(source.folders) == 1


def test_a_scan_that_was_rolled_back_is_sorted_anew(tmp_path: Path) -> None:
    """Its consumer, or the hub, started anew in the middle."""
    resyncs, source, state = scanning(tmp_path, "abcde")
    (page,) = resyncs.due(state, 0)
    after = sent(state, resyncs.resolved(page, state))
    resyncs.follow(after, ROWS_EPOCH)
    agreement = after.agreements["a2"]
    assert agreement.resync is not None
    back = replace(agreement, resync=agreement.resync.rolled_back(NOW))
    rolled_back = replace(after, agreements={"a2": back})

    resyncs.follow(rolled_back, ROWS_EPOCH)
    assert resyncs.due(rolled_back, 0) == ()
    source.finish()

    assert resyncs.due(rolled_back, 0) == (page,)
    assert [folder.exists() for folder in source.folders] == [False, True]


# -- tracked rows ------------------------------------------------------------------------------

K = ("t", key("a"))
OLD = RowState(1, 3, csn(3), exists=True, image="{}")
NEW = RowState(2, 11, csn(11, 2), exists=True)


def window_of(*rows: RowState, edge: int = 0) -> Window:
    """A window that holds row K so."""
    window = Window(edge)
    window.put({text_of(K): with_image(row, None) for row in rows})
    return window


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        pytest.param(window_of(), OLD, id="as it was sorted"),
        pytest.param(window_of(OLD), OLD, id="as it was sorted, and in the window"),
        pytest.param(window_of(NEW), with_image(NEW, f"of {NEW.csn}"), id="written since"),
        pytest.param(
            window_of(edge=ROWS_EPOCH + 1),
            RowState(3, 10, "looked up", exists=True, image="of it"),
            id="written since, and forgotten",
        ),
    ],
)
def test_a_tracked_row_is_as_it_stands_before_the_batch(
    tmp_path: Path, window: Window, expected: RowState
) -> None:
    """The window has what was written since, down to its edge; below, the tables are asked."""
    source = WrittenRows(tmp_path, {}, {K: 3})
    resyncs, state = Resyncs(source, TOPOLOGY), state_of(BEGUN)
    for _ in range(2):
        resyncs.follow(state, ROWS_EPOCH)
        source.finish()
    page = resyncs.resolved(resyncs.due(state, 0)[0], state)

    found = resyncs.tracked_rows(
        [page],
        RowsAt(
            window,
            lambda keys: {
                key: RowState(3, 10, "looked up", exists=True, image="of it") for key in keys
            },
            lambda rows: {key: f"of {row.csn}" for key, row in rows.items()},
        ),
    )

    assert page.parts == (PageRows(KeyRange("t"), WorkKind.PAGE, 1, ((K[1], 3),)),)
    assert found == {K: expected}


def test_a_page_names_the_rows_that_are_uncarried_at_its_consumer(tmp_path: Path) -> None:
    """Those listed when it was prepared, and those of batches since: the range leaves them out."""
    listed = [("t", key("b")), ("t", key("x")), ("u", key("b"))]
    source = WrittenRows(tmp_path, {"t": [key(n) for n in "abc"]}, listed=listed)
    state, resyncs = state_of(BEGUN, scans=frozenset("t")), Resyncs(source, TOPOLOGY)
    for _ in range(2):
        resyncs.follow(state, ROWS_EPOCH)
        source.finish()
    mine, others = (
        [Quarantined(rid, 1, 0, "s", Reason.TABLE, "", change(1, name)) for rid, name in named]
        for named in ([(2, "aa")], [(1, "ab")])
    )
    resyncs.note_uncarried([*mine, *others])

    (first,) = resyncs.due(state, 0)

    assert first.parts == (KeyRange("t", None, key("b")),)
    assert resyncs.resolved(first, state).uncarried == {("t", key("aa")), ("t", key("b"))}
