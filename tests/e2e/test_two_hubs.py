"""Two hubs on one set of topics: one serves, the other reads along, and takes over when asked."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from checkpoints.tables import TableName
from connectors.kafka.embedded.broker import Broker
from connectors.kafka.topics import ensure_topics
from streaming.cli.main import main
from tests.harness import verdict
from tests.harness.replays import check_replay_is_equal
from tests.harness.site import RECORD_BYTES, Site, site

OTHER = "other"


@pytest.fixture
def hubs(
    tmp_path: Path, broker: Broker, topic_prefix: str, spark: SparkSession
) -> Iterator[tuple[Site, Site]]:
    """The hub that serves two replicas, and another one that was made of a backup of it."""
    with site(tmp_path / "one", broker.bootstrap_servers, topic_prefix, "ab") as one:
        for replica in one.replicas.values():
            replica.agreement = replica.name
            replica.hello()
        one.replicas["a"].write("k", "before the backup")
        serve(one, spark)
        yield one, made_of_backup(one, tmp_path / OTHER, broker.bootstrap_servers)


def made_of_backup(one: Site, folder: Path, bootstrap: str) -> Site:
    """A second hub: the first one's configuration with agreements and a state of its own."""
    folder.mkdir()
    agreements = one.file.read_text().replace(
        '[[agreements]]\nname = "', f'[[agreements]]\nname = "{OTHER}-'
    )
    other = replace(one, folder=folder)
    other.file.write_text(agreements)
    topics = [updates_of(other, name) for name in one.replicas]
    ensure_topics(bootstrap, {}, topics, RECORD_BYTES)
    assert main(["backup", str(folder / "backup"), "--config", str(one.file)]) == 0
    assert main(["restore", str(folder / "backup"), "--config", str(other.file)]) == 0
    return other


def updates_of(other: Site, name: str) -> str:
    """The updates topic of a replica at the other hub."""
    return f"{other.prefix}updates.{OTHER}-{name}"


def serve(at: Site, spark: SparkSession, rounds: int = 2) -> None:
    """Let a hub and its replicas do all there is to do."""
    for _ in range(rounds):
        at.run_available(spark)
        for replica in at.replicas.values():
            replica.catch_up()
    at.run_available(spark)


def write_by_turns(one: Site, spark: SparkSession) -> None:
    """Each replica writes the row upon what it has of the other; nothing of it is concurrent."""
    for name, value in (("b", "2"), ("a", "3"), ("b", "4")):
        one.replicas[name].write("k", value)
        serve(one, spark)


def states(at: Site) -> dict[str, str]:
    """Agreement -> its state, as `status` shows it; those of the first hub are kept, retired."""
    found = {one["name"]: one["state"] for one in at.slackwater("status")["agreements"]}
    return {name: state for name, state in found.items() if state != "retired"}


@pytest.mark.more
def test_a_hub_that_reads_along_judges_one_cut_as_the_other_did_many(
    hubs: tuple[Site, Site], spark: SparkSession
) -> None:
    """It knows what each replica had of the other hub, and says that it does not serve them."""
    one, other = hubs
    write_by_turns(one, spark)

    other.run_available(spark)

    rows = verdict.rows_of_changelog(other)
    assert rows == verdict.rows_of_changelog(one)
    assert verdict.rows_of(other.state, TableName.CONFLICTS) == []
    assert verdict.rows_of(other.state, TableName.QUARANTINE) == []
    assert {*states(other).values()} == {"change_tracking: elsewhere"}
    assert not other.slackwater("level")["level"]
    assert one.slackwater("level")["level"]
    assert not [value for name in "ab" for _, value in one.ends.read(updates_of(other, name))]
    check_replay_is_equal(other.state)


@pytest.mark.more
def test_replicas_of_a_hub_that_is_gone_go_on_at_another_one(
    hubs: tuple[Site, Site], spark: SparkSession
) -> None:
    """A full copy, then every batch; what they wrote while no hub was there is not lost."""
    one, other = hubs
    write_by_turns(one, spark)
    other.run_available(spark)
    shutil.rmtree(one.state)
    one.replicas["a"].write("i", "while no hub was there")

    for name, replica in one.replicas.items():
        replica.move(f"{OTHER}-{name}", updates_of(other, name))
    with other.running(spark) as hub:
        hub.brings(*other.replicas.values())
        one.replicas["b"].write("k", "written since")
        hub.takes(*other.replicas.values())
        hub.brings(*other.replicas.values())

    rows = verdict.rows_of_changelog(other)
    assert [replica.rows for replica in one.replicas.values()] == [rows] * 2
    assert "while no hub was there" in rows["t", '{"k":"i"}']
    assert "written since" in rows["t", '{"k":"k"}']
    assert verdict.rows_of(other.state, TableName.CONFLICTS) == []
    assert {*states(other).values()} == {"in_sync"}
    assert other.slackwater("level")["level"]
    check_replay_is_equal(other.state)
