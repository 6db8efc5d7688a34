"""What holds code or secrets is no file that other users may write, nor one that is theirs."""

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from connectors.agent.process import run_file
from connectors.sqlite.load import prepare_of
from connectors.sqlite.run import open_store
from connectors.trusted_file import check_trusted
from streaming.cli.entry import keep_files_private
from streaming.config.access import access_faults
from streaming.config.errors import check
from streaming.config.functions import complaints
from streaming.config.sources.load import load
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


@pytest.fixture
def secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A secret file, which overrides a field of the configuration."""
    folder = tmp_path / "secrets"
    folder.mkdir()
    monkeypatch.setenv("SLACKWATER_SECRETS", str(folder))
    made = folder / "SLACKWATER_HTTP__TOKEN"
    made.write_text("a-token-that-nobody-guesses")
    made.chmod(0o640)
    return made


MakeOthers = Callable[[Path], None]
"""Makes a file another user's."""


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> MakeOthers:
    """By giving it away, where that is allowed; otherwise by running as another user."""

    def make(file: Path) -> None:
        if os.geteuid():
            monkeypatch.setattr(os, "geteuid", lambda: 4711)
        else:
            os.chown(file, 4711, -1)

    return make


def test_a_secret_that_others_may_write_is_refused(file: Path, secret: Path) -> None:
    """Each of these files overrides a field of the configuration."""
    assert load(file).http.token == "a-token-that-nobody-guesses"

    secret.chmod(0o622)

    with pytest.raises(ConfigError, match="SLACKWATER_HTTP__TOKEN may be written by other users"):
        load(file)


def test_a_configuration_of_another_user_is_refused(file: Path, others: MakeOthers) -> None:
    """Nobody but its owner may write it, and that one is not who runs the hub."""
    load(file)

    others(file)

    with pytest.raises(ConfigError, match=r"hub.toml belongs to another user \(id \d+\), who"):
        load(file)


def test_a_secret_of_another_user_is_refused(file: Path, secret: Path, others: MakeOthers) -> None:
    """Its owner could name other brokers, and modules that are run."""
    load(file)

    others(secret)

    with pytest.raises(ConfigError, match="belongs to another user"):
        load(file)


def test_a_file_of_another_user_that_is_mounted_read_only_is_taken(
    file: Path, others: MakeOthers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container's configuration belongs to who has written it outside, whom it cannot name."""
    others(file)
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_RDONLY))

    check_trusted(file)

    file.chmod(0o646)
    with pytest.raises(ConfigError, match="may be written by other users"):
        check_trusted(file)


@pytest.mark.parametrize("name", ["key", "client_ca"])
def test_a_file_of_the_port_that_another_user_may_write_is_refused(
    file: Path, tmp_path: Path, others: MakeOthers, name: str
) -> None:
    """Who writes the authority of the clients is one of them."""
    for one in ("certificate", "key", "client_ca"):
        (tmp_path / one).touch(0o600)
    file.write_text(
        TEXT + '[http]\ncertificate = "certificate"\nkey = "key"\nclient_ca = "client_ca"\n'
    )
    http = load(file).http
    others(tmp_path / name)

    with pytest.raises(ConfigError, match=f"{name} belongs to another user"):
        check(access_faults(http))


def test_the_settings_of_an_agent_that_others_may_write_are_refused(
    tmp_path: Path, others: MakeOthers, capsys: pytest.CaptureFixture[str]
) -> None:
    """They hold the password, and name the code that is loaded."""
    document = tmp_path / "agent.json"
    document.write_text("{}")
    document.chmod(0o666)
    written = run_file(str(document), open_store)
    document.chmod(0o600)
    others(document)

    belongs = run_file(str(document), open_store)

    said = capsys.readouterr().err
    assert (written, belongs) == (1, 1)
    assert "agent.json may be written by other users" in said
    assert "agent.json belongs to another user" in said


@pytest.mark.parametrize("changed", ["__init__.py", "mod.py"])
@pytest.mark.parametrize("is_written", [True, False])
def test_code_that_others_may_change_is_never_run(
    file: Path,
    tmp_path: Path,
    others: MakeOthers,
    monkeypatch: pytest.MonkeyPatch,
    changed: str,
    *,
    is_written: bool,
) -> None:
    """A conflict function runs as the hub, and what --load names as the agent."""
    package = tmp_path / f"code_of_{tmp_path.name}"
    package.mkdir()
    for name in ("__init__.py", "mod.py"):
        (package / name).touch(0o644)
    (package / changed).write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
    monkeypatch.syspath_prepend(tmp_path)
    path = f"{package.name}.mod:f"
    file.write_text(f'{TEXT}function = "{path}"\n')
    tables = load(file).table_map().values()
    if is_written:
        (package / changed).chmod(0o664)
    else:
        others(package / changed)

    (said,) = complaints(tables, [f"{package.name}.mod"])
    with pytest.raises(ConfigError, match=f"--load {path}: ") as refused:
        prepare_of(path)

    words = "may be written by other users" if is_written else "belongs to another user"
    assert f"conflict function {path} of table t: " in said
    assert words in said
    assert words in str(refused.value)
    assert not (tmp_path / "ran").exists()


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
