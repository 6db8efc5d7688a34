"""One demonstration that ended well, kept for all tests that tamper with a copy of it."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from streaming.demo.folder import DemoFolder
from tests.demo.processes import Demonstration


@pytest.fixture
def demonstrate(tmp_path: Path) -> Iterator[Callable[[], Demonstration]]:
    """Starts a demonstration; nothing of it outlives the test."""
    started = list[Demonstration]()

    def start() -> Demonstration:
        started.append(Demonstration(tmp_path / "demo"))
        return started[-1]

    yield start
    for one in started:
        one.clean_up()


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[DemoFolder, dict[str, Any]]:
    """The folder of a demonstration that ended with 0, and the facts that it printed."""
    return performed(Demonstration(tmp_path_factory.mktemp("kept") / "demo"))


@pytest.fixture(scope="session")
def restored(tmp_path_factory: pytest.TempPathFactory) -> tuple[DemoFolder, dict[str, Any]]:
    """The same of one in which a replica was put back to a backup."""
    return performed(Demonstration(tmp_path_factory.mktemp("restored") / "demo", "restore"))


@pytest.fixture(scope="session")
def lost_origin(tmp_path_factory: pytest.TempPathFactory) -> tuple[DemoFolder, dict[str, Any]]:
    """The same of one in which a replica died for ever."""
    return performed(Demonstration(tmp_path_factory.mktemp("lost_origin") / "demo", "lost-origin"))


def performed(demonstration: Demonstration) -> tuple[DemoFolder, dict[str, Any]]:
    """Wait for its good end; what it left."""
    try:
        code, out, error = demonstration.ended()
        assert code == 0, out + error
        assert demonstration.processes() == {}
    finally:
        demonstration.clean_up()
    return DemoFolder(demonstration.folder), json.loads(out)


@pytest.fixture
def copy(kept: tuple[DemoFolder, dict[str, Any]], tmp_path: Path) -> DemoFolder:
    """A copy to tamper with."""
    return DemoFolder(Path(shutil.copytree(kept[0].root, tmp_path / "copy")))
