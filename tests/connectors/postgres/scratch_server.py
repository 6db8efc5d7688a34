"""A PostgreSQL server of its own on loopback, for the tests of one session."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from deploy import programs

SETTINGS = """
listen_addresses = '127.0.0.1'
wal_level = logical
fsync = off
wal_writer_delay = 10ms
max_prepared_transactions = 10
max_replication_slots = 300
"""


@contextmanager
def running_server() -> Iterator[str]:
    """The connection string of a server that ends with the block, without the database."""
    with tempfile.TemporaryDirectory(prefix="postgres") as folder:
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
        data = Path(folder) / "data"
        port = _free_port()
        _run("initdb", "-D", str(data), "-A", "trust", "-U", "postgres", "--locale=C.UTF-8")
        with (data / "postgresql.conf").open("a") as settings:
            settings.write(f"{SETTINGS}port = {port}\nunix_socket_directories = '{folder}'\n")
        _run("pg_ctl", "-D", str(data), "-l", str(data / "log"), "-w", "start")
        try:
            yield f"host=127.0.0.1 port={port} user=postgres"
        finally:
            _run("pg_ctl", "-D", str(data), "-m", "immediate", "-w", "stop")


def _run(program: str, *arguments: str) -> None:
    """As the user postgres, for the server refuses to run as root."""
    user: Sequence[str] = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    path = programs.find(program)
    assert path, "PostgreSQL is not installed: `make programs`"
    command = [*user, str(path), *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
