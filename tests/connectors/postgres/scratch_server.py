"""PostgreSQL servers of their own on loopback, that a test may end, copy and put back."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from deploy import programs

SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
wal_level = logical
fsync = off
wal_writer_delay = 10ms
max_prepared_transactions = 10
max_replication_slots = 300
"""
SETTINGS_18 = "max_active_replication_origins = 300\n"
"""Before version 18 max_replication_slots says this too."""


@dataclass(frozen=True, slots=True)
class ScratchServer:
    """A server whose files are in `data`, which may be stopped."""

    data: Path
    port: int

    @classmethod
    def create(cls, folder: Path, settings: str = "", *options: str) -> "ScratchServer":
        """The files of a new one; `options`: of initdb."""
        made = cls(folder / "data", _free_port())
        program = ("initdb", "-D", str(made.data), "-A", "trust", "-U", "postgres")
        run_as_postgres(*program, "--locale=C.UTF-8", *options)
        version = int((made.data / "PG_VERSION").read_text())
        made.configure(SETTINGS + (SETTINGS_18 if version >= 18 else "") + settings)
        return made

    @property
    def conninfo(self) -> str:
        """The connection string, without the database."""
        return f"host=127.0.0.1 port={self.port} user=postgres"

    def configure(self, settings: str = "") -> None:
        """Add settings, which hold from the next start on."""
        with (self.data / "postgresql.conf").open("a") as file:
            file.write(f"{settings}\nport = {self.port}\n")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._control("-l", str(self.data.parent / "log"), "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop it in order, or as a crash does: immediate."""
        self._control("-m", mode, "stop")

    def promote(self) -> None:
        """Make a standby a primary."""
        self._control("promote")

    def kill(self) -> None:
        """End all its processes at once, as a machine does that loses its power."""
        lock = self.data / "postmaster.pid"
        postmaster = int(lock.read_text().split()[0])
        os.kill(postmaster, signal.SIGSTOP)  # from here on it starts no other
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        processes = [postmaster, *map(int, children)]
        for pid in processes:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        while any(map(_is_running, processes)):
            time.sleep(0.01)
        lock.unlink()  # it names a process that may not be waited for yet, and then counts as one

    def copy(self, name: str) -> Path:
        """A cold copy of the files beside it; it is stopped."""
        shutil.copytree(self.data, self.data.parent / name)
        _own(self.data.parent / name)
        return self.data.parent / name

    def put_back(self, files: Path) -> None:
        """Put a copy in place of its files; it is stopped."""
        shutil.rmtree(self.data)
        files.rename(self.data)

    def backup(self, name: str, *options: str) -> Path:
        """What pg_basebackup makes of it while it runs."""
        files = self.data.parent / name
        run_as_postgres("pg_basebackup", "-d", self.conninfo, "-D", str(files), *options)
        return files

    def standby(self) -> "ScratchServer":
        """The files of a standby that follows it."""
        made = ScratchServer(self.backup("standby", "-R", "-c", "fast"), _free_port())
        made.configure()
        return made

    def _control(self, *arguments: str) -> None:
        run_as_postgres("pg_ctl", "-D", str(self.data), "-w", *arguments)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for the files of servers, each of which ends with the block."""
    with tempfile.TemporaryDirectory(prefix="postgres") as folder:
        _own(Path(folder))
        try:
            yield Path(folder)
        finally:
            for found in Path(folder).rglob("postmaster.pid"):
                with suppress(subprocess.CalledProcessError):  # it was killed
                    ScratchServer(found.parent, 0).stop("immediate")


@contextmanager
def running_server() -> Iterator[str]:
    """The connection string of a server that ends with the block, without the database."""
    with scratch_folder() as folder:
        server = ScratchServer.create(folder)
        server.start()
        yield server.conninfo


def run_as_postgres(program: str, *arguments: str) -> None:
    """Run a program of PostgreSQL as the user postgres, for the server refuses to run as root."""
    user: Sequence[str] = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    path = programs.find(program)
    assert path, "PostgreSQL is not installed: `make programs`"
    command = [*user, str(path), *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _own(path: Path) -> None:
    if os.geteuid() == 0:
        for one in (path, *path.rglob("*")):
            shutil.chown(one, "postgres", "postgres")


def _is_running(pid: int) -> bool:
    """Return whether it has not ended; one that nobody has waited for yet has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
