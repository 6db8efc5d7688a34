"""Rows that nobody contends are decided in columns, the others by core's rule."""

from dataclasses import replace

from streaming.core.conflict.judge import Cause, Verdict
from streaming.core.model.row import Floor, RowState
from streaming.core.model.row_name import text_of
from streaming.core.state.replica_state import ReplicaState
from streaming.stages.judge import LAST, Verdicts
from tests.harness.builders import change, csn
from tests.streaming.core.intake.speaker import RULES, Speaker, T, fresh_state
from tests.streaming.stages.batches import HUB_EPOCH, judged, records_of

K, L = ("t", '{"k":"k"}'), ("t", '{"k":"l"}')
IMAGE = '{"k":"k","v":"theirs"}'
THEIRS = RowState(2, 3, csn(1, 2), exists=True, image=IMAGE)
MINE = RowState(1, 3, csn(1), exists=True, image=IMAGE)


def test_a_row_that_nobody_contends_is_its_last_change() -> None:
    """Core is not called; the next change of the row meets the one before it."""
    verdicts = judged(records_of(change(10), change(11), change(12, "l", None)), {K: MINE})

    assert verdicts.judged == {}
    assert verdicts.refreshes == []
    assert verdicts.rows == {
        text_of(K): RowState(1, HUB_EPOCH, csn(11), exists=True),
        text_of(L): RowState(1, HUB_EPOCH, csn(12)),
    }
    assert verdicts.row_author.tolist() == [1, 1, 0]
    assert verdicts.row_epoch.tolist() == [3, HUB_EPOCH, 0]
    assert verdicts.row_csn.to_pylist() == [csn(1), csn(10), None]


def test_a_row_that_another_wrote_unseen_goes_to_core() -> None:
    """The row wins, its writer is realigned and sent the row behind the change."""
    verdicts = judged(records_of(change(10, "l"), change(11)), {K: THEIRS})

    (place,) = verdicts.judged
    one = verdicts.judged[place]
    assert (place, one.verdict, one.concurrent) == (1, Verdict.REJECTED, True)
    ((behind, refresh),) = verdicts.refreshes
    assert (behind, refresh.to, refresh.row.image) == (1, 1, IMAGE)
    author, epoch, written, exists, _, realign = verdicts.rows[text_of(K)]
    assert (author, epoch, written, exists) == (2, 3, csn(1, 2), True)
    assert [(r.rid, r.hub_epoch) for r in realign] == [(1, HUB_EPOCH)]


def test_what_a_restored_replica_writes_goes_to_core_until_it_has_caught_up() -> None:
    """The floor stays in the state; it must not make every later change of the replica slow."""
    lost = replace(ReplicaState(1), floors=(Floor(2, 0, "", csn(9)),))
    state = fresh_state(hub_epoch=4)
    state = replace(state, replicas={**state.replicas, 1: lost})

    def judged_at(covers: int) -> Verdicts:
        speaker = Speaker()
        received = [*speaker.hello(covers=covers), *speaker.send(change(10))]
        return judged(received, {K: MINE}, state=state)

    (one,) = judged_at(1).judged.values()
    assert (one.verdict, one.cause, one.realign_epoch) == (Verdict.REJECTED, Cause.FLOOR, 2)
    assert judged_at(2).judged == {}


def test_a_row_that_two_replicas_write_in_one_batch_goes_to_core() -> None:
    """Neither has seen the other's change."""
    received = [*records_of(change(10)), *records_of(change(11, rid=2), rid=2)]

    verdicts = judged(received, {})

    assert [one.verdict for one in verdicts.judged.values()] == [
        Verdict.ACCEPTED,
        Verdict.REJECTED,
    ]
    assert [refresh.to for _, refresh in verdicts.refreshes] == [2]


def test_a_partial_image_is_merged_by_core() -> None:
    """An absent column is unknown: the row as it stands has it."""
    partial = change(10)._replace(after='{"k":"k"}')

    verdicts = judged(records_of(partial), {K: MINE})

    (one,) = verdicts.judged.values()
    assert (one.verdict, one.after.image) == (Verdict.ACCEPTED, IMAGE)
    (row,) = verdicts.contended
    assert row.image == IMAGE


def test_the_refresh_of_a_late_change_stands_behind_all_others() -> None:
    """Whatever else the batch wrote to that row is in it."""
    verdicts = judged(records_of(change(11), change(10), change(12)), {})

    assert [one.verdict for one in verdicts.judged.values()] == [
        Verdict.ACCEPTED,
        Verdict.REJECTED,
    ]
    assert [(place, str(refresh.cause)) for place, refresh in verdicts.refreshes] == [
        (1, "conflict"),
        (LAST, "late"),
    ]


def test_a_change_of_a_removed_table_goes_to_core() -> None:
    """It was open when its table was removed; in bulk it would be accepted."""
    gone = change(11, "l")._replace(table="gone")
    with_table = replace(RULES, tables={**RULES.tables, "gone": T})

    verdicts = judged(records_of(change(10), gone, change(12)), {}, taken_under=with_table)

    assert [one.verdict for one in verdicts.judged.values()] == [Verdict.QUARANTINED]
    assert list(verdicts.judged) == [1]
    assert verdicts.refreshes == []
