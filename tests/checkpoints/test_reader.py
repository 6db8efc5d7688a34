"""Claims about reading a hub's state without a JVM."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from deltalake import DeltaTable

from checkpoints.reading.reader import OpenChanges, open_state
from checkpoints.tables import TableName
from streaming.core.model.errors import StateError
from streaming.core.model.table import DEFAULT_DATASET
from tests.checkpoints.written_state import (
    START_S,
    WrittenState,
    agreement,
    change_row,
    replica,
    ruv,
)
from tests.harness.builders import csn


@pytest.fixture
def state(tmp_path: Path) -> WrittenState:
    """An empty state folder."""
    return WrittenState(tmp_path / "state").create()


def quarantined(batch: int, id_: str, action: str, reason: str) -> dict[str, object]:
    """A row of the quarantine; only a kept one has the record's bytes."""
    rid, offset = (int(part) for part in id_.split("-"))
    row: dict[str, object] = {"batch": batch, "id": id_, "action": action, "reason": reason}
    return row | {"rid": rid, "offset": offset, "value": b"{" if action == "kept" else None}


def test_a_folder_without_state_says_that_no_hub_has_run(tmp_path: Path) -> None:
    """A wrong path is the usual mistake; an empty answer would look like a quiet hub."""
    with pytest.raises(StateError, match="no hub has run"):
        open_state(tmp_path / "nowhere")


def test_a_folder_with_other_things_says_that_no_hub_has_run(tmp_path: Path) -> None:
    """A table folder without a Delta log is no table."""
    (tmp_path / TableName.EPOCHS).mkdir()

    with pytest.raises(StateError, match="no hub has run"):
        open_state(tmp_path)


def test_before_the_first_commit_there_is_no_commit(state: WrittenState) -> None:
    """A hub that died in its first batch has a plan and nothing that may be believed."""
    state.append(TableName.CHANGELOG, change_row(1, 1, 0, csn(1, 1)))
    state.plan(1)

    reader = open_state(state.root)

    assert reader.commit is None
    assert reader.planned == 1
    assert reader.changelog().num_rows == 0


