"""The jars come from the cache, whole or not at all."""

import fcntl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from connectors import jars as lock_of_jars
from connectors.jar_fetch import check, fill
from connectors.jars import (
    KAFKA,
    S3,
    SPARK,
    JarsError,
    JarSet,
    cache_folder,
    cached,
    folder,
    locked,
)

CLOSED_PROXY = "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=9"
FORGER = """#!/bin/sh
for last; do :; done
mkdir -p "$(dirname "$last")"
echo forged > "$(dirname "$last")/nothing-1.0.jar"
"""
"""A java that retrieves another file than the one that Ivy is asked for."""


@pytest.fixture
def empty_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache of one's own with nothing in it."""
    monkeypatch.setenv("SLACKWATER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def unknown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> JarSet:
    """A set of one jar that no repository has."""
    (tmp_path / "jars.lock").write_text(f"unknown org.example nothing 1.0 {'0' * 64}\n")
    monkeypatch.setattr(lock_of_jars, "LOCK", tmp_path / "jars.lock")
    return JarSet("unknown", ())


@pytest.mark.parametrize(
    ("set_variables", "expected"),
    [
        ({"SLACKWATER_CACHE": "/a/b"}, "/a/b"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/slackwater"),
        ({"HOME": "/home/me"}, "/home/me/.cache/slackwater"),
        ({"SLACKWATER_CACHE": "/a/b", "XDG_CACHE_HOME": "/x"}, "/a/b"),
    ],
)
def test_the_cache_is_where_the_user_wants_it(
    monkeypatch: pytest.MonkeyPatch, set_variables: dict[str, str], expected: str
) -> None:
    """Setup and hub must look in the same place, also where the home folder is read-only."""
    for name in ("SLACKWATER_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in set_variables.items():
        monkeypatch.setenv(name, value)

    assert cache_folder() == Path(expected)


def test_the_sets_hold_what_starts_the_broker_and_what_spark_lacks() -> None:
    """Two versions of one library in one process are the worst of errors to find."""
    kafka = " ".join(jar.name for jar in cached(KAFKA))
    spark = " ".join(jar.name for jar in cached(SPARK))

    for needed in ("kafka_2.13", "kafka-clients", "kafka-server", "log4j-core"):
        assert needed in kafka
    for needed in ("delta-spark_4.2_2.13", "delta-storage", "spark-sql-kafka-0-10_2.13"):
        assert needed in spark
    for shipped in ("scala-library", "slf4j-api", "jackson-databind", "hadoop-client", "lz4-java"):
        assert shipped not in spark


def test_an_empty_cache_says_what_to_do(empty_cache: Path) -> None:
    """Nothing is fetched at run time, so the reader must be told when it was to be."""
    with pytest.raises(JarsError, match="run slackwater setup") as missing:
        cached(SPARK)

    assert str(empty_cache) in str(missing.value)
    with pytest.raises(JarsError, match="run slackwater setup --bucket"):
        cached(S3)


def test_a_fetch_that_fails_leaves_nothing_and_says_what_to_do(
    empty_cache: Path, unknown: JarSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a set would be taken for a whole one by the next start."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", CLOSED_PROXY)

    with pytest.raises(JarsError, match=r"Maven Central(.|\n)*run setup again"):
        fill(unknown)

    assert_nothing_is_there(empty_cache, unknown)


def test_a_jar_with_another_hash_is_refused(
    empty_cache: Path, unknown: JarSet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whoever answers for the repository must not get code into the hub."""
    java = tmp_path / "home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(FORGER)
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))

    with pytest.raises(JarsError, match=r"nothing-1\.0\.jar of org\.example .*not the file"):
        fill(unknown)

    assert_nothing_is_there(empty_cache, unknown)


def assert_nothing_is_there(cache: Path, jars: JarSet) -> None:
    """Of the set, nor of the work on it."""
    assert [path.name for path in (cache / "jars").iterdir()] == [f"{folder(jars).name}.lock"]
    with pytest.raises(JarsError):
        cached(jars)


@pytest.mark.parametrize("jars", [KAFKA, SPARK], ids=lambda jars: jars.name)
def test_the_cache_has_the_files_of_the_lock_and_no_other(jars: JarSet) -> None:
    """What setup left is what was locked."""
    assert [file.name for file in cached(jars)] == sorted(jar.file for jar in locked(jars))
    for jar in locked(jars):
        check(jar, folder(jars) / jar.file)


@pytest.mark.parametrize("jars", [KAFKA, SPARK, S3], ids=lambda jars: jars.name)
def test_the_lock_is_of_the_versions_that_are_asked_for(jars: JarSet) -> None:
    """A version that is changed without `make locks` would change nothing."""
    found = {(jar.organisation, jar.name, jar.version) for jar in locked(jars)}

    assert set(jars.roots) <= found
    assert not [jar for jar in locked(jars) if len(jar.sha256) != 64]


def test_other_versions_have_another_place(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An upgrade must not take the jars away under a hub that runs."""
    before = folder(KAFKA)
    newer = lock_of_jars.LOCK.read_text().replace("kafka_2.13 4.2.1", "kafka_2.13 9.9.9")
    (tmp_path / "newer.lock").write_text(newer)
    monkeypatch.setattr(lock_of_jars, "LOCK", tmp_path / "newer.lock")

    assert folder(KAFKA) != before
    assert folder(KAFKA).parent == before.parent == empty_cache / "jars"


def test_a_full_cache_needs_no_network_and_no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second setup works offline, whatever the machine lost since."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("JAVA_HOME", "/nowhere")

    fill(KAFKA, SPARK)


def test_two_setups_at_once_fetch_once(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second of two checkouts takes what the first one fetched."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", CLOSED_PROXY)
    place = folder(KAFKA)
    place.parent.mkdir(parents=True)
    with (
        ThreadPoolExecutor() as second,
        (empty_cache / "jars" / f"{place.name}.lock").open("w") as first,
    ):
        fcntl.flock(first, fcntl.LOCK_EX)
        waiting = second.submit(fill, KAFKA)
        place.mkdir()
        (place / "kafka.jar").touch()
        fcntl.flock(first, fcntl.LOCK_UN)

        waiting.result()

    assert [jar.name for jar in cached(KAFKA)] == ["kafka.jar"]
