"""What `.ci/run` runs: each test in one target, and in `make test` a hub for each capability."""

import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parent.parent
MAKEFILE = (CHECKOUT / "Makefile").read_text()
TARGETS = ("test", "test-more", "test-slow")
MARKS = ("slow", "more")

CAPABILITIES = {
    "replication without loss": "tests/e2e/test_faults.py::test_kill_at_every_point[first]",
    "conflict functions": "tests/e2e/test_conflict_functions.py::",
    "an operator's override": "tests/e2e/test_override.py::test_override_and_accept",
    "quarantine of bad input": "tests/e2e/test_bad_input.py::",
    "release from quarantine": "tests/e2e/test_override.py::test_release_of_what_a_wrong_clock",
    "limits": "tests/e2e/test_limits.py::",
    "resync of who was away": "tests/e2e/test_consumers_away.py::test_who_was_away_gets_each_row",
    "a full copy": "tests/e2e/test_lost_files.py::test_a_deleted_database_comes_back",
    "refused rows": "tests/e2e/test_refused_rows.py::",
    "rows that no record holds": "tests/e2e/test_written_and_uncarried.py::",
    "rights of tables": "tests/e2e/test_rights_of_tables.py::",
    "level": "tests/e2e/test_level_moments.py::",
    "retired replicas": "tests/e2e/test_retired.py::",
    "a site that is removed": "tests/e2e/test_site_removed.py::",
    "lost topics": "tests/e2e/test_lost_topics.py::",
    "a broker that is away": "tests/e2e/test_races.py::test_broker_away_and_orderly_end",
    "backup and restore": "tests/e2e/test_backup.py::",
    "a restored hub": "tests/e2e/test_restored_hub.py::",
    "standby": "tests/e2e/test_standby.py::",
    "both carriers": "tests/e2e/test_carriers.py::",
    "replay": "tests/e2e/test_replay_beside.py::",
    "data sets": "tests/e2e/test_datasets.py::",
    "events": "tests/e2e/test_events.py::",
    "pages of the hub": "tests/e2e/test_console.py::",
    "metrics": "tests/e2e/test_metrics.py::",
    "traces and lineage": "tests/e2e/test_telemetry.py::",
    "secrets": "tests/e2e/test_secrets.py::",
    "signals": "tests/e2e/test_signals.py::",
}
"""What the product can do -> how the name begins of a test that has a real hub do it."""


def marks_of(target: str) -> str:
    """The marker expression of a target of the Makefile."""
    recipe = rf'^{target}:.*\n(?:\t.*\n)*?\t.*pytest -m "?([\w ]+)"? '
    found = re.search(recipe, MAKEFILE, re.MULTILINE)
    assert found, f"make {target} runs no pytest"
    return found[1].strip()


def collected(*arguments: str) -> tuple[int, list[str]]:
    """The exit code of pytest, and the tests that it would run."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", *arguments],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, [line for line in done.stdout.splitlines() if "::" in line]


def test_each_test_is_in_one_target() -> None:
    """By its marks, whichever it has: a test that is in none of them holds nothing."""
    expressions = {target: marks_of(target) for target in TARGETS}

    for has in product([False, True], repeat=len(MARKS)):
        names = dict(zip(MARKS, has, strict=True))
        in_it = [target for target, text in expressions.items() if eval(text, {}, names)]
        assert len(in_it) == 1, f"a test with {names} is in {in_it}"


def test_the_gate_runs_everything_that_is_not_slow() -> None:
    """What leaves `make test` is checked all the same before a change goes in."""
    lines = (CHECKOUT / ".ci/run").read_text().splitlines()

    assert [line for line in lines if line.startswith("make ")] == [
        *("make test", "make test-more", "make check")
    ]
    assert "set -euo pipefail" in lines


def test_make_test_has_a_real_hub_for_each_capability() -> None:
    """Whoever changes one of them learns of it in minutes, from what a newcomer runs."""
    code, found = collected("-m", marks_of("test"), "tests/e2e")

    assert code == 0
    without = [
        capability
        for capability, begin in CAPABILITIES.items()
        if not any(name.startswith(begin) for name in found)
    ]
    assert without == []


@pytest.mark.parametrize(
    "more", [(), pytest.param(("-n", "2", "--dist", "loadfile"), marks=pytest.mark.more)]
)
def test_a_run_without_tests_fails(more: tuple[str, ...]) -> None:
    """A marker that is misspelt in a target would be a gate that is always green."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *more, "-k", "no_such_name", "tests/test_encodings.py"],
        cwd=CHECKOUT,
        capture_output=True,
        check=False,
    )

    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED
