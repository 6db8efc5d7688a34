"""The programs of a PostgreSQL server: found on this machine, or installed by name."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from connectors.databases import kind_of
from streaming.core.model.errors import ConfigError

PACKAGE = "postgresql"
"""Debian's package."""
DEBIAN = Path("/usr/lib/postgresql")
"""Where Debian keeps the programs, off the path, in a folder for each version."""
APT = Path("/usr/bin/apt-get")
OLDEST = 14
"""The oldest version that can be a replica."""


def program(name: str) -> Path:
    """A program of the server; ConfigError: it is not on this machine."""
    found = _find(name)
    if found is None:
        raise ConfigError(
            f"{name} of PostgreSQL is not on this machine: install Debian's package {PACKAGE}"
            f" (as root: apt-get install --no-install-recommends {PACKAGE}), or a server of"
            f" version {OLDEST} or newer that is on the PATH"
        )
    return found


def find_or_install() -> None:
    """Make sure that a server can be made; as root on Debian its package is installed for it."""
    kind_of("postgresql").check_place("//postgres@127.0.0.1/shop")  # its driver is installed
    if _find("initdb") is None and os.geteuid() == 0 and APT.exists():
        _install()
    program("initdb")
    program("postgres")


def _find(name: str) -> Path | None:
    """Debian's of the newest version, or the one on the path."""
    found = [path for path in DEBIAN.glob(f"*/bin/{name}") if path.parts[-3].isdecimal()]
    if found:
        return max(found, key=lambda path: int(path.parts[-3]))
    on_path = shutil.which(name)
    return None if on_path is None else Path(on_path)


def _install() -> None:
    sys.stderr.write(f"installs Debian's package {PACKAGE}, which has the server ...\n")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}  # noqa: TID251 for apt-get alone
    install = ["install", "-y", "--no-install-recommends", PACKAGE]
    for arguments in (["update"], install):
        done = subprocess.run(
            [APT, "-q", *arguments],
            check=False,
            env=quiet,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        if done.returncode:
            raise ConfigError(
                f"apt-get {' '.join(arguments)} ended with exit code {done.returncode} (see above):"
                f" install the package {PACKAGE}"
            )
