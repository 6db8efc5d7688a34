"""Claims about every command: exit codes, errors, and what they cost."""

import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from checkpoints import format_number
from connectors import jars
from connectors.postgres.format_number import FORMAT as POSTGRES_FORMAT
from connectors.sqlite.format_number import FORMAT as DATABASE_FORMAT
from streaming.cli.commands import COMMANDS, PURPOSES
from streaming.cli.exit_codes import ExitCode
from streaming.core.records.record import WIRE_VERSIONS
from tests.checkpoints.written_state import WrittenState, ruv
from tests.harness.builders import csn
from tests.streaming.cli.conftest import Slackwater

NAMES = [one.name for one in COMMANDS]
READERS = [
    ("status",),
    ("level",),
    ("ruv",),
    ("abort", csn(1, 1)),
    ("lacks", "to-a"),
    ("conflicts", "list"),
    ("conflicts", "show", csn(1, 1)),
    ("quarantine", "list"),
    ("quarantine", "show", "1-1"),
    ("quarantine", "release", "1-1"),
    ("conflicts", "override", "1-1"),
    ("quarantine", "drop", "1-1"),
]


@pytest.mark.parametrize("command", READERS)
def test_without_state_every_reader_says_that_no_hub_has_run(
    slackwater: Slackwater, command: tuple[str, ...]
) -> None:
    """A wrong path must not look like a hub without work, nor like the answer no."""
    answer = slackwater(*command)

    assert answer.code == 2
    assert answer.out == ""
    assert "no hub has run at" in answer.err
    assert len(answer.err.splitlines()) == 1


@pytest.mark.parametrize("command", [*READERS, ("run",), ("config", "check")])
def test_a_bad_configuration_is_exit_code_2(
    slackwater: Slackwater, config_file: Path, command: tuple[str, ...]
) -> None:
    """Scripts tell `no` from `you asked wrongly`."""
    config_file.write_text("[hub]\nrid = 0\n", encoding="utf-8")

    answer = slackwater(*command)

    assert answer.code == 2
    assert "hub.rid = 0: should be greater than or equal to 1" in answer.err
    assert all(line.startswith("slackwater: ") for line in answer.err.splitlines())


UNKNOWN = [
    ("status", "--replica", "nobody"),
    ("lacks", "to-nobody"),
    ("ruv", "--agreement", "to-nobody"),
    ("ruv", "--dataset", "none"),
    ("conflicts", "show", "9-9"),
    ("conflicts", "accept", "9-9"),
    ("conflicts", "override", "9-9"),
    ("conflicts", "retry", "r9-9"),
    ("quarantine", "show", "9-9"),
    ("quarantine", "release", "9-9"),
    ("quarantine", "drop", "9-9"),
    ("explain", csn(9, 9)),
    ("rows", "nothing"),
    ("blame", "nothing", "1"),
    ("diff", "--from", "1", "--table", "nothing"),
    ("replay", "--from", "99"),
    ("pin", "one", "--epoch", "99"),
    ("unpin", "nothing"),
    ("pause", "to-nobody"),
    ("resume", "to-nobody"),
    ("resync", "to-nobody"),
    ("retire", "nobody"),
    ("recover", "nobody"),
    ("init", "nobody"),
    ("abort", csn(9, 9)),
    ("agent", "check", "--database", "nothing.db"),
]
"""Every command that names something, with a name that nothing has."""


@pytest.mark.parametrize("command", UNKNOWN)
def test_what_does_not_exist_is_exit_code_2(
    slackwater: Slackwater, state: WrittenState, command: tuple[str, ...]
) -> None:
    """It is neither yes nor no: a misspelt name must not look like an answer."""
    state.commit(1, 1, ruv(r1=1))

    answer = slackwater(*command)

    assert answer.code == 2, answer
    assert answer.err


@pytest.mark.parametrize("arguments", [("nonsense",), ("status", "--nonsense"), ("lacks",)])
def test_wrong_usage_is_exit_code_2(slackwater: Slackwater, arguments: tuple[str, ...]) -> None:
    """As every command line has it."""
    assert slackwater(*arguments).code == 2


