"""Installs Debian's programs that `make test` needs: prometheus, chromium, PostgreSQL.

Debian keeps the programs of PostgreSQL's server off the path, in a folder for each version.
A program that is there already is left alone, so the second run fetches nothing.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

PACKAGES = {
    "prometheus": "prometheus",
    "promtool": "prometheus",
    "chromium": "chromium",
    "initdb": "postgresql",
    "pg_ctl": "postgresql",
}
"""Program -> Debian's package of it."""
POSTGRES = Path("/usr/lib/postgresql")
"""Where Debian keeps PostgreSQL, a folder for each version."""
APT = "/usr/bin/apt-get"


def find(name: str) -> Path | None:
    """A program on the path, or PostgreSQL's of the newest version; None: it is not installed."""
    on_path = shutil.which(name)
    if on_path is not None:
        return Path(on_path)
    found = [path for path in POSTGRES.glob(f"*/bin/{name}") if path.parts[-3].isdecimal()]
    return max(found, key=lambda path: int(path.parts[-3]), default=None)


def missing() -> list[str]:
    """The packages whose programs are not found."""
    return sorted({package for name, package in PACKAGES.items() if find(name) is None})


def install(packages: Sequence[str]) -> None:
    """Install packages with apt-get, without what they only recommend."""
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
        subprocess.run([APT, "-q", *arguments], check=True, env=quiet)


def main() -> int:
    """Exit code 0 when all programs are there, 1 after an error message with the remedy."""
    packages = missing()
    if not packages:
        return 0
    remedy = f"apt-get install --no-install-recommends {' '.join(packages)}"
    if os.geteuid() != 0 or not Path(APT).exists():
        sys.stderr.write(f"make test needs some programs; as root on a Debian: {remedy}\n")
        return 1
    try:
        install(packages)
    except subprocess.CalledProcessError:
        sys.stderr.write(f"the programs could not be installed (see above): {remedy}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
