"""What a replica wrote on masked rows is not released: its masks would be everybody's values."""

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
from streaming.core.records.check import Limits
from streaming.operator.dispatch import carry_out
from streaming.stages.check import check_records
from tests.checkpoints.written_state import WrittenState
from tests.harness.builders import change
from tests.streaming.core.intake.speaker import RULES, intake_of_session

WRITTEN = change(11, value="***")
TOPICS = {"changes.a": 1}
READS_ONLY = Limits(writes={1: frozenset()})


@pytest.fixture
def store(tmp_path: Path) -> StateStore:
    """A state with a record in quarantine that its replica had no right to write."""
    state = WrittenState(tmp_path / "state").create()
    row = {
        "batch": 1,
        "id": "1-5",
        "action": "kept",
        "reason": "rights",
        "rid": 1,
        "offset": 5,
        "topic": "changes.a",
        "time": time_of(1_700_000_000_000),
        "value": wire.encode("s", WRITTEN),
        "table": "t",
        "key": WRITTEN.key,
    }
    state.append(TableName.QUARANTINE, row)
    return StateStore(state.root)


def released(
    store: StateStore, masked: dict[int, frozenset[str]], limits: Limits | None = None
) -> tuple[list[str | None], dict[str, Any]]:
    """The images of the hub's own changes, and the record's new row."""
    check = partial(check_records, topics=TOPICS, tables=RULES.tables, limits=limits or Limits())
    intake = intake_of_session()
    plan = Plan(2, 2_000_000, 1, {}, {}, (Command(1, CommandName.RELEASE, "1-5"),))
    effects = carry_out(
        plan, intake, store, check, lambda _: {}, hub_rid=99, topics=TOPICS, masked=masked
    )
    (row,) = effects.released.rows.to_pylist()
    return [one.change.after for (one,) in intake.eligible], row


def test_what_was_written_on_masked_rows_stays(store: StateStore) -> None:
    """The mask is gone, and the replica may write the table now."""
    images, row = released(store, {1: frozenset({"t"})})

    assert images == []
    assert (row["action"], row["reason"]) == ("kept", "rights")
    assert row["detail"] == (
        "replica 1 was sent table t masked, and what it wrote then has the masks in place of"
        " values: drop the record, and have the replica write the row again"
    )


@pytest.mark.parametrize("masked", [{}, {1: frozenset({"u"})}, {2: frozenset({"t"})}])
def test_what_was_written_on_plain_rows_is_released(
    store: StateStore, masked: dict[int, frozenset[str]]
) -> None:
    """Only `writes` kept it back, or the masks were another table's, or another replica's."""
    images, row = released(store, masked)

    assert images == [WRITTEN.after]
    assert row["action"] == "released"


def test_a_right_that_is_missing_still_is_named(store: StateStore) -> None:
    """The first thing to mend is what the configuration does not allow now."""
    _, row = released(store, {1: frozenset({"t"})}, READS_ONLY)

    assert row["detail"] == "replica 1 may not write table t, but: none"
