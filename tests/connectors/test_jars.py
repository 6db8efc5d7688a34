"""The jars come from the cache, whole or not at all."""

import fcntl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from connectors.jars import (
    KAFKA,
    SPARK,
    JarsError,
    JarSet,
    cache_folder,
    cached,
    fill,
    folder,
    kafka_jars,
    spark_jars,
)

CLOSED_PROXY = "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=9"


@pytest.fixture
def empty_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache of one's own with nothing in it."""
    monkeypatch.setenv("SLACKWATER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


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
    kafka = " ".join(jar.name for jar in kafka_jars())
    spark = " ".join(jar.name for jar in spark_jars())

    for needed in ("kafka_2.13", "kafka-clients", "kafka-server", "log4j-core"):
        assert needed in kafka
    for needed in ("delta-spark_4.2_2.13", "delta-storage", "spark-sql-kafka-0-10_2.13"):
        assert needed in spark
    for shipped in ("scala-library", "slf4j-api", "jackson-databind", "hadoop-client", "lz4-java"):
        assert shipped not in spark


def test_an_empty_cache_says_what_to_do(empty_cache: Path) -> None:
    """Nothing is fetched at run time, so the reader must be told when it was to be."""
    with pytest.raises(JarsError, match="run slackwater setup") as missing:
        spark_jars()

    assert str(empty_cache) in str(missing.value)


def test_a_fetch_that_fails_leaves_nothing_and_says_what_to_do(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a set would be taken for a whole one by the next start."""
    unknown = JarSet("unknown", (("org.example.slackwater", "nothing", "1.0"),))
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", CLOSED_PROXY)

    with pytest.raises(JarsError, match=r"Maven Central(.|\n)*run setup again"):
        fill(unknown)

    assert [path.name for path in (empty_cache / "jars").iterdir()] == [
        f"{folder(unknown).name}.lock"
    ]
    with pytest.raises(JarsError):
        cached(unknown)


def test_other_versions_have_another_place(empty_cache: Path) -> None:
    """An upgrade must not take the jars away under a hub that runs."""
    newer = JarSet(KAFKA.name, (("org.apache.kafka", "kafka_2.13", "9.9.9"),))

    assert folder(newer) != folder(KAFKA)
    assert folder(newer).parent == folder(KAFKA).parent == empty_cache / "jars"


def test_a_full_cache_needs_no_network_and_no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second setup works offline, whatever the machine lost since."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("JAVA_HOME", "/nowhere")

    for jars in (KAFKA, SPARK):
        fill(jars)


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
