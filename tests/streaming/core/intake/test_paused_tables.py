"""Claims about a table that an operator pauses in one agreement: what is sent, what is judged."""

from dataclasses import replace

import pytest

from streaming.core.intake.intake import Intake
from streaming.core.intake.orders import pause_tables, resume_tables
from streaming.core.model.command import TablesOrder, parse_tables_order
from streaming.core.model.statuses import AwayReason
from streaming.core.model.table import ColumnType, Table
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.hub_state import HubState
from streaming.core.state.replica_state import ReplicaState
from streaming.core.state.topology import Subscription, Topology
from streaming.core.tracking.ranges import KeyRange, RangeRealign
from streaming.core.tracking.resync import CoveredPosition
from tests.checkpoints.written_state import agreement, ruv

TABLES = {name: Table(name, ("k",), {"k": ColumnType.TEXT}) for name in "tu"}
RULES = Topology(TABLES, {"to-b": Subscription("to-b", 2, frozenset("tu"))})
SENT = agreement("to-b", 2, 9, ruv(r1=9))
U = TablesOrder("to-b", frozenset("u"))
PAUSED = {"to-b": frozenset("u")}


def intake_of(known: AgreementState = SENT, *, paused: bool = False) -> Intake:
    """The intake of a hub at hub epoch 12; `paused`: table u is."""
    replicas = {rid: ReplicaState(rid) for rid in (1, 2)}
    state = HubState(1, "g", hub_epoch=12, replicas=replicas, agreements={"to-b": known})
    return Intake(replace(state, paused_tables=PAUSED if paused else {}), RULES, at_ms=77)


def test_a_paused_table_is_as_one_that_is_not_sent() -> None:
    """What its consumer writes there it has not seen; all else goes on."""
    intake = intake_of()

    pause_tables(intake, U)

    assert intake.paused_tables == PAUSED
    assert intake.topology.subscriptions["to-b"].tables == {"t"}
    assert (intake.topology.sees(2, "u"), intake.topology.sees(2, "t")) == (False, True)
    assert (intake.agreements["to-b"], intake.counts["pauses"]) == (SENT, 1)


def test_a_pause_lasts() -> None:
    """The next batch works by it, whoever runs it."""
    assert intake_of(paused=True).topology.subscriptions["to-b"].tables == {"t"}
    assert intake_of().topology is RULES


def test_a_table_that_is_resumed_comes_whole() -> None:
    """What its consumer writes there until it has it is concurrent."""
    intake = intake_of(paused=True)

    resume_tables(intake, U)

    one = intake.agreements["to-b"]
    assert (intake.paused_tables, intake.topology) == ({}, RULES)
    assert (one.scans, one.begins_resync) == (frozenset("u"), True)
    assert intake.state.ranges == (RangeRealign(KeyRange("u"), 2, 13),)


def test_one_that_is_away_gets_it_when_it_is_back() -> None:
    """Its resync brings the table as a whole."""
    away = SENT.away(AwayReason.SILENT, 5)
    intake = intake_of(away, paused=True)

    resume_tables(intake, U)

    assert intake.agreements["to-b"] == replace(away, scans=frozenset("u"))


def test_a_resync_under_way_begins_anew() -> None:
    """It has marked the table, or has not."""
    under_way = SENT.resyncing(CoveredPosition(9, ruv(r1=9)), 5).begun(11)
    intake = intake_of(under_way)

    pause_tables(intake, U)

    assert intake.agreements["to-b"].begins_resync


@pytest.mark.parametrize(
    "order",
    [
        pytest.param(TablesOrder("to-z", frozenset("u")), id="no such agreement"),
        pytest.param(TablesOrder("to-b", frozenset("z")), id="no such table"),
        pytest.param(TablesOrder("to-b", frozenset("tu")), id="nothing would be left"),
    ],
)
def test_what_names_nothing_changes_nothing(order: TablesOrder) -> None:
    """The batch counts it."""
    intake = intake_of()

    pause_tables(intake, order)
    resume_tables(intake, order)

    assert (intake.paused_tables, intake.agreements) == ({}, {"to-b": SENT})
    assert (intake.counts["unknown_pauses"], intake.counts["unknown_resumes"]) == (1, 1)


def test_an_order_is_read_as_it_was_written() -> None:
    """The hub reads what the command line appended."""
    assert parse_tables_order(U.text()) == U
