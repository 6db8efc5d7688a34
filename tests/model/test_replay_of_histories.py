"""What the hub keeps is enough to judge any of its batches again, whatever happened."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.e2e.test_cuts import Rerun, facts, log_of
from tests.harness.examples import examples
from tests.model.hub import PureHub
from tests.model.replayed import check_replay_is_equal, kept_records
from tests.model.storyteller import (
    AWAY_AND_LOST,
    BY_HAND,
    EVERYTHING,
    LOSES_INPUT,
    REORDERS,
    RESUMES,
    REUSES,
    UNWRITABLE,
    Plot,
    Storyteller,
    plots,
)

pytestmark = pytest.mark.more

FIXED = examples(share=2, is_fixed=True)


@FIXED
@given(plots({**BY_HAND, **REORDERS, **REUSES}))
def test_late_reused_and_ended_changes_are_judged_again_as_they_were(plot: Plot) -> None:
    """A record that went to quarantine comes from there, and only once."""
    replay(plot)


@FIXED
@given(plots(LOSES_INPUT, several=True))
def test_lost_input_is_replayed_as_it_was_lost(plot: Plot) -> None:
    """The records behind a stop are taken by the batch that went on, and by no earlier one."""
    replay(plot)


@FIXED
@given(plots(AWAY_AND_LOST, several=True, unique=True))
def test_resyncs_and_refused_rows_are_replayed(plot: Plot) -> None:
    """Pages and refusals realign rows, so they decide verdicts."""
    replay(plot)


@FIXED
@given(plots(UNWRITABLE, several=True))
def test_topics_that_refuse_for_a_while_are_replayed(plot: Plot) -> None:
    """Who is away because of that, and who is brought back, is part of the plan."""
    replay(plot)


@FIXED
@given(plots(RESUMES, several=True, acts=True))
def test_commands_are_replayed(plot: Plot) -> None:
    """An operator's command is part of the plan."""
    replay(plot)


@FIXED
@given(plots(EVERYTHING, several=True, unique=True))
def test_replay_is_equal_whatever_happens(plot: Plot) -> None:
    """Everything above in one history."""
    replay(plot)


def replay(plot: Plot) -> None:
    """Tell a story to its end, and judge its history again."""
    teller = Storyteller()
    for _ in teller.run(plot):
        pass
    hub = teller.world.hub
    assert isinstance(hub, PureHub)
    check_replay_is_equal(hub)


@FIXED
@given(plots({**REORDERS, **REUSES}), st.integers(1, 9))
def test_another_cut_of_what_was_kept_changes_no_fact(plot: Plot, size: int) -> None:
    """A history of a hub that was slow must mean what that of a fast one does."""
    log = log_of(plot)
    kept = replace(log, arrivals=kept_records(log.hub))

    cut = Rerun(kept, size).hub

    assert facts(cut) == facts(log.hub)
