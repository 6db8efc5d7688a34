"""`make setup` needs the network once per machine, and says what a machine lacks."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parent.parent
NO_INDEX = "http://127.0.0.1:9/simple"
NO_PROXY = "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=9"
NOT_COPIED = shutil.ignore_patterns(
    ".venv", ".git", "mutants", "*.egg-info", ".*_cache", "__pycache__"
)


def offline(**more: str) -> dict[str, str]:
    """The environment of a machine without network: every index and repository is a closed port."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    return {
        **inherited,
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": NO_INDEX,
        "PIP_RETRIES": "0",
        "JAVA_TOOL_OPTIONS": NO_PROXY,
        **more,
    }


def make_setup(
    checkout: Path, cwd: Path, environment: dict[str, str]
) -> "subprocess.CompletedProcess[str]":
    """Runs it as a user would, from some other folder."""
    return subprocess.run(
        ["make", "-C", str(checkout), "setup"],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def setup_script(environment: dict[str, str], before: str = "pass") -> tuple[int, str]:
    """Exit code and complaint of the script behind it, after a statement that spoils the Python."""
    script = str(CHECKOUT / "deploy" / "setup.py")
    code = f"import sys, runpy; {before}; runpy.run_path({script!r}, run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A checkout in which nothing was set up yet."""
    shutil.copytree(CHECKOUT, tmp_path / "clone", ignore=NOT_COPIED)
    return tmp_path / "clone"


def test_a_venv_that_is_a_link_is_left_alone(clone: Path, tmp_path: Path) -> None:
    """It is another checkout's, and would be emptied."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "kept").touch()
    (clone / ".venv").symlink_to(other)

    done = make_setup(clone, tmp_path, offline())

    assert done.returncode != 0
    assert f"is a link to {other}" in done.stderr
    assert (other / "kept").exists()


def test_a_second_setup_works_offline_and_from_another_folder(tmp_path: Path) -> None:
    """Work goes on in a train, and build scripts call make from where they are."""
    mark = CHECKOUT / ".venv" / "slackwater-setup.json"
    before = mark.stat().st_mtime_ns

    done = make_setup(CHECKOUT, tmp_path, offline())

    assert done.returncode == 0, done.stderr
    assert mark.stat().st_mtime_ns == before
    assert "setup:" not in done.stdout


def test_a_first_setup_without_network_says_so(clone: Path, tmp_path: Path) -> None:
    """A failed download must leave a setup that can be run again, and advice."""
    done = make_setup(clone, tmp_path, offline(SLACKWATER_CACHE=str(tmp_path / "cache")))

    assert done.returncode != 0
    assert "check the network and pip's index settings" in done.stderr
    assert not (clone / ".venv" / "slackwater-setup.json").exists()


def test_a_missing_java_is_told_before_anything_is_fetched(tmp_path: Path) -> None:
    """Minutes of download must not end in an error that could have been known."""
    bare = {"PATH": str(tmp_path), "SLACKWATER_CACHE": str(tmp_path / "cache")}

    code, complaint = setup_script(bare)

    assert code == 1
    assert "openjdk-17-jre-headless" in complaint
    assert "Traceback" not in complaint
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("spoilt", "advice"),
    [
        ("sys.version_info = (3, 9, 2)", "is Python 3.9.2, 3.11 or newer is needed"),
        ("sys.modules['ensurepip'] = None", "apt-get install python3-venv"),
    ],
)
def test_a_python_that_will_not_do_is_told(tmp_path: Path, spoilt: str, advice: str) -> None:
    """Debian's python3 without python3-venv fails half-way through otherwise."""
    code, complaint = setup_script({"SLACKWATER_CACHE": str(tmp_path / "cache")}, spoilt)

    assert code == 1
    assert advice in complaint
    assert "Traceback" not in complaint
