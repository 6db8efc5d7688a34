"""The log store of Spark's Delta commits: compiled once, by the Java compiler that pyspark ships.

Delta has none that keeps Spark and deltalake from replacing each other's commits. A JRE suffices.
"""

import hashlib
import tempfile
import zipfile
from pathlib import Path

from connectors.jars import SPARK, JarsError, cache_folder, cached, pyspark_jars
from streaming.jvm.java import run_java

CLASS = "slackwater.PutIfAbsentLogStore"
_SOURCE = Path(__file__).with_name("PutIfAbsentLogStore.java")
_COMPILER = "org.codehaus.commons.compiler.samples.CompilerDemo"


def log_store_jar() -> Path:
    """Its jar, from the cache; JarsError if it was not built."""
    place = _place()
    if not place.exists():
        raise JarsError(f"the log store is not in {place.parent}: run make setup")
    return place


def build() -> None:
    """Compile it into the cache unless it is there; JarsError, with the compiler's words."""
    place = _place()
    if place.exists():
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as name:
        folder = Path(name)
        _compile(folder / "classes")
        with zipfile.ZipFile(folder / place.name, "w") as jar:
            for file in sorted(folder.glob("classes/**/*.class")):
                jar.write(file, file.relative_to(folder / "classes"))
        (folder / place.name).replace(place)


def _place() -> Path:
    """Where the jar of this source and these jars is; what a hub runs on is never changed."""
    versions = _SOURCE.read_text(encoding="utf-8") + repr(cached(SPARK))
    mark = hashlib.sha256(versions.encode()).hexdigest()[:8]
    return cache_folder() / "jars" / f"log-store-{mark}.jar"


def _compile(folder: Path) -> None:
    folder.mkdir()
    jars = [*pyspark_jars().glob("*.jar"), *cached(SPARK)]
    path = ":".join(str(jar) for jar in jars)
    done = run_java("-cp", path, _COMPILER, "-d", folder, "-classpath", path, _SOURCE)
    if done.returncode or not list(folder.glob("**/*.class")):
        raise JarsError(f"the log store was not compiled:\n{(done.stdout + done.stderr)[-2000:]}")
