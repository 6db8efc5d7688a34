"""What waits in quarantine for a column is released by the hub, once, and nothing else is."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from checkpoints.config import next_commands
from checkpoints.store import StateStore
from checkpoints.tables import TableName
from checkpoints.times import time_of
from connectors import wire
from streaming.core.model.change import Change
from streaming.core.model.command import CommandName
from streaming.core.model.table import ColumnType, Table
from streaming.core.records.kept_bytes import KeptBytes, kept_bytes
from streaming.core.state.topology import Topology
from streaming.filters.row_predicate import RowPredicate
from streaming.operator.going_on import WaitingColumns
from streaming.stages.check import check_records
from tests.checkpoints.written_state import WrittenState, change_row, ruv
from tests.harness.builders import change, csn
from tests.streaming.core.intake.speaker import RULES, T

HUB = 99
WITH_C = replace(T, columns={**T.columns, "c": ColumnType.TEXT})
AT_MS = 1_700_000_000_000
KEY = '{"k":"k"}'


def waiting(number: int, tx: int | None = None) -> Change:
    """A write with the column c, of replica 1."""
    image = f'{{"k":"k","v":"{number}","c":"red"}}'
    return change(number, tx=tx)._replace(after=image)


def kept(one: Change, batch: int = 3, **others: object) -> dict[str, object]:
    """The same in quarantine; it has seen the hub up to epoch 5."""
    number = next(n for n in range(20) if csn(n, 1) == one.csn)
    value = wire.encode("s", one)
    return {
        "batch": batch,
        "id": f"1-{number}",
        "action": "kept",
        "reason": "column",
        "rid": 1,
        "offset": number,
        "topic": "changes.a",
        "time": time_of(AT_MS),
        "csn": one.csn,
        "prim_csn": one.prim_csn,
        "table": one.table,
        "key": one.key,
        "op": one.op.value,
        "value": value,
        "bytes": len(value),
        "kind": "change",
        "invalid": True,
        "mre": 5,
        **others,
    }


@pytest.fixture
def state(tmp_path: Path) -> WrittenState:
    """A state of which batch 9 and hub epoch 9 are the last."""
    made = WrittenState(tmp_path / "state").create()
    made.commit(9, 9, ruv(r1=1))
    return made


def columns(
    at: WrittenState,
    table: Table = WITH_C,
    originals: Mapping[tuple[int, int], KeptBytes] | None = None,
    topology: Topology = RULES,
) -> WaitingColumns:
    """The look of a hub that knows the table so."""
    check = partial(check_records, topics={"changes.a": 1}, tables={"t": table})
    found = originals or {}
    return WaitingColumns(StateStore(at.root), HUB, topology, check, lambda _: found)


def ordered(at: WrittenState, table: Table = WITH_C) -> list[tuple[str | None, int]]:
    """The releases that are ordered, with the hub epochs by which they are judged."""
    columns(at, table).order(AT_MS)
    commands = next_commands(StateStore(at.root), 0)
    assert {one.name for one in commands} <= {CommandName.RELEASE}
    return [(one.argument, one.seen) for one in commands]


def test_what_waits_is_released_by_what_its_replica_had_seen(state: WrittenState) -> None:
    """In the order of its topic; a second look orders nothing twice."""
    state.append(TableName.QUARANTINE, kept(waiting(8), mre=7), kept(waiting(7)))

    assert ordered(state) == [("1-7", 5), ("1-8", 7)]
    assert ordered(state) == [("1-7", 5), ("1-8", 7)]


def test_without_the_column_nothing_is_released(state: WrittenState) -> None:
    """The configuration is another one, and not yet the one that is waited for."""
    state.append(TableName.QUARANTINE, kept(waiting(7)))

    assert ordered(state, T) == []


def entry(number: int, rid: int = 1, **others: object) -> dict[str, object]:
    """An entry of the changelog, of batch and hub epoch 6."""
    return {**change_row(6, 6, 0, csn(number, rid)), "key": KEY, **others}


REFRESH: dict[str, Any] = {"kind": "refresh", "to": 1, "verdict": None, "csn": csn(1, 2), "rid": 2}


@pytest.mark.parametrize(
    ("found", "goes"),
    [
        (entry(9), False),
        (entry(9, verdict="rejected"), True),
        (entry(9, key='{"k":"other"}'), True),
        (entry(9, key="", op="truncate"), False),
        (entry(9, rid=2), False),
        (entry(9, rid=2, verdict="rejected"), True),
        (entry(9, rid=2, hub_epoch=5), True),
        (entry(9, rid=2, key="", op="truncate"), False),
        (entry(9, rid=HUB), False),
        (entry(9, rid=HUB, hub_epoch=5), True),
        (entry(9, **REFRESH), False),
        (entry(9, **REFRESH | {"to": 2}), True),
    ],
)
def test_what_is_newer_stays(state: WrittenState, found: dict[str, object], *, goes: bool) -> None:
    """Of its own replica, and what that had not seen of others.

    A change that lost would take no column along, which its replica would keep for itself.
    """
    state.append(TableName.QUARANTINE, kept(waiting(7)))
    state.append(TableName.CHANGELOG, found)

    assert ordered(state) == ([("1-7", 5)] if goes else [])


@pytest.mark.parametrize(("reason", "goes"), [("size", False), ("late", True)])
def test_below_what_its_database_still_holds_nothing_goes_on(
    state: WrittenState, reason: str, *, goes: bool
) -> None:
    """What is late was taken back there; what is uncarried would be overwritten."""
    state.append(TableName.QUARANTINE, kept(waiting(7)), kept(waiting(8), reason=reason))

    assert ordered(state) == ([("1-7", 5)] if goes else [])


def test_what_the_hub_wrote_for_that_replica_is_no_conflict(state: WrittenState) -> None:
    """It is an older change of the row that has gone on before."""
    state.append(
        TableName.QUARANTINE,
        kept(waiting(7)),
        kept(waiting(8)),
        kept(waiting(7), batch=6, action="released", value=None),
    )
    state.append(TableName.CHANGELOG, entry(9, rid=HUB))

    assert ordered(state) == [("1-8", 5)]


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_transaction_goes_on_once_its_commit_has_come(
    state: WrittenState, *, is_committed: bool
) -> None:
    """The other members wait with it, though nothing is wrong with them."""
    member = change(8, "other", tx=7)
    rows = kept(waiting(7, tx=7)), kept(member, invalid=False)
    state.append(TableName.QUARANTINE, *rows)
    event = {"batch": 3, "rid": 1, "offset": 9, "kind": "commit", "outcome": "unknown"}
    prim = csn(7, 1) if is_committed else csn(6, 1)
    value = f'{{"v":1,"kind":"commit","session":"s","prim_csn":"{prim}"}}'
    state.append(TableName.EVENTS, {**event, "value": value})

    assert ordered(state) == ([("1-7", 5), ("1-8", 5)] if is_committed else [])


@pytest.mark.parametrize(
    "others",
    [
        {"mre": None},
        {"reason": "table"},
        {"op": "truncate"},
        {"time": time_of(-100_000_000)},
        {"batch": 2},
        {"mre": 1},
    ],
    ids=[
        "of an older version",
        "another reason",
        "a truncate",
        "a wrong clock",
        "purged since",
        "the hub's changes are purged since",
    ],
)
def test_the_rest_waits_for_a_person(state: WrittenState, others: dict[str, object]) -> None:
    """Nobody knows by what it would be judged."""
    state.commit(10, 10, ruv(r1=1), purge_batch=3, purge_epoch=2)
    state.append(TableName.QUARANTINE, {**kept(waiting(7)), **others})

    assert ordered(state) == []


@pytest.mark.parametrize("others", [{"op": "truncate"}, {"mre": None}, {"key": None}])
def test_what_waits_for_a_person_keeps_its_transaction(
    state: WrittenState, others: dict[str, Any]
) -> None:
    """Half of it must not be judged."""
    rows = kept(waiting(7, tx=7), **others), kept(change(8, "other", tx=7), invalid=False)
    state.append(TableName.QUARANTINE, *rows)
    value = f'{{"v":1,"kind":"commit","session":"s","prim_csn":"{csn(7, 1)}"}}'
    event = {"batch": 3, "rid": 1, "offset": 9, "kind": "commit", "outcome": "unknown"}
    state.append(TableName.EVENTS, {**event, "value": value})

    assert ordered(state) == []


def test_a_row_that_may_have_been_hidden_waits_for_a_person(state: WrittenState) -> None:
    """What its replica is not shown it has not seen, whatever it has applied."""
    state.append(TableName.QUARANTINE, kept(waiting(7)))
    shown = replace(RULES.subscriptions["a1"], rows={"t": RowPredicate("v = 'x'", T)})
    topology = replace(RULES, subscriptions={**RULES.subscriptions, "a1": shown})

    assert columns(state, topology=topology).order(AT_MS) == 0
    assert columns(state).order(AT_MS) == 1


@pytest.mark.parametrize("is_there", [True, False])
def test_of_a_large_one_the_whole_is_read_again(state: WrittenState, *, is_there: bool) -> None:
    """One that is gone from its topic is not ordered again and again."""
    one = waiting(7)
    value = wire.encode("s", one)
    row = kept(one, value=b"{", bytes=len(value), sha256=sha256(value).hexdigest())
    state.append(TableName.QUARANTINE, row)
    found = {(1, 7): kept_bytes(value, 1_000_000)} if is_there else {}

    assert columns(state, originals=found).order(AT_MS) == is_there