def test_the_last_commit_is_found_among_many_files(state: WrittenState) -> None:
    """Every batch appends two files; the newest commit is the hub."""
    for batch in range(1, 13):
        state.commit(batch, batch // 2, ruv(r1=batch), [replica(1, covers=3)])

    reader = open_state(state.root)

    assert reader.commit is not None
    assert (reader.batch, reader.commit.state.hub_epoch, reader.planned) == (12, 6, None)
    assert reader.commit.state.ruv_of(DEFAULT_DATASET) == ruv(r1=12)
    assert reader.commit.offsets == {"slackwater.changes.a": 7}


def test_the_last_commit_is_found_in_a_compacted_table(state: WrittenState) -> None:
    """Compaction puts plans and commits of many batches into one file."""
    for batch in range(1, 6):
        state.commit(batch, batch, ruv(r1=batch))
    DeltaTable(state.root / TableName.EPOCHS).optimize.compact()
    state.plan(6)

    reader = open_state(state.root)

    assert (reader.batch, reader.planned) == (5, 6)


def test_rows_of_an_uncommitted_batch_are_not_seen(state: WrittenState) -> None:
    """What a killed hub wrote before its commit row may be written again, or differently."""
    state.commit(1, 1, ruv(r1=1), agreements=[agreement("to-b", 2, 0, ruv())])
    for batch in (1, 2):
        state.append(TableName.CHANGELOG, change_row(batch, batch, 0, csn(batch, 1)))
        conflict = {"batch": batch, "hub_epoch": batch, "place": 0, "kind": "insert_exists"}
        state.append(TableName.CONFLICTS, conflict)
        state.append(TableName.QUARANTINE, quarantined(batch, f"1-{batch}", "kept", "json"))
        pending = {"batch": batch, "place": 0, "action": "pending", "rid": 1, "csn": csn(batch, 1)}
        state.append(TableName.PENDING, pending)

    reader = open_state(state.root)

    assert reader.changelog().column("csn").to_pylist() == [csn(1, 1)]
    assert reader.conflicts().num_rows == 1
    assert reader.conflict_counts() == {"insert_exists": 1}
    assert [row["id"] for row in reader.quarantine()] == ["1-1"]
    assert reader.quarantine_counts() == {"json": 1}
    assert reader.open_changes() == {(1, "pending"): OpenChanges(1, None, csn(1, 1))}
    scanned = reader.scan_changelog(["csn"], after=0, tables=["t"])
    assert [text for part in scanned for text in part["csn"].to_pylist()] == [csn(1, 1)]


def test_a_changelog_slice_is_in_hub_order(state: WrittenState) -> None:
    """Consumers apply in hub order; the files are in no order at all."""
    state.commit(3, 3, ruv(r1=4))
    state.append(TableName.CHANGELOG, change_row(3, 3, 0, csn(4, 1)))
    state.append(
        TableName.CHANGELOG, change_row(2, 2, 1, csn(3, 1)), change_row(2, 2, 0, csn(2, 1))
    )
    state.append(TableName.CHANGELOG, change_row(1, 1, 0, csn(1, 1)))

    reader = open_state(state.root)

    places = reader.changelog(columns=["hub_epoch", "place"]).to_pylist()
    assert [(p["hub_epoch"], p["place"]) for p in places] == [(1, 0), (2, 0), (2, 1), (3, 0)]
    assert reader.changelog(after=1, upto=2).column("csn").to_pylist() == [csn(2, 1), csn(3, 1)]
    assert reader.changelog({"csn": csn(4, 1)}).num_rows == 1
    assert reader.changelog({"key": "it's"}).num_rows == 0


def test_quarantine_shows_the_latest_action_and_the_original_bytes(state: WrittenState) -> None:
    """Each record once, whatever was done with it since."""
    state.commit(4, 0, ruv())
    state.append(
        TableName.QUARANTINE,
        quarantined(1, "1-5", "kept", "json"),
        quarantined(1, "1-6", "kept", "json"),
        quarantined(1, "2-5", "kept", "table"),
    )
    state.append(TableName.QUARANTINE, quarantined(2, "1-5", "dropped", "json"))
    state.append(TableName.QUARANTINE, quarantined(3, "2-5", "released", "table"))
    state.append(TableName.QUARANTINE, quarantined(4, "2-5", "kept", "table"))

    reader = open_state(state.root)

    rows = {row["id"]: row for row in reader.quarantine()}
    assert {id_: row["action"] for id_, row in rows.items()} == {
        "1-5": "dropped",
        "1-6": "kept",
        "2-5": "kept",
    }
    assert rows["1-5"]["value"] == b"{"
    assert rows["1-5"]["action_batch"] == 2
    assert reader.quarantine_counts() == {"json": 1, "table": 1}
    assert [row["id"] for row in reader.quarantine({"reason": "table"})] == ["2-5"]


def test_a_change_is_pending_or_waiting_by_its_latest_row(state: WrittenState) -> None:
    """A commit moves a change from pending to waiting, its judging removes it."""
    state.commit(2, 1, ruv(r1=1))

    def row(batch: int, place: int, action: str, number: int) -> dict[str, object]:
        named = {"rid": 1, "csn": csn(number, 1), "prim_csn": csn(3, 1)}
        time = datetime.fromtimestamp(START_S + number, UTC)
        return {"batch": batch, "place": place, "action": action, "time": time, **named}

    state.append(TableName.PENDING, *(row(1, n, "pending", n) for n in range(1, 5)))
    state.append(TableName.PENDING, row(2, 0, "waiting", 1), row(2, 1, "waiting", 2))
    state.append(TableName.PENDING, row(2, 2, "gone", 1), row(2, 3, "ended", 4))

    assert open_state(state.root).open_changes() == {
        (1, "pending"): OpenChanges(1, datetime.fromtimestamp(START_S + 3, UTC), csn(3, 1)),
        (1, "waiting"): OpenChanges(1, datetime.fromtimestamp(START_S + 2, UTC), csn(3, 1)),
    }


def test_what_a_csn_names_is_told_by_its_latest_row(state: WrittenState) -> None:
    """An operator must not be asked to end what is committed."""
    state.commit(2, 1, ruv(r1=1))
    named = {"batch": 1, "rid": 1, "prim_csn": csn(1, 1)}
    state.append(
        TableName.PENDING,
        {**named, "place": 0, "action": "pending", "csn": csn(1, 1)},
        {**named, "place": 1, "action": "pending", "csn": csn(2, 1)},
        {**named, "place": 2, "action": "ended", "reason": "hello", "csn": csn(2, 1)},
        {**named, "place": 3, "action": "pending", "csn": csn(4, 1), "prim_csn": csn(3, 1)},
    )

    reader = open_state(state.root)

    assert reader.standing_of(csn(1, 1)) == {"pending": None, "ended": "hello"}
    assert reader.standing_of(csn(2, 1)) == {"ended": "hello"}
    assert reader.standing_of(csn(3, 1)) == {"pending": None}
    assert reader.standing_of(csn(5, 1)) == {}


def test_configuration_versions_and_commands_are_told_apart(state: WrittenState) -> None:
    """Both are numbered in one sequence, so that the hub can take them in order."""
    state.append(
        TableName.CONFIG,
        {"number": 2, "kind": "command", "command": "drop", "argument": "1-5"},
        {"number": 1, "kind": "config", "document": "{}"},
    )
    state.commit(1, 0, ruv())

    reader = open_state(state.root)

    assert [row["number"] for row in reader.configs()] == [1]
    assert [row["argument"] for row in reader.commands()] == ["1-5"]


def test_state_of_a_newer_format_is_refused(state: WrittenState) -> None:
    """A newer hub may mean something else by the same columns."""
    row = {"kind": "commit", "batch": 1, "format": 99, "hub": "host:1"}
    state.append(TableName.EPOCHS, row)

    with pytest.raises(StateError, match="format 99"):
        open_state(state.root)


def test_a_page_of_quarantine_is_read_without_what_is_not_shown(state: WrittenState) -> None:
    """A flood leaves more records than memory holds; the newest say what came last."""
    state.commit(4, 0, ruv())
    rows = [quarantined(1, f"1-{n}", "kept", "json") | {"offset": n} for n in range(9)]
    state.append(TableName.QUARANTINE, *rows, quarantined(2, "1-8", "dropped", "json"))
    state.append(TableName.QUARANTINE, quarantined(3, "1-2", "kept", "table") | {"offset": 2})
    reader = open_state(state.root)

    page, total = reader.quarantine_page({"reason": "json"}, 2, everything=False, values=False)
    again, _ = reader.quarantine_page({"reason": "table"}, 9, everything=False, values=True)
    whole, everything = reader.quarantine_page({}, 20, everything=True, values=True)

    assert ([row["id"] for row in page], total) == (["1-6", "1-7"], 7)
    assert {row["value"] for row in page} == {None}
    assert [(row["id"], row["action_batch"], row["value"]) for row in again] == [("1-2", 3, b"{")]
    assert (len(whole), everything) == (9, 9)
    assert {row["action"] for row in whole if row["id"] == "1-8"} == {"dropped"}
    assert reader.quarantine_ids({"reason": "json"}) == [f"1-{n}" for n in (0, 1, 3, 4, 5, 6, 7)]
