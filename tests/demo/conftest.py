"""One demonstration that ended well, kept for all tests that tamper with a copy of it."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from streaming.demo.folder import DemoFolder
from tests.demo.processes import Demonstration
from tests.harness.served_hub import Answered, Port


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


@dataclass(frozen=True, slots=True)
class Stayed:
    """What one demonstration with `--stay` left, which ended with 0."""

    kept: tuple[DemoFolder, dict[str, Any]]
    page: Answered
    """Its page while it stayed."""


@pytest.fixture(scope="session")
def stayed(tmp_path_factory: pytest.TempPathFactory) -> Stayed:
    """A demonstration that stayed until it was interrupted: all tests look at this one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLACKWATER_STATE_FOLDER", "/proc/nobody/writes/here")  # as in the image
        demonstration = Demonstration(tmp_path_factory.mktemp("kept") / "demo", more=("--stay",))
    try:
        assert demonstration.process.stderr is not None
        lines = list[str]()
        for line in demonstration.process.stderr:
            lines.append(line)
            if line.startswith("stays"):
                break
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", lines[-1] if lines else "")
        assert found, "".join(lines)
        page = Port(int(found[1])).get("/")
        demonstration.interrupt()
    except BaseException:
        demonstration.clean_up()
        raise
    return Stayed(performed(demonstration), page)


@pytest.fixture(scope="session")
def kept(stayed: Stayed) -> tuple[DemoFolder, dict[str, Any]]:
    """The folder of a demonstration that ended with 0, and the facts that it printed."""
    return stayed.kept


@pytest.fixture(scope="session")
def restored(tmp_path_factory: pytest.TempPathFactory) -> tuple[DemoFolder, dict[str, Any]]:
    """The same of one in which a replica was put back to a backup."""
    return performed(Demonstration(tmp_path_factory.mktemp("restored") / "demo", "restore"))


@pytest.fixture(scope="session")
def lost_origin(tmp_path_factory: pytest.TempPathFactory) -> tuple[DemoFolder, dict[str, Any]]:
    """The same of one in which a replica died for ever, on a closed broker."""
    folder = tmp_path_factory.mktemp("lost_origin") / "demo"
    return performed(Demonstration(folder, "lost-origin", more=("--secure",)))


@pytest.fixture(scope="session")
def by_packets(tmp_path_factory: pytest.TempPathFactory) -> tuple[DemoFolder, dict[str, Any]]:
    """The same of one in which a replica is fed by packets, of which one was lost."""
    return performed(Demonstration(tmp_path_factory.mktemp("packets") / "demo", "packets"))


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
