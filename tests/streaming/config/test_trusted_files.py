"""What holds code or secrets is no file that other users may write."""

import os
from pathlib import Path

import pytest

from streaming.cli.entry import keep_files_private
from streaming.config.config import load
from streaming.config.functions import complaints
from streaming.core.model.errors import ConfigError
from streaming.replay.what_if import parse_what_if

TEXT = """
[kafka]
bootstrap_servers = "localhost:9092"
[[replicas]]
name = "a"
rid = 1
[[tables]]
name = "t"
key = ["k"]
columns = { k = "text" }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A configuration."""
    path = tmp_path / "hub.toml"
    path.write_text(TEXT)
    path.chmod(0o644)
    return path


@pytest.mark.parametrize("mode", [0o666, 0o646, 0o664])
def test_a_configuration_that_others_may_write_is_refused(file: Path, mode: int) -> None:
    """It names code, brokers and who may read."""
    file.chmod(mode)

    with pytest.raises(ConfigError, match="may be written by other users"):
        load(file)


def test_a_secret_that_others_may_write_is_refused(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of these files overrides a field of the configuration."""
    folder = tmp_path / "secrets"
    folder.mkdir()
    monkeypatch.setenv("SLACKWATER_SECRETS", str(folder))
    secret = folder / "SLACKWATER_HTTP__TOKEN"
    secret.write_text("a-token-that-nobody-guesses")
    secret.chmod(0o640)
    assert load(file).http.token == "a-token-that-nobody-guesses"

    secret.chmod(0o622)

    with pytest.raises(ConfigError, match="SLACKWATER_HTTP__TOKEN may be written by other users"):
        load(file)


def test_no_module_is_imported_that_the_configuration_does_not_name(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Importing is running: a check of a configuration must not do that for any module."""
    (tmp_path / "evil.py").write_text(
        f"open({str(tmp_path / 'ran')!r}, 'w').close()\ndef f(): pass"
    )
    monkeypatch.syspath_prepend(tmp_path)
    file.write_text(f'{TEXT}function = "evil:f"\n')
    config = load(file)

    (said,) = complaints(config.table_map().values(), config.functions.modules)

    assert "evil:f of table t: functions.modules does not name its module" in said
    assert not (tmp_path / "ran").exists()


def test_a_what_if_imports_no_other_module_either(file: Path) -> None:
    """A replay judges with the functions that it is told."""
    with pytest.raises(ConfigError, match="os:system of table t: functions"):
        parse_what_if(["t.function=os:system"]).check(load(file))


@pytest.mark.parametrize(
    ("command", "given", "kept"),
    [
        ("run", 0o022, 0o077),
        ("backup", 0o000, 0o077),
        ("agent", 0o027, 0o027),
        ("run", 0o077, 0o077),
        ("setup", 0o077, 0o077),
        ("setup", 0o002, 0o022),
    ],
)
def test_what_a_command_writes_is_for_its_user_alone(
    monkeypatch: pytest.MonkeyPatch, command: str, given: int, kept: int
) -> None:
    """State, backups and databases hold rows; a umask that shuts others out is somebody's will."""
    monkeypatch.setattr("sys.argv", ["slackwater", command])
    before = os.umask(given)
    try:
        keep_files_private()
    finally:
        found = os.umask(before)

    assert found == kept
