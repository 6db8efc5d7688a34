"""Claims about a release: what is in it, and that it works where nothing else is."""

import email.message
import email.parser
import os
import subprocess
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from connectors.jars import KAFKA, S3, SPARK, cache_folder, cached, folder
from deploy.tools import wheel_house
from streaming.facts.versions import versions
from tests.release.conftest import constraints
from tests.test_setup import CHECKOUT, LOCKS, NO_PROXY

PACKAGES = ("checkpoints", "connectors", "streaming")


def wheel_of(release: Path) -> Path:
    """The wheel of a release."""
    (wheel,) = release.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def metadata(release: Path) -> email.message.Message:
    """What the wheel says of itself."""
    with zipfile.ZipFile(wheel_of(release)) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return email.parser.Parser().parsestr(archive.read(name).decode())


def test_a_wheel_has_every_file_of_the_packages_and_no_other(release: Path) -> None:
    """What setuptools was not told of is missing only where nobody tests."""
    wanted = {
        file.relative_to(CHECKOUT).as_posix()
        for name in PACKAGES
        for file in (CHECKOUT / name).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }

    with zipfile.ZipFile(wheel_of(release)) as archive:
        found = {name for name in archive.namelist() if ".dist-info/" not in name}

    assert found == wanted
    assert {f"{name}/py.typed" for name in PACKAGES} <= found


def test_a_source_archive_has_no_tests_and_what_a_builder_needs(release: Path) -> None:
    """Tests bring data of other systems; licence and lock must come."""
    (archive,) = release.glob("*.tar.gz")

    with tarfile.open(archive) as members:
        found = {name.partition("/")[2] for name in members.getnames()}
        assert all(m.isfile() or m.isdir() for m in members)  # a link would lead out of it

    assert not any(name.startswith(("tests", ".", "dist", "build")) for name in found)
    assert {"LICENSE", "CHANGELOG.md", "README.md", "pyproject.toml", *LOCKS} <= found
    assert {"deploy/hub.toml", "deploy/docker/Dockerfile", "docs/protocol.md"} <= found


def test_a_release_says_what_it_is(metadata: email.message.Message) -> None:
    """Licence, Python and page are what a package index shows and a company's scanner reads."""
    assert metadata["Version"] == versions().slackwater
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload() == (CHECKOUT / "README.md").read_text(encoding="utf-8")
    assert "Apache License" in (CHECKOUT / "LICENSE").read_text(encoding="utf-8")


def test_the_changelog_knows_the_version() -> None:
    """Its first heading is what comes next, and the format number is that of the state."""
    text = (CHECKOUT / "CHANGELOG.md").read_text(encoding="utf-8")

    assert f"The format number of stored state is {versions().state_format}." in text
    assert next(line for line in text.splitlines() if line.startswith("## ")) in {
        "## Unreleased",
        f"## {versions().slackwater}",
    }


def test_a_release_comes_with_the_jars(release: Path) -> None:
    """An image that is built from it reaches no Maven repository."""
    for jars in (KAFKA, SPARK, S3):
        found = {file.name for file in (release / "jars" / folder(jars).name).iterdir()}
        assert found == {file.name for file in cached(jars)}


def test_a_release_works_in_an_empty_environment(release: Path, tmp_path: Path) -> None:
    """Whoever installs it has no checkout: nothing may be found only beside the sources."""
    venv.create(tmp_path / "env", with_pip=True)
    commands, house = tmp_path / "env" / "bin", wheel_house()
    environment = {
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "SLACKWATER_CACHE": str(cache_folder()),
        "JAVA_TOOL_OPTIONS": NO_PROXY,
    }
    versions_of_lock = constraints(CHECKOUT / "requirements.lock", tmp_path / "constraints.txt")
    offline: list[str | Path] = ["--no-index", "--find-links", house, "-c", versions_of_lock]

    def run(*command: str | Path) -> str:
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout

    pip = [commands / "python", "-m", "pip", "install", "-q", *offline]
    run(*pip, "--upgrade", "setuptools")  # builds Spark, which an index has as sources alone
    run(*pip, "--no-build-isolation", "--use-pep517", wheel_of(release))

    assert run("slackwater", "--version").startswith(f"slackwater {versions().slackwater}\n")
    (tmp_path / "hub.toml").write_text(run("slackwater", "config", "sample"), encoding="utf-8")
    assert "is valid" in run("slackwater", "config", "check")
    run("slackwater", "demo", "--seconds", "2")
