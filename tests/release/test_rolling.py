"""A cluster goes from the release before to this one, and back, while databases are written to.

SLACKWATER_PREVIOUS names the release before as a revision of this repository; without it that is
the newest tag, and while there is none, this version itself in an installation of its own.
"""

import os
import signal
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from connectors.kafka.embedded.broker import Broker
from deploy.tools import wheel_house
from tests.harness.customers import (
    agent,
    logs,
    make_site,
    run,
    started,
    until_both_hold,
    until_yes,
    write,
)
from tests.harness.hub_process import wait_until
from tests.release.conftest import constraints
from tests.test_setup import CHECKOUT

LEVEL = ["slackwater", "level"]
HUB = ["slackwater", "run", "--standby"]


def revision() -> str:
    """The revision of the release before."""
    command = ["git", "describe", "--tags", "--abbrev=0", "HEAD~1"]
    tag = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    return os.environ.get("SLACKWATER_PREVIOUS") or tag.stdout.strip() or "HEAD"


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command of the release before, installed from its wheel in an environment of its own."""
    folder = tmp_path_factory.mktemp("previous")
    sources, wheels, commands = folder / "sources", folder / "wheels", folder / "env" / "bin"
    sources.mkdir()
    archive: list[str | Path] = ["git", "archive", "--output", folder / "sources.tar", revision()]
    subprocess.run(archive, cwd=CHECKOUT, check=True)
    subprocess.run(["tar", "-xf", folder / "sources.tar", "-C", sources], check=True)
    build: list[str | Path] = [
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        "--wheel",
        "--outdir",
        wheels,
    ]
    subprocess.run([*build, sources], check=True, stdout=subprocess.DEVNULL)
    venv.create(folder / "env", with_pip=True)
    lock = constraints(sources / "requirements.lock", folder / "constraints.txt")
    install: list[str | Path] = [
        commands / "python",
        "-m",
        "pip",
        "install",
        "-q",
        "--find-links",
        wheel_house(),
        "-c",
        lock,
    ]
    subprocess.run([*install, *wheels.glob("*.whl")], check=True)
    return commands / "slackwater"


class Site:
    """Programs of two releases on one site, each with a log of its own."""

    def __init__(self, folder: Path, old: Path, stack: ExitStack) -> None:
        """In this folder; what still runs ends with the stack."""
        self.folder, self.old, self.stack = folder, old, stack
        self.ends = dict[str, Callable[[], None]]()

    def starts(self, name: str, words: list[str], *, is_old: bool) -> "subprocess.Popen[bytes]":
        """Start a program of one of the releases, under a name by which `ends` stops it."""
        command = [str(self.old), *words[1:]] if is_old else words
        own = self.stack.enter_context(ExitStack())
        self.ends[name] = own.close
        return own.enter_context(started(self.folder, command, f"{name}.log"))

    def stands_by(self, name: str) -> None:
        """Wait until a hub waits for the other one."""
        log = self.folder / f"{name}.log"
        wait_until(lambda: "stands by" in log.read_text(), lambda: logs(self.folder))


@pytest.fixture
def site(tmp_path: Path, broker: Broker, topic_prefix: str, old: Path) -> Iterator[Site]:
    """Two databases, and nothing that runs."""
    make_site(tmp_path, broker, topic_prefix)
    with ExitStack() as stack:
        yield Site(tmp_path, old, stack)


def test_a_cluster_is_upgraded_and_goes_back_while_it_works(site: Site) -> None:
    """First the standby, then the hub, then an agent; and back to the hub before by a kill."""
    folder = site.folder
    site.starts("berlin", agent("berlin"), is_old=True)
    site.starts("lisbon", agent("lisbon"), is_old=True)
    site.starts("hub.old", HUB, is_old=True)
    write(folder, "berlin", 1, "Ada")
    until_both_hold(folder, (1, "Ada"))

    new = site.starts("hub.new", HUB, is_old=False)
    site.stands_by("hub.new")
    site.ends["hub.old"]()
    write(folder, "lisbon", 1, "Ada Lovelace")
    write(folder, "berlin", 2, "Grace")
    until_both_hold(folder, (1, "Ada Lovelace"), (2, "Grace"))
    until_yes(folder, LEVEL)

    site.ends["berlin"]()
    site.starts("berlin.new", agent("berlin"), is_old=False)
    write(folder, "berlin", 3, "Edsger")
    write(folder, "lisbon", 2, "Grace Hopper")
    until_both_hold(folder, (1, "Ada Lovelace"), (2, "Grace Hopper"), (3, "Edsger"))

    site.starts("hub.again", HUB, is_old=True)
    site.stands_by("hub.again")
    new.send_signal(signal.SIGKILL)
    write(folder, "lisbon", 3, "Edsger Dijkstra")
    write(folder, "berlin", 4, "Barbara")
    final = (1, "Ada Lovelace"), (2, "Grace Hopper"), (3, "Edsger Dijkstra"), (4, "Barbara")
    until_both_hold(folder, *final)
    until_yes(folder, LEVEL)

    site.ends["hub.again"]()
    assert run(folder, ["slackwater", "verify"]) == 0, logs(folder)
