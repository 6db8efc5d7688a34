"""Installs Debian's programs that `make test` needs: prometheus with promtool, and chromium.

A program that is there already is left alone, so the second run fetches nothing.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

PACKAGES = {"prometheus": "prometheus", "promtool": "prometheus", "chromium": "chromium"}
"""Program -> Debian's package of it."""
APT = "/usr/bin/apt-get"


def missing() -> list[str]:
    """The packages whose programs are not on the path."""
    lacking = {package for name, package in PACKAGES.items() if shutil.which(name) is None}
    return sorted(lacking)


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
