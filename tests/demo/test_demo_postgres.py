"""The demonstration with two PostgreSQL servers: its verdict, and that no server outlives it."""

import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest

from streaming.cli.main import main
from streaming.core.model.errors import ConfigError
from streaming.demo.databases import programs
from streaming.demo.databases.servers import SERVERS, make_servers, start_servers
from streaming.demo.folder import DemoFolder, place_of
from streaming.demo.monitor import PartMonitor
from streaming.demo.verdict.checks import check_evidence
from streaming.demo.verdict.evidence import gather
from tests.demo.conftest import performed
from tests.demo.processes import Demonstration


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that the user `postgres` may enter, whose servers root runs."""
    with tempfile.TemporaryDirectory(prefix="demo") as folder:
        yield Path(folder)


@contextmanager
def running(folder: DemoFolder) -> Iterator[None]:
    """Its servers, without anything else of it."""
    with PartMonitor() as monitor, ExitStack() as ends, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGPASSFILE", "")  # what it is set to ends with the block
        start_servers(folder, monitor, ends)
        yield


@pytest.mark.more
def test_two_servers_and_a_file_end_equal(place: Path) -> None:
    """All checks pass on three databases, and one row that differs in a server is found."""
    folder, facts = performed(Demonstration(place, more=("--with", "postgres")))

    assert facts["holds"]
    assert folder.servers == SERVERS
    assert not folder.database(SERVERS[0]).exists()
    assert all(replica["written"] and replica["received"] for replica in facts["replicas"])
    assert facts["latency_ms"]["count"] > 0
    with running(folder):
        with psycopg.connect(place_of(folder, SERVERS[0])) as client:
            client.execute("UPDATE account SET owner = owner || '!' WHERE id = 30001")
        broken = {one.claim for one in check_evidence(gather(folder)) if not one.holds}
    assert broken == {
        "the databases hold the same rows",
        "every write is once in changelog or quarantine, and nothing else",
        "the last accepted image of every row is the row in the databases",
    }
    assert main(["demo", "--check", str(folder.root)]) == 1


@pytest.mark.more
def test_ctrl_c_ends_the_servers(place: Path) -> None:
    """They are started before the hub, and nobody else would end them."""
    demo = Demonstration(place, more=("--with", "postgres"))
    try:
        demo.until(lambda: demo.pid_of("streaming.cli.main run") is not None)
        assert demo.pid_of("postgres") is not None

        os.kill(demo.process.pid, signal.SIGINT)

        assert demo.ended()[0] == 130
        assert demo.processes() == {}
    finally:
        demo.clean_up()


def test_without_postgresql_the_package_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whoever tries it is told what to install."""
    monkeypatch.setattr(programs, "DEBIAN", tmp_path)
    monkeypatch.setattr(programs, "APT", tmp_path / "apt-get")
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(ConfigError, match="package postgresql"):
        programs.find_or_install()


@pytest.mark.skipif(os.geteuid() != 0, reason="who is not root runs the servers himself")
def test_a_folder_that_postgres_cannot_enter_is_named(tmp_path: Path) -> None:
    """A server refuses to run as root, and its user may not enter everything."""
    tmp_path.chmod(0o700)
    folder = DemoFolder(tmp_path / "demo")
    folder.make(SERVERS)

    with pytest.raises(ConfigError, match=r"cannot enter .*--keep"):
        make_servers(folder)
