"""Finds the Java that Spark and the embedded broker run on."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from streaming.core.model.errors import HubError
from streaming.jvm.pins import PINS, pinned_environment

JAVA_MAJOR_MIN = 17
_ADVICE = (
    f"install Java {JAVA_MAJOR_MIN} or newer (Debian: apt-get install openjdk-17-jre-headless) "
    "or set JAVA_HOME to one"
)


class JavaError(HubError):
    """No Java is new enough, or the Java process of the hub has ended."""


def find_java() -> Path:
    """The `java` command: of JAVA_HOME if that is set, else of the PATH; JavaError without one."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    if found is None:
        place = f"JAVA_HOME ({home})" if home else "the PATH"
        raise JavaError(f"no Java found in {place}: {_ADVICE}")
    return Path(found)


def java_command(*arguments: str | Path) -> list[str | Path]:
    """A command that runs Java as it is on every machine; JavaError without one."""
    return [find_java(), *PINS, *arguments]


def java_environment() -> dict[str, str]:
    """The environment for such a command, without what would count over its pins."""
    return pinned_environment(os.environ)


def run_java(
    *arguments: str | Path, timeout_s: float | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run Java to its end and keep what it writes; JavaError without one."""
    return subprocess.run(
        java_command(*arguments),
        env=java_environment(),
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=timeout_s,
        check=False,
    )


def check_java() -> None:
    """JavaError, which names the package to install, unless Java is new enough."""
    java = find_java()
    try:
        answer = run_java("-version", timeout_s=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JavaError(f"{java} does not run ({error}): {_ADVICE}") from error
    text = answer.stderr + answer.stdout
    major = java_major(text)
    if answer.returncode or major is None:
        raise JavaError(f"{java} does not report its version ({text.strip()[:200]}): {_ADVICE}")
    if major < JAVA_MAJOR_MIN:
        raise JavaError(f"{java} is Java {major}, too old: {_ADVICE}")


def java_major(text: str) -> int | None:
    """The major number in the output of `java -version`; 8 for the old way of writing 1.8."""
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match[1]) if match else None
