"""Creates `.venv` in the checkout and fills the caches; the second run fetches nothing.

usage: setup.py [develop | demo]; `develop` adds the tools of tests, checks and releases, and
`demo` leaves the last step out, which takes longer than it saves a single start.

Runs under any Python 3 before anything is installed, so it imports only the standard library
until it knows that the Python is new enough.

In order, each step skipped when it was done before:

1. `.venv`, and uv, the installer, by its pip (`<cache>/tools`)
2. by uv, the packages of `requirements.lock` or `requirements-dev.lock`, each with its hash
3. the package itself, editable
4. the jars (`<cache>/jars`), by `connectors.jar_fetch`
5. the archive of Spark's classes (in `.venv`), by `streaming.jvm.class_archive`; without it hubs
   start some seconds later, so its failure is only told
"""

from __future__ import annotations  # so that an old Python gets as far as check_python

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
VENV = CHECKOUT / ".venv"
PYTHON = VENV / "bin" / "python"
MARK = VENV / "slackwater-setup"
LOCK = CHECKOUT / "requirements.lock"
DEVELOP_LOCK = CHECKOUT / "requirements-dev.lock"
BUILD_LOCK = CHECKOUT / "requirements-build.lock"
PYTHON_MIN = (3, 11)
REPORT_EVERY_S = 3.0
AGAIN = "(see above), then run make setup again"
NOT_FETCHED = (
    f"the packages could not be fetched: check the network and pip's index settings {AGAIN}"
)


class SetupError(Exception):
    """Setup cannot continue; the text names what the user has to do first."""


def main() -> int:
    """Exit code 0 when everything is in place, 1 after an error message with the remedy."""
    try:
        check_python()
        sys.path.insert(0, str(CHECKOUT))
        from connectors.jars import cache_folder  # noqa: PLC0415 - needs a checked Python
        from streaming.core.model.errors import HubError  # noqa: PLC0415
        from streaming.jvm.java import check_java  # noqa: PLC0415
    except SetupError as error:
        return failed(error)
    try:
        check_java()
        cache = cache_folder()
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / "setup.lock").open("w") as lock:
            wait_for(lock.fileno())
            install(cache, DEVELOP_LOCK if sys.argv[1:] == ["develop"] else LOCK)
            if sys.argv[1:] != ["demo"]:
                archive_classes()
    except (SetupError, HubError, OSError) as error:
        return failed(error)
    return 0


def failed(error: Exception) -> int:
    """Print the error as one line; the exit code."""
    sys.stderr.write(f"setup: {error}\n")
    return 1


def log_progress(text: str) -> None:
    """One line of progress."""
    sys.stdout.write(f"setup: {text}\n")
    sys.stdout.flush()


def check_python() -> None:
    """SetupError if this Python is too old or cannot create virtual environments."""
    if sys.version_info < PYTHON_MIN:
        found = ".".join(str(part) for part in sys.version_info[:3])
        wanted = ".".join(str(part) for part in PYTHON_MIN)
        raise SetupError(
            f"{sys.executable} is Python {found}, {wanted} or newer is needed "
            f"(Debian 12: apt-get install python3 python3-venv; "
            f"another one by name: make setup PYTHON=python{wanted})"
        )
    if importlib.util.find_spec("ensurepip") is None:
        raise SetupError(
            f"{sys.executable} cannot create virtual environments: "
            "install its venv package (Debian: apt-get install python3-venv)"
        )


def wait_for(lock: int) -> None:
    """Take the lock that makes two setups on one machine fill the caches one after the other."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        log_progress("another setup is running, waiting for it")
        fcntl.flock(lock, fcntl.LOCK_EX)


def install(cache: Path, lock: Path) -> None:
    """Update `.venv` and the caches to the lock file and pyproject.toml."""
    mark = MARK.read_text(encoding="utf-8") if MARK.exists() else ""
    if mark not in (wanted_mark(lock), wanted_mark(DEVELOP_LOCK)):  # which has all of the other
        usable = PYTHON.exists() and mark.startswith(origin())
        fill_venv(cache, lock, usable=usable)
    run([PYTHON, "-m", "connectors.jar_fetch"], f"the jars could not be fetched {AGAIN}")


def archive_classes() -> None:
    """Write the archive of Spark's classes, or say that there is none."""
    try:
        run([PYTHON, "-m", "streaming.jvm.class_archive"], f"hubs start some seconds later {AGAIN}")
    except SetupError as error:
        failed(error)


def wanted_mark(lock: Path) -> str:
    """What setup writes into `.venv` at its end: everything that determines what is installed."""
    files = (lock, BUILD_LOCK, CHECKOUT / "pyproject.toml")
    return origin() + hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def origin() -> str:
    """Where `.venv` is and the Python behind it, which an upgrade of the system may change."""
    return f"{VENV}\n{os.path.realpath(PYTHON)}\n"


def fill_venv(cache: Path, lock: Path, *, usable: bool) -> None:
    """Create `.venv` unless it is usable, install the packages, and write the mark at the end."""
    if VENV.is_symlink():
        raise SetupError(
            f"{VENV} is a link to {VENV.readlink()}, which is not filled for this checkout: remove"
            " the link, then run make setup again"
        )
    from deploy import installer  # noqa: PLC0415 - needs a checked Python

    MARK.unlink(missing_ok=True)
    if not usable:
        log_progress(f"creating {VENV}")
        run(
            [sys.executable, "-m", "venv", "--clear", VENV],
            f"the virtual environment failed {AGAIN}",
        )
    log_progress(f"installing {lock.name} (fetched once, kept in {cache})")
    try:
        command = installer.install_command(PYTHON, cache)
    except subprocess.CalledProcessError as error:
        raise SetupError(NOT_FETCHED) from error
    environment = installer.uv_environment(PYTHON, cache)
    parts: list[list[str | Path]] = [["--require-hashes", "-r", lock], ["-e", CHECKOUT]]
    for what in parts:
        install = [*command, *what]
        cached: list[str | Path] = [*install, "--offline"]
        if subprocess.run(cached, env=environment, capture_output=True, check=False).returncode:
            run(install, NOT_FETCHED, environment, growing=cache / "uv")
    installer.drop_sources(cache)
    MARK.write_text(wanted_mark(lock), encoding="utf-8")


def run(
    command: Sequence[str | Path],
    complaint: str,
    environment: dict[str, str] | None = None,
    growing: Path | None = None,
) -> None:
    """Run a command with visible output, and tell how much more a folder holds meanwhile.

    SetupError with the complaint if it fails.
    """
    before = megabytes(growing)
    with subprocess.Popen(command, cwd=CHECKOUT, env=environment) as process:
        while process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(REPORT_EVERY_S if growing else None)
            if growing:
                log_progress(f"{megabytes(growing) - before} MB fetched and unpacked")
    if process.returncode:
        raise SetupError(complaint)


def megabytes(folder: Path | None) -> int:
    """The size of the files in a folder to which another process writes."""
    size = 0
    for parent, _, names in os.walk(folder) if folder else ():
        for name in names:
            with contextlib.suppress(OSError):
                size += (Path(parent) / name).lstat().st_size
    return size // 1_000_000


if __name__ == "__main__":
    sys.exit(main())
