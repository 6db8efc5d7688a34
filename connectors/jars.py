"""The jars of the broker and of Spark's connectors: which there are, and where the cache has them.

`jars.lock` has every file of a set with its hash; `connectors/jar_fetch.py` fetches them.
"""

import hashlib
import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path

from streaming.core.model.errors import HubError

LOCK = Path(__file__).with_name("jars.lock")
"""A file a line: set, organisation, name, version, SHA-256. `make locks` writes it."""


class JarsError(HubError):
    """The jars are not in the cache, or could not be fetched."""


@dataclass(frozen=True, slots=True)
class Jar:
    """One file, by its Maven coordinates."""

    organisation: str
    name: str
    version: str
    sha256: str

    @property
    def file(self) -> str:
        """Its name in the folder of a set."""
        return f"{self.name}-{self.version}.jar"


@dataclass(frozen=True, slots=True)
class JarSet:
    """Maven roots (organisation, name, version), locked with all that they need at run time."""

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


def cached(jars: JarSet) -> list[Path]:
    """The set's files; JarsError if the cache does not hold them."""
    found = sorted(folder(jars).glob("*.jar"))
    if not found:
        command = "slackwater setup --bucket" if jars is S3 else "slackwater setup"
        raise JarsError(f"the jars of {jars.name} are not in {folder(jars)}: run {command}")
    return found


def folder(jars: JarSet) -> Path:
    """The folder of a set; other files have another folder, so no set in use is changed."""
    mark = hashlib.sha256(repr(locked(jars)).encode()).hexdigest()[:8]
    return cache_folder() / "jars" / f"{jars.name}-{mark}"


def locked(jars: JarSet) -> list[Jar]:
    """The files of a set, as the lock file has them; empty for a set that it does not know."""
    lines = LOCK.read_text(encoding="utf-8").splitlines()
    return [Jar(*rest) for name, *rest in map(str.split, lines) if name == jars.name]


def pyspark_jars() -> Path:
    """The jars folder of the installed pyspark, found without importing it."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise JarsError("pyspark is not installed in this Python: run make setup")
    return Path(found.origin).parent / "jars"
