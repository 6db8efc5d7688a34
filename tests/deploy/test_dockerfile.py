"""Claims about the Dockerfile that need no container engine; tests/release builds the image."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_setup import CHECKOUT

DOCKERFILE = CHECKOUT / "deploy" / "docker" / "Dockerfile"
HADOLINT = Path(sys.executable).parent / "hadolint"


def lint(file: Path) -> "subprocess.CompletedProcess[str]":
    """The answer of hadolint, which also checks the shell commands."""
    return subprocess.run([HADOLINT, file], capture_output=True, text=True, check=False)


def instructions() -> list[tuple[str, str]]:
    """(instruction, rest) of each, in order; lines that continue are joined, comments left out."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE)
    lines = re.sub(r"\\\n", " ", text).splitlines()
    return [
        (name, rest.strip()) for name, _, rest in (line.partition(" ") for line in lines if line)
    ]


def test_the_linter_has_no_complaint() -> None:
    """It knows the mistakes that show only in production."""
    done = lint(DOCKERFILE)

    assert (done.returncode, done.stdout) == (0, "")


def test_the_linter_finds_a_mistake(tmp_path: Path) -> None:
    """A check that accepts everything would be no check."""
    bad = tmp_path / "Dockerfile"
    bad.write_text(DOCKERFILE.read_text().replace("--no-install-recommends ", "", 1))

    assert "DL3015" in lint(bad).stdout


def test_the_image_ends_as_nobody() -> None:
    """By number, because Kubernetes cannot tell whether a name is root."""
    users = [rest for name, rest in instructions() if name == "USER"]

    assert users == ["10001:10001"]


def test_every_package_is_installed_by_its_hash() -> None:
    """What an index hands out while an image is built is in every container of it."""
    commands = [part.split() for _, rest in instructions() for part in rest.split("&&")]
    installs = [words for words in commands if words[:2] == ["pip", "install"]]

    locked = [words for words in installs if "--require-hashes" in words]

    assert [words[-1] for words in locked] == ["requirements-build.lock", "requirements.lock"]
    assert [words[2:] for words in installs if words not in locked] == [
        ["--no-cache-dir", "--no-deps", "./*.whl"]
    ]


def test_no_base_is_a_moving_target() -> None:
    """An image without a tag, or `latest`, is another one tomorrow."""
    stages = [rest.split() for name, rest in instructions() if name == "FROM"]
    names = {words[2] for words in stages if len(words) == 3}

    foreign = [words[0] for words in stages if words[0] not in names]

    assert foreign == ["debian:bookworm-slim"]


@pytest.mark.parametrize(
    "source",
    ["requirements.lock", "requirements-build.lock", "deploy/docker/entrypoint.sh"],
)
def test_a_copied_file_is_not_ignored(source: str) -> None:
    """A file that .dockerignore keeps away fails the build, on the machine of the release."""
    wanted = (CHECKOUT / ".dockerignore").read_text().splitlines()

    assert any(source in rest.split() for name, rest in instructions() if name == "COPY")
    assert f"!{source}" in wanted
    assert (CHECKOUT / source).is_file()


def test_the_entry_point_is_valid_bash() -> None:
    """The branches of Spark's driver and executor run on no machine of ours."""
    script = CHECKOUT / "deploy" / "docker" / "entrypoint.sh"

    done = subprocess.run(["bash", "-n", script], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
