"""What a purge finds and deletes, on real tables: nothing that is needed, and all that is not."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.dataset as ds
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoints.commit.epochs import Checkpoint, checkpoint_of, commit_row
from checkpoints.commit.recorded import commit_of
from checkpoints.maintenance.purge import PurgedState, delete_purged
from checkpoints.reading.delays import recorded_delays
from checkpoints.reading.purgeable import PurgeRequest, purgeable
from checkpoints.root import open_delta
from checkpoints.store import StateStore
from checkpoints.tables import SCHEMAS, TableName
from checkpoints.times import time_of
from streaming.core.model.refusal import Refusal
from streaming.core.model.ruv import Ruv
from streaming.core.model.table import DEFAULT_DATASET
from streaming.core.retention.holder import KEPT_KEYS_MAX
from streaming.core.retention.purge import Purge, purged, purged_up_to
from streaming.core.state.hub_state import HubState
from tests.checkpoints.written_state import START_S, WrittenState, change_row
from tests.harness.builders import csn
from tests.harness.examples import examples

DATASETS = {"t": DEFAULT_DATASET, "u": "other"}
START_MS = START_S * 1000


@dataclass(slots=True)
class Story:
    """A state whose batches are given as the writes of each: (rid, table)."""

    root: Path
    batches: Sequence[Sequence[tuple[int, str]]]

    def write(self) -> HubState:
        """Write it, a batch a second; `rows` is always one hub epoch behind. The last state."""
        state, number = WrittenState(self.root).create(), 0
        ruvs = {name: Ruv("655d1c80000000010000") for name in DATASETS.values()}
        log, epochs = list[dict[str, object]](), list[dict[str, object]]()
        for batch, writes in enumerate(self.batches, 1):
            for place, (rid, table) in enumerate(writes):
                number += 1
                text, dataset = csn(number, rid), DATASETS[table]
                log.append(change_row(batch, batch, place, text, table))
                ruvs[dataset] = ruvs[dataset].with_csn(text)
            after = HubState(1, "655d1c80000000010000", batch, batch, dict(ruvs))
            at_ms = START_MS + 1_000 * batch
            last = Checkpoint(after, {}, {}, 1, rows_epoch=batch - 1, at_ms=at_ms)
            epochs.append(commit_row(last, "host:1"))
        state.append(TableName.CHANGELOG, *log)
        state.append(TableName.EPOCHS, *epochs, number=2 * len(self.batches) + 1)
        return self.state

    def written(self) -> Checkpoint:
        """Write it; the last commit."""
        self.write()
        return self.commit

    @property
    def state(self) -> HubState:
        """The state behind the last batch."""
        return self.commit.state

    @property
    def commit(self) -> Checkpoint:
        """The last commit."""
        row = commit_of(StateStore(self.root), len(self.batches))
        assert row is not None
        return checkpoint_of(row)

    def csns(self) -> dict[tuple[str, int], list[str]]:
        """(data set, rid) -> the CSNs that the changelog has, in order."""
        found: dict[tuple[str, int], list[str]] = {}
        for row in StateStore(self.root).read(TableName.CHANGELOG).to_pylist():
            place = DATASETS[row["table"]], row["rid"]
            found.setdefault(place, []).append(row["csn"])
        return {place: sorted(of) for place, of in found.items()}

    def purge(self, state: HubState, limit: int, kept_s: int) -> HubState:
        """The state once what is older than so many seconds is purged and deleted."""
        before_ms = START_MS + 1_000 * (len(self.batches) - kept_s)
        last_ms = START_MS + 1_000 * len(self.batches)
        asked = PurgeRequest(state, limit, before_ms, DATASETS, last_ms)
        found = purgeable(StateStore(self.root), asked)
        if found is None:
            return state
        after = purged(state, found)
        for _ in range(2):  # a hub that dies repeats it
            delete_purged(StateStore(self.root), PurgedState(after, purged_up_to(after), START_MS))
        return after


WRITES = st.lists(st.tuples(st.integers(1, 3), st.sampled_from(["t", "u"])), max_size=3)


@examples(8, share=40)
@given(st.lists(WRITES, min_size=3, max_size=8), st.lists(st.tuples(*[st.integers(0, 8)] * 2)))
def test_a_purge_takes_what_its_ruv_says_and_leaves_the_rest(
    batches: list[list[tuple[int, str]]], purges: list[tuple[int, int]]
) -> None:
    """The largest CSN stays; what is at or below the purge RUV is gone, nothing else."""
    with TemporaryDirectory() as folder:
        story = Story(Path(folder), batches)
        state = story.write()
        before = story.csns()
        for limit, kept_s in purges[:3]:
            last, state = state, story.purge(state, limit, kept_s)

            assert state.purge_epoch >= last.purge_epoch
            assert state.purge_batch >= last.purge_batch
            left = story.csns()
            assert left.keys() == before.keys()
            for (dataset, rid), all_of in before.items():
                edge = state.purge_ruv_of(dataset).max_of(rid) or ""
                kept, ruv = left[dataset, rid], state.ruv_of(dataset)
                assert kept == [one for one in all_of if one > edge]
                assert (ruv.min_of(rid), ruv.max_of(rid)) == (kept[0], all_of[-1])


@pytest.mark.parametrize("is_compacted", [False, True])
def test_the_oldest_state_that_is_kept_has_all_that_it_needs(
    tmp_path: Path, *, is_compacted: bool
) -> None:
    """Its commit, what `rows` did not hold then, and everything behind it; of any file a part."""
    story = Story(tmp_path, [[(1, "t")] for _ in range(9)])
    state = story.write()
    if is_compacted:
        for name in SCHEMAS:
            open_delta(StateStore(tmp_path).root, name).optimize.compact()

    state = story.purge(state, limit=7, kept_s=3)

    store = StateStore(tmp_path)
    log = store.read(TableName.CHANGELOG)
    last = store.read(TableName.CHANGELOG, ds.field("csn") == max(log["csn"].to_pylist()))
    commits = store.read(TableName.EPOCHS, ds.field("kind") == "commit", ["batch"])
    assert (state.purge_batch, state.purge_epoch) == (6, 5)
    assert sorted(log["hub_epoch"].to_pylist()) == [6, 7, 8, 9]
    assert last["hub_epoch"].to_pylist() == [9]
    assert sorted(commits["batch"].to_pylist()) == [6, 7, 8, 9]


def test_what_somebody_still_needs_stays_whatever_its_age(tmp_path: Path) -> None:
    """A hold is a hub epoch: no state behind it goes."""
    story = Story(tmp_path, [[(1, "t")] for _ in range(9)])

    state = story.purge(story.write(), limit=3, kept_s=0)

    assert (state.purge_batch, state.purge_epoch) == (3, 2)


@pytest.mark.parametrize(
    ("name", "rows", "left"),
    [
        (
            TableName.EVENTS,
            [
                *(("a", {"kind": "hello"}), ("b", {"kind": "applied"}), ("c", {"kind": "schema"})),
                ("d", {"kind": "local_writes"}),
            ],
            ["a", "c", "d"],
        ),
        (
            TableName.CONFLICTS,
            [
                ("old", {"kind": "update_origin_change", "at": time_of(START_MS - 1)}),
                ("new", {"kind": "update_origin_change", "at": time_of(START_MS)}),
                ("undated", {"kind": "update_origin_change"}),
            ],
            ["new", "undated"],
        ),
        (
            TableName.PENDING,
            [
                ("gone", {"action": "pending", "csn": csn(2), "rid": 1}),
                ("ended", {"action": "ended", "prim_csn": csn(2), "rid": 1}),
                ("larger", {"action": "pending", "csn": csn(8), "rid": 1}),
                ("other", {"action": "pending", "csn": csn(2, 9), "rid": 9}),
            ],
            ["larger", "other"],
        ),
    ],
)
def test_each_table_is_purged_by_its_own_rule(
    name: TableName, rows: list[tuple[str, dict[str, object]]], left: list[str], tmp_path: Path
) -> None:
    """Hellos, schemas and local writes are read later; what is open has no CSN that is purged."""
    story = Story(tmp_path, [[(1, "t")] for _ in range(9)])
    story.write()
    told = {TableName.EVENTS: "topic", TableName.CONFLICTS: "id", TableName.PENDING: "session"}
    mark = told[name]
    WrittenState(tmp_path).append(name, *({mark: text, "batch": 1, **row} for text, row in rows))

    story.purge(story.state, limit=7, kept_s=3)

    found = StateStore(tmp_path).read(name)[mark].to_pylist()
    assert sorted(found) == sorted(left)


def test_a_refusal_that_is_open_stays(tmp_path: Path) -> None:
    """The hub reads it when it starts."""
    story = Story(tmp_path, [[(1, "t")] for _ in range(9)])
    state = story.write()
    rows = [
        {"id": text, "kind": "refused", "batch": 1, "at": time_of(START_MS - 1)}
        for text in ("r1-1", "r1-2")
    ]
    WrittenState(tmp_path).append(TableName.CONFLICTS, *rows)
    refusal = Refusal("r1-1", 1, ("t", "k"), 1, csn(1), "check", "", 0, 0, 1, 0, 0)

    story.purge(replace(state, refusals={1: {("t", "k"): refusal}}), limit=7, kept_s=3)

    assert StateStore(tmp_path).read(TableName.CONFLICTS)["id"].to_pylist() == ["r1-1"]


def test_a_record_in_quarantine_keeps_what_was_written_to_its_row(tmp_path: Path) -> None:
    """That tells whether its origin has been set right; a decided one goes with its CSN."""
    story = Story(tmp_path, [[(1, "t"), (2, "t")] for _ in range(9)])
    state, made = story.write(), WrittenState(tmp_path)
    key = StateStore(tmp_path).read(TableName.CHANGELOG)["key"].to_pylist()[0]
    kept = {"batch": 1, "action": "kept", "reason": "type", "rid": 1, "table": "t"}
    made.append(
        TableName.QUARANTINE,
        {**kept, "id": "1-1", "key": key, "csn": csn(50)},
        {**kept, "id": "1-2", "key": "x", "csn": csn(1)},
        {**kept, "id": "1-2", "key": "x", "csn": csn(1), "batch": 2, "action": "dropped"},
        {**kept, "id": "1-3", "key": "x", "csn": csn(60)},
        {**kept, "id": "1-3", "key": "x", "csn": csn(60), "batch": 2, "action": "dropped"},
    )
    rows = StateStore(tmp_path).read(TableName.CHANGELOG).to_pylist()

    after = story.purge(state, limit=7, kept_s=3)

    store = StateStore(tmp_path)
    left = {row["csn"] for row in store.read(TableName.CHANGELOG).to_pylist()}
    assert left == {r["csn"] for r in rows if r["key"] == key or r["hub_epoch"] > after.purge_epoch}
    assert set(store.read(TableName.QUARANTINE)["id"].to_pylist()) == {"1-1", "1-3"}


def test_no_history_goes_while_too_many_rows_are_in_quarantine(tmp_path: Path) -> None:
    """Records may come between the commit of a purge and what it deletes."""
    story = Story(tmp_path, [[(1, "t")] for _ in range(9)])
    state = story.write()
    kept = {"batch": 1, "action": "kept", "reason": "late", "rid": 1, "table": "t"}
    rows = [{**kept, "id": f"1-{n}", "key": str(n)} for n in range(KEPT_KEYS_MAX + 1)]
    WrittenState(tmp_path).append(TableName.QUARANTINE, *rows)
    after = replace(state, purge_epoch=5, purge_batch=6)

    delete_purged(StateStore(tmp_path), PurgedState(after, purged_up_to(after), START_MS))

    assert StateStore(tmp_path).read(TableName.CHANGELOG).num_rows == 9


def test_commands_that_were_done_go_and_pins_stay(tmp_path: Path) -> None:
    """A pin stands until it is ended."""
    story = Story(tmp_path, [[(1, "t")] for _ in range(9)])
    story.write()
    names = ["level", "pin", "resync"]
    rows = [{"number": 0, "kind": "command", "command": name} for name in names]
    later = {"number": 5, "kind": "command", "command": "level"}
    WrittenState(tmp_path).append(TableName.CONFIG, *rows, later)

    story.purge(story.state, limit=7, kept_s=3)

    found = StateStore(tmp_path).read(TableName.CONFIG)
    assert sorted(found["command"].to_pylist()) == ["level", "pin"]


def append_batch(store: StateStore, last: Checkpoint) -> None:
    """Commit a batch that changes nothing but this checkpoint."""
    row = commit_row(last, "host:1")
    WrittenState(Path(str(store.root))).append(
        TableName.EPOCHS, row, number=2 * last.state.batch + 1
    )


def test_a_hub_at_rest_purges_everything_and_then_plans_nothing(tmp_path: Path) -> None:
    """Two batches: one says up to where `rows` has come, one purges that; each after its time."""
    story = Story(tmp_path, [[(1, "t")] for _ in range(9)])
    last, store, keep_ms = replace(story.written(), at_ms=START_MS), StateStore(tmp_path), 60
    planned = 0
    for now_ms in range(START_MS, START_MS + 100 * keep_ms, keep_ms):
        before_ms = START_MS + 1_000 * 1_000  # whatever is written here is old
        state = last.state
        asked = PurgeRequest(
            state, 9, before_ms, DATASETS, last.at_ms, notes_rows=last.rows_epoch < 9
        )
        found = purgeable(store, asked)
        if found is not None:
            planned += 1
            state = replace(purged(state, found), batch=state.batch + 1)
            last = replace(last, state=state, rows_epoch=9, at_ms=now_ms)
            append_batch(store, last)
            delete_purged(store, PurgedState(state, purged_up_to(state), START_MS))

    left = StateStore(tmp_path)
    log = left.read(TableName.CHANGELOG)
    epochs = left.read(TableName.EPOCHS, ds.field("kind") == "commit")
    assert planned == 2
    assert last.state.purge_epoch == 9
    assert log["csn"].to_pylist() == [csn(9)]
    assert sorted(epochs["batch"].to_pylist()) == [10, 11]


@pytest.mark.parametrize(("last_s", "is_found"), [(9, False), (5, True)])
def test_what_only_a_batch_could_note_waits_until_the_hub_is_at_rest(
    tmp_path: Path, last_s: int, *, is_found: bool
) -> None:
    """A hub at work notes it with its next batch."""
    story = Story(tmp_path, [[(1, "t")] for _ in range(3)])
    state = replace(story.write(), purge_epoch=2, purge_batch=3)
    last_ms, before_ms = START_MS + 1_000 * last_s, START_MS + 5_000
    asked = PurgeRequest(state, 3, before_ms, DATASETS, last_ms, notes_rows=True)

    found = purgeable(StateStore(tmp_path), asked)

    assert found == (Purge(2, 3, {}, {}) if is_found else None)
    assert purgeable(StateStore(tmp_path), replace(asked, limit=2)) is None


def test_of_old_delays_the_last_of_each_day_stays_for_as_long_as_conflicts(tmp_path: Path) -> None:
    """Each minute has a row of each pair; the worst of a day is in its last one."""
    story = Story(tmp_path, [[(1, "t")] for _ in range(9)])
    story.write()
    today = time_of(START_MS).date()

    def row(day: int, batch: int, origin: int = 1) -> dict[str, object]:
        times = dict.fromkeys(["complete_to", "known_since", "at"], time_of(START_MS))
        of = {"batch": batch, "day": today + timedelta(days=day), "origin": origin, "consumer": 2}
        return {**of, **times, "covers": 1, "last_ms": 0, "worst_ms": batch, "above_minute_ms": 0}

    rows = [row(-2, 1), row(-1, 2), row(0, 2), row(0, 3), row(0, 4), row(0, 5), row(0, 4, 3)]
    WrittenState(tmp_path).append(TableName.DELAYS, *rows, row(0, 6), row(0, 7))

    story.purge(story.state, limit=7, kept_s=3)

    found = StateStore(tmp_path).read(TableName.DELAYS).to_pylist()
    left = sorted((one["batch"], one["origin"]) for one in found)
    assert left == [(2, 1), (2, 1), (4, 1), (4, 3), (5, 1), (6, 1), (7, 1)]
    at_six = recorded_delays(open_delta(tmp_path, TableName.DELAYS), 6)
    assert {pair: one.worst_ms for pair, one in at_six.pairs.items()} == {(1, 2): 6, (3, 2): 4}


def test_of_old_comparisons_those_stay_that_nothing_newer_replaces(tmp_path: Path) -> None:
    """A status tells the last of each agreement, however old it is."""
    story = Story(tmp_path, [[(1, "t")] for _ in range(9)])
    story.write()
    old, new = time_of(START_MS), time_of(START_MS + 8_000)
    told = [
        ({"agreement": "b"}, old),
        ({"agreement": "b"}, old),
        ({"agreement": "c", "reason": "away"}, old),
        ({"agreement": "b"}, new),
        ({"agreement": "b"}, new),
    ]
    rows = [
        {"number": n, "kind": "comparison", "at": at, "document": json.dumps(document)}
        for n, (document, at) in enumerate(told)
    ]
    WrittenState(tmp_path).append(TableName.CONFIG, *rows)

    story.purge(story.state, limit=7, kept_s=3)

    assert sorted(StateStore(tmp_path).read(TableName.CONFIG)["number"].to_pylist()) == [1, 2, 3, 4]
