"""What is configured no more is retired, and goes on as it was when it is configured again."""

from dataclasses import replace

import pytest

from streaming.core.model.column_filter import ColumnFilter
from streaming.core.model.mask import ConstantMask
from streaming.core.model.ruv import NOTHING_KNOWN
from streaming.core.model.statuses import AgreementStatus, AwayReason, ReplicaStatus
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.hub_state import HubState
from streaming.core.state.membership import LastTopology, adopted, retired_of, sending_only
from streaming.core.state.reflection import Session
from streaming.core.state.replica_state import ReplicaState
from streaming.core.state.topology import Subscription, Topology
from streaming.core.tracking.ranges import KeyRange, RangeRealign
from streaming.filters.row_predicate import RowPredicate
from tests.harness.builders import send_range
from tests.streaming.core.intake.speaker import RULES, T

SESSION = Session("s", 1, (1,), (0,))
ONLY_1 = Topology({"t": T}, {"a1": RULES.subscriptions["a1"]})
NOT_RETIRED = [one for one in ReplicaStatus if one is not ReplicaStatus.RETIRED]
AGREED = [one for one in AgreementStatus if one is not AgreementStatus.RETIRED]


def state_of(replica: ReplicaState, agreement: AgreementState, **changed: object) -> HubState:
    """A hub with replica 1, this replica 2, and an agreement for each."""
    state = HubState(
        1,
        "g",
        replicas={1: ReplicaState(1), 2: replica},
        agreements={"a1": AgreementState("a1", 1), "a2": agreement},
    )
    return replace(state, **changed)  # type: ignore[arg-type]


@pytest.mark.parametrize("status", NOT_RETIRED)
def test_a_replica_is_back_as_it_was(status: ReplicaStatus) -> None:
    """Sessions, offset and the reason of a stop: a replica that must not be read is not read."""
    is_stopped = status.is_stopped
    replica = ReplicaState(
        2,
        status,
        "why" if is_stopped else "",
        () if status is ReplicaStatus.SILENT else (SESSION,),
        stop_offset=7 if is_stopped else None,
    )
    state = state_of(replica, AgreementState("a2", 2))

    away = adopted(state, ONLY_1, [1])
    back = adopted(away, RULES, [1, 2])

    assert away.replicas[2].is_stopped
    assert away.replicas[2].status_text == (
        f"retired: {replica.status_text}" if is_stopped else "retired"
    )
    assert back.replicas[2] == replica
    assert (set(retired_of(away)[0]), set(retired_of(back)[0])) == ({2}, set())


@pytest.mark.parametrize("status", AGREED)
def test_an_agreement_goes_on_where_it_was(status: AgreementStatus) -> None:
    """One that was in sync catches up with what it was not sent meanwhile."""
    session = None if status is AgreementStatus.WAITING_FOR_HELLO else "s"
    agreement = AgreementState("a2", 2, status, session=session, sent_covers=5, scanned=6)
    state = state_of(ReplicaState(2), agreement)

    away = adopted(state, ONLY_1, [1, 2])
    back = adopted(away, RULES, [1, 2])

    expected = (
        AgreementStatus.CATCHING_UP
        if status in (AgreementStatus.IN_SYNC, AgreementStatus.CATCHING_UP)
        else status
    )
    assert away.agreements["a2"].is_stopped
    assert back.agreements["a2"] == replace(agreement, status=expected)
    assert [set(one) for one in retired_of(away)] == [set(), {"a2"}]


def test_adopting_twice_changes_nothing_more() -> None:
    """A hub may die before the batch that commits it."""
    range_ = send_range(3, 5, 2, NOTHING_KNOWN)
    agreement = AgreementState("a2", 2, AgreementStatus.IN_SYNC, "", "s", sent_covers=5, scanned=5)
    state = state_of(ReplicaState(2), agreement, to_send={"a2": range_})

    once = adopted(state, ONLY_1, [1])

    assert adopted(once, ONLY_1, [1]) == once


def test_what_was_promised_is_sent_when_the_agreement_is_back() -> None:
    """The hub may have died before it published; its acknowledgement is still believed."""
    promised = send_range(3, 5, 2, NOTHING_KNOWN)
    agreement = AgreementState(
        "a2", 2, AgreementStatus.IN_SYNC, session="s", sent_epoch=5, sent_covers=5, scanned=5
    )
    state = state_of(ReplicaState(2), agreement, to_send={"a1": promised, "a2": promised})

    away = adopted(state, ONLY_1, [1, 2]).agreements["a2"]

    assert (away.scanned, away.sent_epoch, away.sent_covers) == (3, 2, 5)
    assert sending_only(state, ONLY_1.subscriptions).to_send == {"a1": promised}


