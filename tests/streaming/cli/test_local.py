"""Writes that stayed at one replica: named until they are settled, by a round or an operator."""

import time
from dataclasses import replace

from checkpoints.config import store_comparison
from checkpoints.store import StateStore
from checkpoints.tables import TableName
from connectors import wire
from streaming.core.records.local_writes import TableWrites, tables_text
from streaming.core.records.record import LocalWrites
from streaming.facts.consumers.compared import ComparedRound
from tests.checkpoints.written_state import WrittenState, ruv
from tests.streaming.cli.conftest import Slackwater


def told_locally(state: WrittenState, offset: int, **tables: tuple[int, int]) -> None:
    """What the agent of replica a has told of local writes, as the hub took it."""
    text = tables_text({name: TableWrites(*one) for name, one in tables.items()})
    event = {"batch": 1, "rid": 1, "offset": offset, "kind": "local_writes", "outcome": "taken"}
    value = wire.encode("s", LocalWrites(text)).decode()
    state.append(TableName.EVENTS, event | {"value": value})


def local(slackwater: Slackwater) -> list[tuple[str, str, int]]:
    """The tables with local writes, alike in both answers."""
    found = slackwater("local", "list", "--json").facts
    assert slackwater("status", "--json").facts["local_writes"] == found
    return [(one["replica"], one["table"], one["rows"]) for one in found]


def test_what_is_told_is_listed(slackwater: Slackwater, state: WrittenState) -> None:
    """By table; the last word of an agent counts."""
    told_locally(state, 1, t=(2, 1_700_000_000_000))
    told_locally(state, 5, t=(3, 1_700_000_000_000), u=(1, 2**63 - 1))
    state.commit(1, 1, ruv(r1=1))

    answer = slackwater("local", "list")

    assert local(slackwater) == [("a", "t", 3), ("a", "u", 1)]
    assert "a         t          3   2023-11-14 22:13:20Z" in answer.out.splitlines()


def test_a_round_without_a_difference_settles_what_was_told_before_it(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """What is written later is named again, and how many rows of it."""
    told_locally(state, 1, t=(3, 1), u=(1, 1))
    state.commit(1, 1, ruv(r1=1))
    found = ComparedRound("to-a", 9, 0, more_differ=False, in_flight=0, seconds=1.0)
    for settled in ({"t": {"rows": 3, "last_ms": 1}}, {}):  # a later round keeps it settled
        text = replace(found, settled=settled).text()
        store_comparison(StateStore(state.root), text, round(time.time() * 1000))
    settled_once = local(slackwater)
    told_locally(state, 2, t=(7, 9), u=(1, 1))

    assert settled_once == [("a", "u", 1)]
    assert local(slackwater) == [("a", "t", 4), ("a", "u", 1)]


def test_an_operator_accepts_what_is_there(slackwater: Slackwater, state: WrittenState) -> None:
    """With who and why; a database that was attached anew counts from the beginning."""
    told_locally(state, 1, t=(3, 1), u=(1, 1))
    state.commit(1, 1, ruv(r1=1))
    unknown = slackwater("local", "accept", "a", "--why", "x", "--table", "nothing")
    one = slackwater("local", "accept", "a", "--why", "masked", "--table", "t")
    left = local(slackwater)
    every = slackwater("local", "accept", "a", "--why", "all", "--json")
    none = local(slackwater)
    again = [
        slackwater("local", "accept", "a", "--why", "x", *words) for words in ((), ("--table", "t"))
    ]
    told_locally(state, 2, t=(1, 9), u=(1, 1))

    assert unknown.code == 2
    assert "a: its agent has told no local writes of table nothing" in unknown.err
    assert one.out == "a: local writes are accepted of t\n"
    assert left == [("a", "u", 1)]
    assert set(every.facts["tables"]) == {"u"}, "t is accepted already"
    assert every.facts["why"] == "all"
    assert none == []
    assert [one.code for one in again] == [2, 2]
    assert "a: its agent has told no local writes of any table that are not" in again[0].err
    assert local(slackwater) == [("a", "t", 1)]
