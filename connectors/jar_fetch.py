"""Fetches jars into the cache: those of the lock file, and only with the hashes that it has.

They are fetched by the Ivy that pyspark ships, which knows where Maven's jars are. A set is built
in a temporary folder beside its place and renamed when it is complete: it is either complete or
absent.
"""

import fcntl
import hashlib
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from connectors.jars import KAFKA, S3, SPARK, Jar, JarsError, JarSet, folder, locked, pyspark_jars
from connectors.log_store import build
from streaming.core.model.errors import HubError
from streaming.jvm.java import run_java

REPORT_EVERY_S = 2.0
JARS_PER_IVY = 16
"""An Ivy fetches one file after the other, so most of its time is waiting; each costs a JVM."""
FOUND, FETCHED = "*/cache/*/*/ivydata-*.properties", "*/cache/*/*/jars/*.jar"
"""What an Ivy writes when a repository has a jar, and when it has the jar itself."""

_SETTINGS = """\
<ivysettings>
  <property name="ivy.checksums" value=""/>
  <settings defaultResolver="maven"/>
  <resolvers><ibiblio name="maven" m2compatible="true" usepoms="false"/></resolvers>
</ivysettings>
"""
"""The lock file has what else a repository is asked for: what needs what, and checksums."""


def fill(*sets: JarSet) -> None:
    """Fetch sets side by side, without those that the cache has; a JarsError names the remedy."""
    with ExitStack() as stack:
        lacking = [jars for jars in sets if stack.enter_context(_claimed(jars))]
        if not lacking:
            return
        names = " and ".join(jars.name for jars in lacking)
        _tell(f"fetching the jars of {names} (once, kept in {folder(lacking[0]).parent})")
        scratches = [
            Path(stack.enter_context(tempfile.TemporaryDirectory(dir=folder(jars).parent)))
            for jars in lacking
        ]
        parts = [
            (locked(jars)[start : start + JARS_PER_IVY], scratch)
            for jars, scratch in zip(lacking, scratches, strict=True)
            for start in range(0, len(locked(jars)), JARS_PER_IVY)
        ]
        wanted = sum(len(part) for part, _ in parts)
        with _reported(scratches, wanted), ThreadPoolExecutor(len(parts)) as pool:
            list(pool.map(retrieve, *zip(*parts, strict=True)))
        for jars, scratch in zip(lacking, scratches, strict=True):
            (scratch / "jars").rename(folder(jars))


@contextmanager
def _claimed(jars: JarSet) -> Iterator[bool]:
    """Whether the cache lacks a set, which nobody else fetches meanwhile."""
    place = folder(jars)
    place.parent.mkdir(parents=True, exist_ok=True)
    with (place.parent / f"{place.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a second setup waits, then finds the set
        yield not place.is_dir()


@contextmanager
def _reported(scratches: Sequence[Path], wanted: int) -> Iterator[None]:
    """Tell every two seconds how many of the wanted jars were found and fetched."""
    done = threading.Event()

    def report() -> None:
        while not done.wait(REPORT_EVERY_S):
            found, fetched = (
                sum(len(list(scratch.glob(files))) for scratch in scratches)
                for files in (FOUND, FETCHED)
            )
            _tell(f"{found} of {wanted} jars found, {fetched} fetched")

    thread = threading.Thread(target=report)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def retrieve(jars: Sequence[Jar], scratch: Path) -> None:
    """Fetch some files of a set into `scratch`/jars; JarsError unless each has its hash."""
    work = Path(tempfile.mkdtemp(dir=scratch))
    (work / "settings.xml").write_text(_SETTINGS, encoding="utf-8")
    (work / "ivy.xml").write_text(_module(jars), encoding="utf-8")
    pattern = scratch / "jars" / "[artifact]-[revision].[ext]"
    run_ivy(work, "-settings", work / "settings.xml", "-retrieve", pattern)
    for jar in jars:
        check(jar, scratch / "jars" / jar.file)


def check(jar: Jar, file: Path) -> None:
    """JarsError unless the file is the one of the lock file."""
    found = hashlib.sha256(file.read_bytes()).hexdigest() if file.exists() else "missing"
    if found != jar.sha256:
        raise JarsError(
            f"{file.name} of {jar.organisation} is not the file of connectors/jars.lock "
            f"({jar.sha256} there, {found} here), so none of its set is kept: ask whoever runs the "
            "repository or proxy between this machine and Maven Central"
        )


def run_ivy(work: Path, *arguments: str | Path) -> None:
    """Let Ivy retrieve what `work`/ivy.xml requests; JarsError with the end of its output."""
    request: list[str | Path] = ["-warn", "-cache", work / "cache", "-ivy", work / "ivy.xml"]
    done = run_java("-jar", _ivy(), *request, "-confs", "default", *arguments)
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise JarsError(
            "the jars could not be fetched: check that Maven Central can be "
            "reached (a proxy goes into JAVA_TOOL_OPTIONS, as -Dhttps.proxyHost=...), "
            f"then run setup again\n{tail}"
        )


def _module(jars: Sequence[Jar]) -> str:
    """The Ivy file that requests each of the jars, and nothing that it needs."""
    wanted = "".join(
        f'<dependency org="{jar.organisation}" name="{jar.name}" rev="{jar.version}"'
        ' transitive="false"/>'
        for jar in jars
    )
    return (
        '<ivy-module version="2.0"><info organisation="slackwater" module="jars"/>'
        f"<dependencies>{wanted}</dependencies></ivy-module>"
    )


def _ivy() -> Path:
    found = sorted(pyspark_jars().glob("ivy-*.jar"))
    if not found:
        raise JarsError(f"no Ivy in {pyspark_jars()}: install pyspark again with make setup")
    return found[-1]


def _tell(text: str) -> None:
    sys.stdout.write(f"setup: {text}\n")
    sys.stdout.flush()


def fill_all(*, bucket: bool) -> None:
    """Fill the cache with what a hub needs, and for a state in a bucket; JarsError if it cannot."""
    fill(KAFKA, SPARK, *([S3] if bucket else []))
    build()


def setup_step(work: Callable[[], None]) -> int:
    """Run a step of `make setup`: exit code 1, with the reason, if it fails."""
    try:
        work()
    except (HubError, OSError) as error:
        sys.stderr.write(f"setup: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(setup_step(lambda: fill_all(bucket=False)))
