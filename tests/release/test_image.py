"""Claims about the container image, built from the release alone and started without a network."""

import subprocess
from pathlib import Path

import pytest

from deploy import tools
from streaming.facts.versions import versions
from tests.deploy.conftest import missing

IMAGE = "localhost/slackwater:tests"
_MAY = ("--ulimit=nofile=4096", "--ulimit=nproc=4096")
"""Enough for a demonstration; podman's own default may be more than a nested container may have."""


def podman(*arguments: str | Path) -> str:
    """The output of a command of podman, on the store of `make deploy-tools`."""
    done = subprocess.run(
        [*tools.podman(), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def image(release: Path) -> str:
    """The image, built with the packages of the wheel house; Debian's come from its mirror."""
    if not tools.has_base_image():
        missing("podman or its base image")
    house = tools.wheel_house()
    podman(
        *("build", "--pull=never", "--volume", f"{house}:/wheels:ro", "--network=host"),
        *("--build-arg", "PIP_NO_INDEX=1", "--build-arg", "PIP_FIND_LINKS=/wheels"),
        *("--file", "deploy/docker/Dockerfile", "--tag", IMAGE, release.parent),
    )
    return IMAGE


def run_alone(image: str, *arguments: str) -> str:
    """The output of a container as compose and chart start it: read-only, and without a network."""
    return podman(
        *("run", "--rm", "--network=none", "--read-only", "--cap-drop=ALL", *_MAY),
        *("--tmpfs", "/tmp:mode=1777", image, *arguments),
    )


def test_a_container_says_which_versions_it_has(image: str) -> None:
    """Those of this checkout, so nothing older was taken from a layer of another build."""
    said = run_alone(image, "--version")

    assert said.startswith(f"slackwater {versions().slackwater}\n")
    assert f"Spark {versions().spark}, Delta Lake {versions().delta}," in said


def test_a_container_downloads_nothing(image: str) -> None:
    """Hub, broker and agents of the demonstration start and work without a network."""
    said = run_alone(image, "demo", "--seconds", "2", "--keep", "/tmp/demo")

    assert "level" in said


def test_a_container_is_not_root(image: str) -> None:
    """Whoever breaks out of it is nobody on the machine."""
    said = podman("run", "--rm", "--network=none", *_MAY, "--entrypoint", "id", image, "-u")

    assert said.strip() == "10001"