def test_an_agreement_for_another_consumer_is_a_new_one() -> None:
    """The positions are those of a consumer: another one has its own."""
    agreement = AgreementState("a2", 2, AgreementStatus.IN_SYNC, session="s", sent_covers=5)
    state = state_of(ReplicaState(2), agreement, hub_epoch=9)
    other = Topology({"t": T}, {"a2": Subscription("a2", 1, frozenset("t"))})

    found = adopted(state, other, [1, 2]).agreements

    assert found["a2"] == AgreementState("a2", 1, published=9)
    assert found["a1"].is_retired


def test_a_batch_of_an_earlier_configuration_sends_only_what_is_configured_now() -> None:
    """Its records are read and judged as planned; the agreement that is gone is sent nothing."""
    agreement = AgreementState("a2", 2, AgreementStatus.IN_SYNC, session="s", sent_covers=5)
    state = state_of(ReplicaState(2, ReplicaStatus.LIVE, sessions=(SESSION,)), agreement)

    found = adopted(state, RULES, [1, 2], sending=["a1"])

    assert found.replicas[2].status is ReplicaStatus.LIVE
    assert [set(one) for one in retired_of(found)] == [set(), {"a2"}]


U = replace(T, name="u")
NARROW = Topology({"t": T, "u": U}, {"a2": Subscription("a2", 2, frozenset("t"))})
WIDE = Topology({"t": T, "u": U}, {"a2": Subscription("a2", 2, frozenset("tu"))})


def widened(agreement: AgreementState, before: Topology) -> HubState:
    """The state with this agreement under WIDE, behind hub epoch 9 under another topology."""
    state = state_of(ReplicaState(2), agreement, hub_epoch=9)
    return adopted(state, WIDE, [1, 2], before=LastTopology(before, at_ms=5))


def test_a_wider_agreement_gets_the_table_whole() -> None:
    """Else its rows of before would never come, and what it writes there would win over them."""
    agreement = AgreementState("a2", 2, AgreementStatus.IN_SYNC, session="s", acked_covers=8)

    found = widened(agreement, NARROW)

    assert found.agreements["a2"] == agreement.rescanning("u", 5)
    assert found.agreements["a2"].begins_resync
    assert found.ranges == (RangeRealign(KeyRange("u"), 2, 10),)


SOME = replace(WIDE.subscriptions["a2"], rows={"u": RowPredicate("v = 'x'", U)})


SHORT = {"u": ColumnFilter(frozenset("k"))}


@pytest.mark.parametrize(
    "other",
    [
        replace(SOME, rows={}),
        replace(SOME, rows={"u": RowPredicate("v = 'y'", U)}),
        replace(SOME, columns=SHORT),
    ],
)
def test_an_agreement_with_another_filter_gets_the_table_whole(other: Subscription) -> None:
    """What it shows, or hides, without a change of the row would never come, or never go."""
    agreement = AgreementState("a2", 2, AgreementStatus.IN_SYNC, session="s", acked_covers=8)
    before = replace(WIDE, subscriptions={"a2": other})
    state = state_of(ReplicaState(2), agreement, hub_epoch=9)
    after = replace(WIDE, subscriptions={"a2": SOME})

    found = adopted(state, after, [1, 2], before=LastTopology(before, at_ms=5))
    same = adopted(state, after, [1, 2], before=LastTopology(after, at_ms=5))

    assert found.agreements["a2"] == agreement.rescanning("u", 5)
    assert found.ranges == (RangeRealign(KeyRange("u"), 2, 10),)
    assert (same.agreements["a2"], same.ranges) == (agreement, ())


def test_what_is_written_on_masked_rows_is_rejected_until_they_are_there() -> None:
    """It has the masks in it, and by the table's function they might win over the values."""
    masked = ColumnFilter(frozenset("kv"), {"v": ConstantMask("null")})
    before = replace(WIDE, subscriptions={"a2": replace(SOME, rows={}, columns={"u": masked})})
    state = state_of(ReplicaState(2), AgreementState("a2", 2), hub_epoch=9)

    found = adopted(state, WIDE, [1, 2], before=LastTopology(before, at_ms=5))

    assert found.ranges == (RangeRealign(KeyRange("u"), 2, 10, rejects_transaction=True),)


def test_a_consumer_that_is_away_gets_it_when_it_is_back() -> None:
    """It is only noted; so is it of one that an operator has paused."""
    agreement = AgreementState("a2", 2).away(AwayReason.PAUSED, 1)

    found = widened(agreement, NARROW)

    assert found.agreements["a2"] == replace(agreement, scans=frozenset("u"))


@pytest.mark.parametrize("before", [WIDE, Topology({"t": T}, NARROW.subscriptions)])
def test_no_table_is_sent_whole_that_has_no_rows_of_before(before: Topology) -> None:
    """One that the consumer has, and one that is new to the hub: its own rows would be deleted."""
    agreement = AgreementState("a2", 2, AgreementStatus.IN_SYNC, session="s", acked_covers=8)

    found = widened(agreement, before)

    assert found.agreements["a2"] == agreement
    assert found.ranges == ()
