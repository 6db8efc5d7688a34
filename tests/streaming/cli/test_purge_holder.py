"""What `status` says of who holds the purge."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from checkpoints.tables import TableName
from checkpoints.times import time_of
from streaming.core.model.command import CommandName
from streaming.core.replay.pins import Pin
from streaming.core.retention.holder import KEPT_KEYS_MAX
from tests.checkpoints.written_state import START_S, WrittenState, agreement, replica, ruv
from tests.harness.builders import csn
from tests.streaming.cli.conftest import Slackwater

KNOWN = ruv(r1=3)
LEVEL = agreement("to-b", 2, 5, KNOWN)


def commit(state: WrittenState, acked: int = 5, **changed: object) -> None:
    """Five hub epochs of long ago, of which the consumer has so many."""
    one = replace(LEVEL, acked_covers=acked, **changed)  # type: ignore[arg-type]
    for number in range(1, 6):
        state.commit(number, number, KNOWN, [replica(1, covers=4), replica(2, covers=4)], [one])


def hold(slackwater: Slackwater) -> Any:  # noqa: ANN401  # JSON
    """Who holds the purge."""
    return slackwater("status", "--json").facts["history"]["hold"]


def test_nobody_is_named_where_all_have_everything(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """What there is waits for its age alone."""
    commit(state)

    assert hold(slackwater) is None
    assert "held by" not in slackwater("status").out


def test_an_agreement_is_named_since_the_first_hub_epoch_that_its_consumer_lacks(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """An operator sees whom to bring back, and how long it has been."""
    commit(state, acked=2)

    found = hold(slackwater)

    assert (found["by"], found["name"], found["hub_epoch"]) == ("agreement", "to-b", 2)
    assert datetime.fromisoformat(found["since"]) == time_of(START_S * 1_000)
    assert found["age_s"] > 86_400
    text = slackwater("status").out
    assert "held by agreement to-b for " in text
    assert "its consumer has not acknowledged hub epochs above 2" in text


def test_a_transaction_is_named_that_is_open(slackwater: Slackwater, state: WrittenState) -> None:
    """It may be open for ever: its replica has forgotten it."""
    commit(state)
    came = datetime.now(UTC).replace(microsecond=0) - timedelta(days=30)
    pending = {"batch": 5, "place": 0, "action": "pending", "rid": 2, "csn": csn(3, 2)}
    state.append(TableName.PENDING, pending | {"mre": 3, "time": came, "prim_csn": csn(2, 2)})

    found = hold(slackwater)

    assert (found["by"], found["name"], found["hub_epoch"]) == ("transaction", csn(2, 2), 3)
    assert datetime.fromisoformat(found["since"]) == came


@pytest.mark.parametrize(("ended", "by"), [(False, "pin"), (True, None)])
def test_a_pin_is_named_until_it_is_ended(
    slackwater: Slackwater, state: WrittenState, *, ended: bool, by: str | None
) -> None:
    """Who set it may have gone."""
    commit(state)
    pin = Pin("audit", 2, START_S * 1_000)
    row = {"number": 1, "kind": "command", "command": CommandName.PIN, "argument": pin.text()}
    end = {"number": 2, "kind": "command", "command": CommandName.UNPIN, "argument": "audit"}
    state.append(TableName.CONFIG, *([row, end] if ended else [row]))

    found = hold(slackwater)

    assert (found and (found["by"], found["name"])) == (by and (by, "audit"))


@pytest.mark.parametrize(("rows", "by"), [(KEPT_KEYS_MAX, None), (KEPT_KEYS_MAX + 1, "quarantine")])
def test_records_in_quarantine_are_named_once_they_are_too_many(
    slackwater: Slackwater, state: WrittenState, rows: int, by: str | None
) -> None:
    """No row is lost by them, so nobody would look for them there."""
    commit(state)
    kept = {"batch": 1, "action": "kept", "reason": "late", "rid": 1, "table": "t"}
    state.append(
        TableName.QUARANTINE,
        *({**kept, "id": f"1-{n}", "key": json.dumps({"id": str(n)})} for n in range(rows)),
    )

    found = hold(slackwater)

    assert (found and found["by"]) == by
