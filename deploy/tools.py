"""Fetches what the checks of `deploy/` and of a release need.

Each step is skipped when it was done before, and then fetches nothing:

1. helm, built from its Go module into `<cache>/tools`
2. Debian's podman, runc, debootstrap and systemd, if this is root on a Debian
3. the base image of the Dockerfile into podman's store in `<cache>/podman`, made by debootstrap
   from Debian's packages, because not every machine reaches a registry of images
4. the packages of a release, as an index has them, into `<cache>/wheels`, and the jars of an
   image that a checkout need not have

What is missing afterwards makes the tests that need it skip, and `make check-deploy` fail.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from connectors.jar_fetch import fill
from connectors.jars import S3, JarsError, cache_folder
from deploy.installer import BUILD_LOCK, CHECKOUT

HELM_VERSION = "4.3.1"
PROGRAMS = {
    "podman": "podman",
    "runc": "runc",
    "debootstrap": "debootstrap",
    "systemd-analyze": "systemd",
}
"""Program -> Debian's package of it."""

RELEASE_LOCKS = (CHECKOUT / "requirements.lock", BUILD_LOCK)

BASE_IMAGE = "docker.io/library/debian:bookworm-slim"
RELEASE = "bookworm"


class ToolsError(Exception):
    """A tool could not be installed; the text names what the user has to do."""


def helm() -> Path:
    """Where helm is, or will be."""
    return cache_folder() / "tools" / f"helm-{HELM_VERSION}" / "helm"


def podman() -> list[str | Path]:
    """The command, on a store of its own: nothing of the user's images is read or removed."""
    store = cache_folder() / "podman"
    places: list[str | Path] = ["--root", store / "store", "--runroot", store / "run"]
    return ["podman", "--runtime", "runc", "--cgroup-manager", "cgroupfs", *places]


def has_base_image() -> bool:
    """Return whether an image can be built without fetching its base."""
    return succeeds([*podman(), "image", "exists", BASE_IMAGE])


def wheel_house() -> Path:
    """Where the packages of a release are, for this Python and platform."""
    content = b"".join(lock.read_bytes() for lock in RELEASE_LOCKS)
    platform = f"{sys.implementation.cache_tag}-{sysconfig.get_platform()}"
    return cache_folder() / "wheels" / f"{platform}-{hashlib.sha256(content).hexdigest()[:8]}"


def fill_wheel_house() -> None:
    """Fetch the packages of a release, which are then installed without a network."""
    house = wheel_house()
    if house.exists():
        return
    log_progress(f"fetching the packages of a release: 700 MB (once, kept in {house})")
    house.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=house.parent) as scratch:
        fresh = Path(scratch) / house.name
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-build-isolation"]
        locks = [word for lock in RELEASE_LOCKS for word in ("-r", lock)]
        run([*pip, "--require-hashes", "-d", fresh, *locks])
        fresh.rename(house)


def install() -> None:
    """Install what is missing; ToolsError if that fails."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (cache_folder() / "tools.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a second one waits, then finds everything
        build_helm()
        if install_programs() and not has_base_image():
            make_base_image()
        fill_wheel_house()
        fill(S3)


def build_helm() -> None:
    """Build helm unless the cache has it; the checksums are those of Go's public database."""
    if helm().exists():
        return
    if shutil.which("go") is None:
        raise ToolsError("go is not installed: helm is built by it (any Go from 1.21 on)")
    log_progress(f"building helm {HELM_VERSION}: some minutes (once, kept in {helm().parent})")
    module = f"helm.sh/helm/v4/cmd/helm@v{HELM_VERSION}"
    run(["go", "install", module], {"GOBIN": str(helm().parent)})


def install_programs() -> bool:
    """Return whether all of Debian's programs are there; as root they are installed."""
    missing = [package for name, package in PROGRAMS.items() if shutil.which(name) is None]
    if not missing:
        return True
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        log_progress(f"not installed, the tests of the image are skipped: {' '.join(missing)}")
        return False
    log_progress(f"installing {' '.join(missing)}")
    run(["apt-get", "update", "-qq"])
    run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing])
    return True


def make_base_image() -> None:
    """Import the smallest Debian, with this machine's own certificates, as the base image."""
    log_progress(f"making {BASE_IMAGE}: a minute (once, kept in podman's store)")
    with tempfile.TemporaryDirectory(dir=cache_folder()) as scratch:
        root, archive = Path(scratch) / "root", Path(scratch) / "root.tar"
        run(["debootstrap", "--variant=minbase", RELEASE, root])
        for place in ("var/cache/apt/archives", "var/lib/apt/lists"):
            shutil.rmtree(root / place)
            (root / place).mkdir()
        certificates = Path("/usr/local/share/ca-certificates")
        if certificates.is_dir():  # a mirror of Debian's packages may need them
            shutil.copytree(certificates, root / certificates.relative_to("/"), dirs_exist_ok=True)
        run(["tar", "--numeric-owner", "-C", root, "-cf", archive, "."])
        run([*podman(), "import", "--change", "CMD bash", archive, BASE_IMAGE])


def log_progress(text: str) -> None:
    """One line of progress."""
    sys.stdout.write(f"deploy-tools: {text}\n")
    sys.stdout.flush()


def succeeds(command: Sequence[str | Path]) -> bool:
    """Return whether a quiet command exits with 0; a missing program is a no."""
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def run(command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> None:
    """Run a command; ToolsError with the end of its output if it fails."""
    done = subprocess.run(
        command,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        tail = "\n".join(done.stdout.strip().splitlines()[-15:])
        raise ToolsError(f"{' '.join(map(str, command))} failed:\n{tail}")


def main() -> int:
    """Exit code 0 when everything that can be had is in place, 1 after an error message."""
    try:
        install()
    except (ToolsError, JarsError, OSError) as error:
        sys.stderr.write(f"deploy-tools: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
