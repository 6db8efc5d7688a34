"""Writes the lock files from pyproject.toml: versions and hashes, for every Python and platform.

usage: locks.py [--upgrade]; without it every version stays that still fits.

- `requirements.lock`: what the product needs, with all its extras
- `requirements-dev.lock`: that, and what tests, checks and releases need
- `requirements-build.lock`: uv, and what builds packages that come as sources
- `connectors/jars.lock`: the jars of Kafka, of Spark's connectors, and for a state in a bucket

No address of an index is in them: packages come from the one that pip is configured for.
"""

import subprocess
import sys
from pathlib import Path

from connectors.jars import cache_folder
from deploy import jar_lock
from deploy.installer import BUILD_LOCK, CHECKOUT, uv_command, uv_environment

_BUILD = "setuptools\nuv\n"
_BARE = ("--no-emit-index-url", "--no-emit-find-links", "--no-annotate", "--no-header")


def compile_lock(lock: Path, *sources: str, upgrade: bool = False) -> None:
    """Resolve to a lock file, from pyproject.toml or, by `-`, from the packages of a build."""
    python, cache = Path(sys.executable), cache_folder()
    uv: list[str | Path] = [
        uv_command(python, cache),
        "pip",
        "compile",
        "-q",
        "--universal",
        "--generate-hashes",
    ]
    minimum = ["--python-version", "3.11", *_BARE, *(["--upgrade"] if upgrade else [])]
    subprocess.run(
        [*uv, *minimum, *sources, "-o", lock],
        cwd=CHECKOUT,
        env=uv_environment(python, cache),
        input=_BUILD,
        encoding="utf-8",
        check=True,
    )


def main(arguments: list[str]) -> None:
    """Write all of them; CalledProcessError: uv has said why not."""
    upgrade = arguments == ["--upgrade"]
    product = ["pyproject.toml", "--all-extras"]
    develop = CHECKOUT / "requirements-dev.lock"
    compile_lock(develop, *product, "--group", "dev", upgrade=upgrade)
    compile_lock(CHECKOUT / "requirements.lock", *product, "-c", develop.name)
    compile_lock(BUILD_LOCK, "-", "-c", develop.name, upgrade=upgrade)
    jar_lock.write()


if __name__ == "__main__":
    main(sys.argv[1:])
