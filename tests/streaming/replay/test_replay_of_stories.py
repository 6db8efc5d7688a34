"""The tables of a hub are enough to judge its history again, and tell when they were changed."""

from dataclasses import replace
from pathlib import Path

import pytest

from checkpoints.query import records
from checkpoints.reading.reader import open_state
from checkpoints.tables import TableName
from streaming.core.counts.tallies import kept_sums
from streaming.core.records import kept_bytes
from streaming.core.records.quarantine_budget import QuarantineLimits
from streaming.core.records.record import Heartbeat
from streaming.core.state.restored import SentPosition, raised
from streaming.stages import log
from tests.harness.replays import check_audit_is_sound, quarantine_sums
from tests.model.language import play
from tests.model.local_hub import LocalHub, local_hubs
from tests.streaming.replay.conftest import STORY

pytestmark = pytest.mark.more

FOLDER = Path(__file__).parents[2] / "scenarios"
STORIES = (
    "ancestor_of_a_rejected_transaction_stays",
    "backup_that_covers_little_gets_own_and_others_rows",
    "batch_cut_in_mid_publish_comes_again_whole",
    "change_of_a_transaction_ended_by_hand_is_taken_back",
    "hello_speaks_for_later_epochs_only",
    "hole_in_the_opnos_is_waited_for",
    "largest_value_wins_whoever_comes_first",
    "late_change_takes_its_transaction_along",
    "refused_row_is_sent_again_by_itself",
    "refused_row_outlives_crashes",
    "retired_origin_leaves_no_open_transaction",
    "reused_csn_is_kept_aside_and_its_row_refreshed",
    "second_delete_wins_and_so_does_what_follows_it",
    "transaction_open_over_batches_is_seen_when_it_commits",
    "waiting_change_is_judged_by_its_own_epoch",
    "winner_that_was_concurrent_is_sent_back",
)
"""Of each rule one that a hub without Spark can live; test_scenarios has them all."""


@pytest.mark.parametrize("story", STORIES)
def test_a_history_is_judged_again_and_audited(story: str, tmp_path: Path) -> None:
    """A verdict that does not follow from the record would mean that the record is wrong.

    The audit judges everything again too.
    """
    play((FOLDER / f"{story}.txt").read_text(encoding="utf-8"), local_hubs(tmp_path))

    check_audit_is_sound(tmp_path / "state")


@pytest.mark.parametrize(
    "story",
    [
        "late_change_takes_its_transaction_along",
        "change_of_a_transaction_ended_by_hand_is_taken_back",
        "record_of_an_old_session_is_no_base_for_a_duplicate",
        "reused_csn_is_kept_aside_and_its_row_refreshed",
        "transaction_with_a_change_of_a_clock_ahead_stays_whole_at_its_writer",
    ],
)
def test_heads_are_enough_to_judge_a_history_again(
    story: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the budget no verdict, and no reason, is another; and each record is counted once."""
    for module in (kept_bytes, log):
        monkeypatch.setattr(module, "SHORT_HEAD_BYTES", 1)
    monkeypatch.setattr(QuarantineLimits, "is_spent", lambda *_: True)
    play((FOLDER / f"{story}.txt").read_text(encoding="utf-8"), local_hubs(tmp_path))

    check_audit_is_sound(tmp_path / "state")
    reader = open_state(tmp_path / "state")
    kept = records(reader.read(TableName.QUARANTINE))
    assert reader.commit is not None
    assert {len(row["value"]) for row in kept if row["value"] is not None} == {1}
    assert kept_sums(reader.commit.totals) == quarantine_sums(reader)


def test_a_hub_that_went_on_from_an_older_state_is_judged_again(tmp_path: Path) -> None:
    """Its first batch is of the next generation, above everything that the lost one had sent."""
    hub = play(STORY, local_hubs(tmp_path)).hub
    assert isinstance(hub, LocalHub)
    hub.restart(0)
    assert hub.service is not None
    at_work = hub.service.hub
    at_work.state = raised(at_work.state, [SentPosition(1, at_work.state.hub_epoch + 5)])
    at_work.ledger.last = replace(at_work.ledger.last, state=at_work.state)

    hub.send(1, "r1-1", Heartbeat(99), 1_700_000_900_000)
    hub.take(None, 0, None)

    assert hub.hub_epoch() == at_work.state.hub_epoch == 13
    check_audit_is_sound(tmp_path / "state")
