"""What a wrong clock wrote and no topic has gets CSNs of the right time before it is published."""

from contextlib import closing
from dataclasses import replace

import pytest

from connectors.sqlite.journal import uncarried
from connectors.sqlite.transaction import transaction
from streaming.core.delivery.consumer import ApplyBatch, Position
from streaming.core.model.change import Change, Op
from streaming.core.model.csn import CsnParts, format_csn, time_of
from streaming.core.model.ruv import Ruv
from streaming.core.records.record import Commit, Item, ItemType
from tests.connectors.sqlite.sqlite_replica import RID, Replica
from tests.connectors.sqlite.test_reconcile import Life, life, now_s

__all__ = ["life"]

HOURS_30 = 30 * 3_600
MINUTE_S = 60


def published(life: Life) -> list[Change]:
    """The changes in the topic, repeats left out."""
    return list(dict.fromkeys(r for _, r in life.topic.records() if isinstance(r, Change)))


def applied(at: Life, *csns: str, skew_s: int) -> None:
    """Let an agent with this limit apply rows that others wrote by these CSNs."""
    items = tuple(
        Item(
            ItemType.CHANGE,
            "items",
            f'{{"id":"{900 + n}"}}',
            Op.INSERT,
            f'{{"id":"{900 + n}","name":null,"price":null}}',
            csn,
            2,
        )
        for n, csn in enumerate(csns)
    )
    ruv = Ruv("5f00")
    for csn in csns:
        ruv = ruv.with_csn(csn)
    with closing(at.replica.store()) as store:
        store.skew_s = skew_s
        position = replace(Position(), session="s", covers=1, ruv=ruv, reached=1)
        store.apply(ApplyBatch(position, 1, items), 1, now_s() * 1_000)


def csn_of(rid: int, time_s: int) -> str:
    """A CSN of this replica and time."""
    return format_csn(CsnParts(time_s, 7, rid, 0))


def test_what_a_clock_ahead_wrote_is_dated_by_the_right_one(
    life: Life, caplog: pytest.LogCaptureFixture
) -> None:
    """Its agent was down, so nobody has seen the CSNs; the hub would put all into quarantine."""
    life.write()
    life.run()
    life.jump(HOURS_30)
    life.write(2)
    life.write_group(2)
    with transaction(life.replica.client):
        life.write()
        life.replica.client.execute("UPDATE _slackwater_origin SET depth = depth + 1")

    life.run()
    life.write()
    life.run()

    changes, now = published(life), now_s()
    assert [c.opno for c in changes] == list(range(1, 8))
    assert [c.key for c in changes] == [f'{{"id":"{n}"}}' for n in range(1, 8)]
    assert life.csns() == sorted(life.csns())
    assert all(now - MINUTE_S < time_of(c.csn) <= now for c in changes)
    assert changes[3].prim_csn == changes[4].prim_csn == changes[3].csn
    ends = {r.prim_csn for _, r in life.topic.records() if isinstance(r, Commit)}
    assert ends == {changes[3].csn, changes[5].csn}
    assert not any(hello.lost for hello in life.topic.hellos())
    assert caplog.text.count("5 changes not published yet had a CSN too far ahead") == 1


@pytest.mark.parametrize("room", range(9))
def test_an_agent_that_is_killed_while_it_dates_anew_repeats_and_loses_nothing(
    life: Life, room: int
) -> None:
    """What is in the topic keeps its CSN, whether it was marked as published or not."""
    life.jump(HOURS_30)
    life.write(2)
    life.write_group()

    life.run(room)
    life.run()
    life.run()

    keys = [change.key for change in published(life)]
    assert keys == [f'{{"id":"{n}"}}' for n in range(1, 6)]
    assert life.opnos() == [1, 2, 3, 4, 5]
    assert not any(hello.lost for hello in life.topic.hellos())


def test_what_goes_on_behind_a_published_change_keeps_its_csn(life: Life) -> None:
    """The hub takes it, and a CSN that was given is changed only where it must be."""
    life.topic.ahead_s = HOURS_30
    life.jump(HOURS_30)
    life.write()
    life.run()
    life.topic.ahead_s = 0
    life.write(2)
    before = life.replica.changes()

    life.run()

    assert published(life) == before


def test_an_uncarried_row_is_listed_by_its_new_csn(life: Life) -> None:
    """The list names the record that the hub has."""
    life.jump(HOURS_30)
    life.replica.client.execute("INSERT INTO items (id, price) VALUES (1, 'much')")
    uncarried.note(life.replica.client)
    (before,) = uncarried.listed(life.replica.client)

    life.run()

    (row,) = uncarried.listed(life.replica.client)
    assert row.csn == published(life)[0].csn != before.csn


def test_what_was_applied_stays_below_what_is_dated_anew(life: Life) -> None:
    """It was there before; but a CSN that is too far ahead was never followed."""
    near, far = csn_of(2, now_s() + 3_600), csn_of(3, now_s() + 2 * HOURS_30)
    applied(life, near, far, skew_s=86_400)
    life.jump(HOURS_30)
    life.write()

    life.run()

    (change,) = published(life)
    assert near < change.csn < csn_of(2, now_s() + 3_601)


def test_a_replica_follows_no_clock_further_than_the_hub_allows(replica: Replica) -> None:
    """Otherwise the hub refuses what it writes, because of another one's clock."""
    at, followed_s = Life(replica), now_s() + 3_599
    applied(at, csn_of(2, followed_s), skew_s=3_600)
    at.write()
    applied(at, csn_of(2, now_s() + 7_200), skew_s=3_600)
    at.write()

    assert [time_of(change.csn) for change in replica.changes()] == [followed_s] * 2
    assert {change.rid for change in replica.changes()} == {RID}
