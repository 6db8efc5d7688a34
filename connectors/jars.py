"""The jars of the broker and of Spark's connectors: fetched once, then read from the cache.

They are fetched by the Ivy that pyspark ships. A set is built in a temporary folder beside its
place and renamed when it is complete: it is either complete or absent.
"""

import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from streaming.core.model.errors import HubError
from streaming.jvm.java import java_command, java_environment


class JarsError(HubError):
    """The jars are not in the cache, or could not be fetched."""


@dataclass(frozen=True, slots=True)
class JarSet:
    """Maven roots (organisation, name, version), fetched with all that they need at run time."""

    name: str
    roots: tuple[tuple[str, str, str], ...]
    excludes: tuple[str, ...] = ()  # organisations, or organisation#module
    beside_pyspark: bool = False  # leaves out every jar that pyspark has, in any version


KAFKA = JarSet(
    name="kafka",
    roots=(
        ("org.apache.kafka", "kafka_2.13", "4.2.1"),
        ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4"),  # without it, no broker log
    ),
)
SPARK = JarSet(
    name="spark",
    roots=(
        ("io.delta", "delta-spark_4.2_2.13", "4.4.0"),
        ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
        ("com.globalmentor", "hadoop-bare-naked-local-fs", "0.1.0"),
    ),
    excludes=("org.apache.hadoop", "org.scala-lang"),  # pyspark brings them
    beside_pyspark=True,
)
S3 = JarSet(
    name="s3",
    roots=(
        ("org.apache.hadoop", "hadoop-aws", "3.5.0"),  # the version of pyspark's hadoop-client-api
        *(
            ("software.amazon.awssdk", name, "2.35.4")
            for name in ("s3", "s3-transfer-manager", "sts")
        ),
    ),
    excludes=(
        "software.amazon.awssdk#bundle",  # the whole of it has 686 MB, and what is needed 13
        "org.apache.hadoop#hadoop-client-api",
        "org.apache.hadoop#hadoop-client-runtime",
    ),
    beside_pyspark=True,
)


def cache_folder() -> Path:
    """Where fetched things are kept: SLACKWATER_CACHE, else the user's cache folder."""
    own = os.environ.get("SLACKWATER_CACHE")
    if own:
        return Path(own).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "slackwater"


def kafka_jars() -> list[Path]:
    """The class path of the embedded broker; JarsError if the cache does not hold it."""
    return cached(KAFKA)


def spark_jars() -> list[Path]:
    """Spark's jars for Delta and Kafka; JarsError if the cache does not hold them."""
    return cached(SPARK)


def s3_jars() -> list[Path]:
    """Spark's jars for a state in a bucket; JarsError if the cache does not hold them."""
    return cached(S3)


def cached(jars: JarSet) -> list[Path]:
    """The set's files, from the cache alone."""
    found = sorted(folder(jars).glob("*.jar"))
    if not found:
        raise JarsError(f"the jars of {jars.name} are not in {folder(jars)}: run slackwater setup")
    return found


def folder(jars: JarSet) -> Path:
    """The folder of a set; other versions have another folder, so no set in use is changed."""
    versions = repr((jars.roots, jars.excludes, importlib.metadata.version("pyspark")))
    mark = hashlib.sha256(versions.encode()).hexdigest()[:8]
    return cache_folder() / "jars" / f"{jars.name}-{mark}"


def fill(jars: JarSet) -> None:
    """Fetch the set unless the cache has it; a JarsError names the remedy."""
    place = folder(jars)
    place.parent.mkdir(parents=True, exist_ok=True)
    with (place.parent / f"{place.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a second setup waits, then finds the set
        if place.is_dir():
            return
        sys.stdout.write(f"fetching the jars of {jars.name} (once, kept in {place})\n")
        sys.stdout.flush()
        with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
            _retrieve(jars, Path(scratch))
            (Path(scratch) / "jars").rename(place)


def _retrieve(jars: JarSet, scratch: Path) -> None:
    """Fetch the set's files into `scratch`/jars."""
    module = scratch / "ivy.xml"
    module.write_text(_module(jars), encoding="utf-8")
    fetched = scratch / "fetched"
    ivy = java_command("-jar", _ivy(), "-warn", "-cache", scratch / "cache")
    request: list[str | Path] = ["-ivy", module, "-confs", "default", "-types", "jar", "bundle"]
    pattern = f"{fetched}/[artifact]/[artifact]-[revision].[ext]"
    done = subprocess.run(
        [*ivy, *request, "-retrieve", pattern],
        env=java_environment(),
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if done.returncode or not fetched.is_dir():
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise JarsError(
            f"the jars of {jars.name} could not be fetched: check that Maven Central can be "
            "reached (a proxy goes into JAVA_TOOL_OPTIONS, as -Dhttps.proxyHost=...), "
            f"then run setup again\n{tail}"
        )
    target = scratch / "jars"
    target.mkdir()
    for jar in fetched.glob("*/*.jar"):
        if not (jars.beside_pyspark and _pyspark_ships(jar.parent.name)):
            jar.rename(target / jar.name)


def _pyspark_ships(artifact: str) -> bool:
    """Return whether pyspark ships the library, in any version."""
    name = re.compile(re.escape(artifact) + r"-\d.*\.jar")
    return any(name.fullmatch(jar.name) for jar in pyspark_jars().iterdir())


def _module(jars: JarSet) -> str:
    """The Ivy file that requests the set; one file for all roots, so that versions agree."""
    wanted = "".join(
        f'<dependency org="{organisation}" name="{name}" rev="{version}" conf="default"/>'
        for organisation, name, version in jars.roots
    )
    unwanted = "".join(_exclude(*what.split("#")) for what in jars.excludes)
    return (
        f'<ivy-module version="2.0"><info organisation="slackwater" module="{jars.name}"/>'
        f"<dependencies>{wanted}{unwanted}</dependencies></ivy-module>"
    )


def _exclude(organisation: str, module: str = "*") -> str:
    return f'<exclude org="{organisation}" module="{module}"/>'


def _ivy() -> Path:
    """The Ivy that pyspark ships."""
    found = sorted(pyspark_jars().glob("ivy-*.jar"))
    if not found:
        raise JarsError(f"no Ivy in {pyspark_jars()}: install pyspark again with make setup")
    return found[-1]


def pyspark_jars() -> Path:
    """The jars folder of the installed pyspark, found without importing it."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise JarsError("pyspark is not installed in this Python: run make setup")
    return Path(found.origin).parent / "jars"


def fill_all() -> None:
    """Fill the cache with every set; JarsError if one cannot be fetched."""
    from connectors.log_store import build  # noqa: PLC0415 - it is built from these sets

    for jars in (KAFKA, SPARK, S3):
        fill(jars)
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
    sys.exit(setup_step(fill_all))