def test_the_configuration_may_be_named(
    slackwater: Slackwater, config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--config goes before the environment."""
    monkeypatch.setenv("SLACKWATER_CONFIG", "nowhere.toml")

    assert slackwater("config", "check", "--config", str(config_file)).code == 0
    assert slackwater("config", "check").code == 2


def test_a_broken_table_is_an_error_of_one_line(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Half a copy of a state folder happens; a traceback helps nobody."""
    state.commit(1, 1, ruv(r1=1))
    for file in (state.root / "epochs").glob("*.parquet"):
        file.unlink()

    answer = slackwater("status")

    assert answer.code == 2
    assert "cannot be read" in answer.err
    assert len(answer.err.splitlines()) == 1


@pytest.mark.parametrize("command", [("status",), ("level",), ("quarantine", "list")])
def test_reading_starts_no_spark(state: WrittenState, command: tuple[str, ...]) -> None:
    """An operator in trouble wants the answer now."""
    state.commit(1, 1, ruv(r1=1))
    code = (
        "import sys; from streaming.cli.main import main; main(sys.argv[1:]);"
        " sys.exit(any(name in sys.modules for name in ('pyspark', 'py4j', 'pandas', 'kafka')))"
    )

    done = subprocess.run([sys.executable, "-c", code, *command], check=False, capture_output=True)

    assert done.returncode == 0, done.stderr


def test_a_broken_pipe_ends_quietly(state: WrittenState) -> None:
    """`slackwater conflicts list | head` is ordinary use."""
    state.commit(1, 1, ruv(r1=1))
    command = f"{sys.executable} -m streaming.cli.main config schema | head -n 1"

    done = subprocess.run(command, shell=True, check=False, capture_output=True, text=True)

    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1


def test_the_help_names_each_command_below_one_purpose(slackwater: Slackwater) -> None:
    """Who has a task finds its command by what it is for; the first ones stand on top."""
    sections = slackwater("--help").out.split("\n\n")[3:]
    listed = {
        section.splitlines()[0].strip(": "): [line.split()[0] for line in section.splitlines()[1:]]
        for section in sections
    }
    shown = [name for names in listed.values() for name in names if name in {*NAMES}]

    assert [*listed] == [*PURPOSES]
    assert sorted(shown) == sorted(NAMES)
    assert len(listed["First"]) <= 10


def test_version_names_what_decides_who_works_together(slackwater: Slackwater) -> None:
    """A report of a fault begins with it, and so does an upgrade."""
    answer = slackwater("--version")

    assert answer.code == 0
    assert answer.out.splitlines() == [
        f"slackwater {metadata.version('slackwater')}",
        (
            f"Spark {metadata.version('pyspark')}, Delta Lake {metadata.version('delta-spark')}, "
            f"deltalake {metadata.version('deltalake')}, Python {platform.python_version()}"
        ),
        (
            f"wire {WIRE_VERSIONS[0]}, state format {format_number.FORMAT}, "
            f"database format sqlite {DATABASE_FORMAT}, postgresql {POSTGRES_FORMAT}"
        ),
    ]


def test_the_jars_are_of_the_versions_that_are_shown() -> None:
    """Spark and its connectors work together only in versions that belong to each other."""
    versions = {name: version for _, name, version in jars.SPARK.roots}

    assert versions["delta-spark_4.2_2.13"] == metadata.version("delta-spark")
    assert versions["spark-sql-kafka-0-10_2.13"] == metadata.version("pyspark")


def test_a_second_setup_is_done_at_once_and_fetches_nothing(
    slackwater: Slackwater, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stands in scripts and images, where it may run again."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=9")

    answer = slackwater("setup")

    assert answer.code == 0
    assert answer.out == f"ready: the jars are in {jars.cache_folder()}\n"


@pytest.mark.usefixtures("state")
def test_an_interrupted_command_says_so_in_a_line(
    slackwater: Slackwater, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A prompt that comes back without a word looks like an answer."""

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("streaming.cli.inputs.open_state", interrupt)

    answer = slackwater("status")

    assert (answer.code, answer.out, answer.err) == (130, "", "slackwater: interrupted\n")
    assert answer.code == ExitCode.INTERRUPTED, "the table of exit codes has it"
