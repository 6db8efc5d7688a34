"""What `make test` needs of Debian is installed, or named with the command that installs it."""

import os
from pathlib import Path

import pytest

from deploy import programs


def test_what_is_on_the_path_is_not_installed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second `make test` needs no network."""
    for name in programs.PACKAGES:
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert programs.missing() == []
    assert programs.main() == 0


def test_who_may_not_install_is_told_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A failed test of a program that is missing would not say so."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    assert programs.main() == 1
    assert "apt-get install --no-install-recommends chromium prometheus" in capsys.readouterr().err
