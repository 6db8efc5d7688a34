"""A record of which quarantine has the head is released by its whole bytes, or not at all."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from checkpoints.commit.epochs import Plan
from checkpoints.store import StateStore
from checkpoints.tables import TableName
from checkpoints.times import time_of
from connectors import wire
from streaming.core.model.command import Command, CommandName
from streaming.core.records.kept_bytes import HEAD_BYTES, KeptBytes, kept_bytes
from streaming.operator.dispatch import carry_out
from streaming.stages.check import check_records
from tests.checkpoints.written_state import WrittenState
from tests.harness.builders import change
from tests.streaming.core.intake.speaker import RULES, intake_of_session

LARGE = change(11, value="x" * HEAD_BYTES)
BYTES = wire.encode("s", LARGE)
TOPICS = {"changes.a": 1}


@pytest.fixture
def store(tmp_path: Path) -> StateStore:
    """A state with a record in quarantine that was too large then."""
    state = WrittenState(tmp_path / "state").create()
    kept = kept_bytes(BYTES, 1_000)
    row = {
        "batch": 1,
        "id": "1-5",
        "action": "kept",
        "reason": "size",
        "rid": 1,
        "offset": 5,
        "topic": "changes.a",
        "time": time_of(1_700_000_000_000),
        "value": kept.value,
        "bytes": kept.size,
        "sha256": kept.sha256,
    }
    state.append(TableName.QUARANTINE, row)
    return StateStore(state.root)


def released(
    store: StateStore, original: bytes | None, limit: int = 1_000_000
) -> tuple[list[str | None], dict[str, Any]]:
    """The images of the hub's own changes, and the new row; `original`: what the topic has."""

    def originals(places: Sequence[tuple[int, int]]) -> dict[tuple[int, int], KeptBytes]:
        assert places == [(1, 5)]
        return {} if original is None else dict.fromkeys(places, kept_bytes(original, limit))

    check = partial(check_records, topics=TOPICS, tables=RULES.tables)
    intake = intake_of_session()
    plan = Plan(2, 2_000_000, 1, {}, {}, (Command(1, CommandName.RELEASE, "1-5"),))
    effects = carry_out(plan, intake, store, check, originals, hub_rid=99, topics=TOPICS)
    (row,) = effects.released.rows.to_pylist()
    return [one.change.after for (one,) in intake.eligible], row


def test_a_large_record_is_released_by_its_whole_bytes(store: StateStore) -> None:
    """The operator has raised the limit, and the row must not lack its end."""
    images, row = released(store, BYTES)

    assert images == [LARGE.after]
    assert row["action"] == "released"


@pytest.mark.parametrize("original", [None, BYTES[:-2] + b"y}", BYTES[:HEAD_BYTES]])
def test_a_record_that_is_gone_or_another_stays(store: StateStore, original: bytes | None) -> None:
    """A topic that was made again has another record at that offset."""
    images, row = released(store, original)

    assert images == []
    assert (row["action"], row["reason"]) == ("kept", "size")
    assert "changes.a has at offset 5 another record, none, or one" in row["detail"]


def test_a_record_that_is_still_too_large_stays(store: StateStore) -> None:
    """Nobody has raised the limit yet."""
    images, row = released(store, BYTES, limit=1_000)

    assert images == []
    assert (row["action"], row["reason"]) == ("kept", "size")
    assert "still larger than limits.record_bytes" in row["detail"]
