"""Creates `.venv` in the checkout and fills the caches; the second run fetches nothing.

Runs under any Python 3 before anything is installed, so it imports only the standard library
until it knows that the Python is new enough.

In order, each step skipped when it was done before:

1. the wheels of `requirements.lock` into the wheel house (`<cache>/wheels`), from the index
2. `.venv`, and the wheels into it, from the wheel house alone
3. the package itself, editable, without an isolated build
4. the jars (`<cache>/jars`), by `connectors.jars`
5. the archive of Spark's classes (in `.venv`), by `streaming.jvm.class_archive`; without it hubs
   start later
"""

from __future__ import annotations  # so that an old Python gets as far as check_python

import fcntl
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
VENV = CHECKOUT / ".venv"
PYTHON = VENV / "bin" / "python"
LOCK = CHECKOUT / "requirements.lock"
PROJECT = CHECKOUT / "pyproject.toml"
MARK = VENV / "slackwater-setup.json"
PYTHON_MIN = (3, 11)


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
            install(cache)
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


def install(cache: Path) -> None:
    """Update `.venv` and the caches to the lock file and pyproject.toml."""
    mark = read_mark()
    usable = mark.get("place") == str(CHECKOUT) and mark.get("python") == venv_python()
    if not usable or mark.get("packages") != packages():
        fill_venv(cache / "wheels", usable=usable)
    run([PYTHON, "-m", "connectors.jars"], "the jars could not be fetched")
    run(
        [PYTHON, "-m", "streaming.jvm.class_archive"], "the archive of Spark's classes was not made"
    )


def read_mark() -> dict[str, str]:
    """What the last successful setup built `.venv` from; empty if there was none."""
    try:
        mark = json.loads(MARK.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return mark if isinstance(mark, dict) else {}


def venv_python() -> str:
    """The Python behind `.venv`; an upgrade of the system may have changed or removed it."""
    return os.path.realpath(PYTHON) if PYTHON.exists() else "none"


def packages() -> str:
    """A hash of everything that determines what is installed."""
    import tomllib  # noqa: PLC0415 - new in Python 3.11

    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    own = [project["project"], project["build-system"], project["tool"]["setuptools"]]
    return digest(LOCK.read_text(encoding="utf-8") + json.dumps(own))


def fill_venv(wheels: Path, *, usable: bool) -> None:
    """Create `.venv` unless it is usable, install the packages, and write the mark at the end."""
    if VENV.is_symlink():
        raise SetupError(
            f"{VENV} is a link to {VENV.readlink()}, which is not filled for this checkout: remove"
            " the link, then run make setup again"
        )
    MARK.unlink(missing_ok=True)
    if not usable:
        log_progress(f"creating {VENV}")
        run([sys.executable, "-m", "venv", "--clear", VENV], "the virtual environment failed")
    house = wheels / platform_tag()
    fill_house(house)
    offline: list[str | Path] = ["--no-index", "--find-links", house]
    log_progress("installing the packages")
    pip(["install", "-q", "--no-deps", *offline, "-r", LOCK], "the packages could not be installed")
    pip(
        ["install", "-q", "--no-deps", *offline, "--no-build-isolation", "-e", CHECKOUT],
        "the package itself could not be installed",
    )
    mark = {"place": str(CHECKOUT), "python": venv_python(), "packages": packages()}
    MARK.write_text(json.dumps(mark), encoding="utf-8")


def fill_house(house: Path) -> None:
    """Fetch and build the wheels of the lock file that the wheel house lacks."""
    full = house / f"{digest(LOCK.read_text(encoding='utf-8'))}.full"
    if full.exists():
        return
    log_progress(f"fetching the packages: some 700 MB, a minute or more (once, kept in {house})")
    house.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=house) as fresh:
        pip(
            ["wheel", "-q", "--no-deps", "--find-links", house, "-w", fresh, "-r", LOCK],
            "the packages could not be fetched; check the network and pip's index settings",
        )
        for wheel in Path(fresh).glob("*.whl"):
            wheel.replace(house / wheel.name)
    full.touch()


def platform_tag() -> str:
    """The name of the wheel house for this Python and platform."""
    code = "import sys, sysconfig as s; print(f'{sys.implementation.cache_tag}-{s.get_platform()}')"
    return subprocess.run(
        [PYTHON, "-c", code], capture_output=True, encoding="utf-8", check=True
    ).stdout.strip()


def digest(text: str) -> str:
    """A short hash that distinguishes lock files."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def pip(arguments: list[str | Path], complaint: str) -> None:
    """Run the virtual environment's pip."""
    quiet = ["--disable-pip-version-check", "--no-input"]
    run([PYTHON, "-m", "pip", *quiet, *arguments], complaint)


def run(command: list[str | Path], complaint: str) -> None:
    """Run a command with visible output; SetupError with the complaint if it fails."""
    if subprocess.run(command, cwd=CHECKOUT, check=False).returncode:
        raise SetupError(f"{complaint} (see above), then run make setup again")


if __name__ == "__main__":
    sys.exit(main())
