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
    monkeypatch.setattr(programs, "POSTGRES", tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    assert programs.main() == 1
    said = capsys.readouterr().err
    assert "apt-get install --no-install-recommends chromium postgresql prometheus" in said


def test_the_newest_postgresql_is_found_off_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian has a folder for each version; 9 is older than 15."""
    for version in ("9", "15", "common"):
        (tmp_path / version / "bin").mkdir(parents=True)
        (tmp_path / version / "bin" / "initdb").write_text("#!/bin/sh\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(programs, "POSTGRES", tmp_path)

    assert programs.find("initdb") == tmp_path / "15" / "bin" / "initdb"
