"""States that releases left behind: this version reads each, and goes on from it."""

import json
from pathlib import Path

import pytest

from checkpoints.format_number import FORMAT
from checkpoints.reading.reader import open_state
from streaming.core.counts.tallies import kept_sums
from tests.checkpoints.kept_state import KeptState, goes_on, said_of, unpacked
from tests.harness.replays import check_audit_is_sound, check_replay_is_equal, quarantine_sums

STATES = sorted((Path(__file__).parent / "states").glob("format-*.tar.xz"))


@pytest.fixture(params=STATES, ids=lambda file: file.name)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> KeptState:
    """One of them, in a folder of its own."""
    return unpacked(request.param, tmp_path / "hub")


def test_each_format_has_a_kept_state() -> None:
    """Who raises FORMAT keeps the state of the release before."""
    assert [file.name for file in STATES] == [f"format-{n}.tar.xz" for n in range(1, FORMAT + 1)]


def test_it_says_what_it_said(kept: KeptState) -> None:
    """Rows, RUVs, agreements, quarantine, conflicts and what is open."""
    assert json.loads(json.dumps(said_of(kept.config))) == kept.said


def test_its_history_is_judged_as_it_was(kept: KeptState) -> None:
    """A later version's verdicts are those of the release, and its state follows from them."""
    check_replay_is_equal(kept.folder / "state")
    check_audit_is_sound(kept.folder / "state")


def test_a_hub_goes_on_from_it(kept: KeptState) -> None:
    """What a replica writes next is judged against the rows that are there."""
    before = open_state(kept.folder / "state").commit

    hub, csn = goes_on(kept)

    assert before is not None
    (judged,) = [one for one in hub.changelog() if one.csn == csn]
    assert judged.verdict == "accepted"
    after = open_state(kept.folder / "state")
    assert after.commit is not None
    assert kept_sums(after.commit.totals) == quarantine_sums(after) != {}
    assert judged.hub_epoch == before.state.hub_epoch + 1
    check_replay_is_equal(kept.folder / "state")
