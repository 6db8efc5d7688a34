"""The process that compares beside a hub is started again when it ends, and ends with the hub."""

import logging
from pathlib import Path

import pytest

from streaming.config.sources.load import load
from streaming.hub import comparison
from streaming.hub.comparison import compared_beside
from tests.harness.hub_process import wait_until
from tests.harness.other_processes import processes_with
from tests.streaming.config.test_compare_section import configured


def test_one_that_ends_is_named_and_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The hub goes on, whatever becomes of it: here it finds no configuration."""
    config = load(configured(tmp_path, 'database = "berlin.db"'))
    monkeypatch.setattr(comparison, "AGAIN_S", 0.0)

    with caplog.at_level(logging.ERROR), compared_beside(tmp_path / "gone.toml", config):
        wait_until(lambda: len(caplog.messages) >= 2, lambda: "it was started again")

    assert caplog.messages[0].startswith("the comparison beside the hub ended (exit code 1)")


def test_it_ends_with_what_it_runs_beside(tmp_path: Path) -> None:
    """And without a section there is none."""
    file = configured(tmp_path, 'database = "berlin.db"')

    with compared_beside(file, load(file)):
        wait_until(lambda: len(processes_with(str(file))) == 1, lambda: "it was started")
    assert processes_with(str(file)) == {}
    with compared_beside(file, load(Path("deploy/hub.toml"))):
        assert processes_with(str(file)) == {}
