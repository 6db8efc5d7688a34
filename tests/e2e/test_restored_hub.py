"""A hub whose state was put back from a backup: refused, and brought up again when told to."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from checkpoints.tables import TableName
from connectors.kafka.embedded.broker import Broker
from connectors.wire import decode_answer
from streaming.cli.main import main
from streaming.core.model.errors import SourceError, StateError
from streaming.core.records.record import Update
from tests.harness import verdict
from tests.harness.site import Site, site


@pytest.fixture
def restored(
    tmp_path: Path, broker: Broker, topic_prefix: str, spark: SparkSession
) -> Iterator[Site]:
    """Two replicas that have applied more than the hub's state, which was put back, knows."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "ab") as at:
        for replica in at.replicas.values():
            replica.hello()
        at.replicas["a"].write("k", "before the backup")
        at.run_available(spark)
        shutil.copytree(at.state, tmp_path / "backup")
        at.replicas["a"].write("k", "behind the backup")
        at.replicas["b"].write("j", "of b")
        at.run_available(spark)
        for replica in at.replicas.values():
            replica.catch_up()
        shutil.rmtree(at.state)
        (tmp_path / "backup").rename(at.state)
        yield at


def generations(at: Site, name: str) -> list[int]:
    """The generations of what a consumer was sent, in order."""
    sent = [decode_answer(value) for _, value in at.updates(name)]
    return [one.generation for one in sent if isinstance(one, Update)]


def told(at: Site, *words: str) -> int:
    """The exit code of a command."""
    return main([*words, "--config", str(at.file)])


def test_it_goes_on_as_the_next_generation_when_told_to(
    restored: Site, spark: SparkSession
) -> None:
    """Nothing of the lost history is missing, for it stands in the topics."""
    everybody = restored.replicas.values()
    with pytest.raises(StateError, match="`slackwater recover`"):
        restored.run_available(spark)

    assert told(restored, "recover") == 0

    with restored.running(spark) as hub:
        for replica in everybody:
            hub.brings(replica)
        restored.replicas["b"].write("k", "written since")
        hub.takes(*everybody)
        hub.brings(*everybody)
    rows = verdict.rows_of_changelog(restored)
    assert [one.rows for one in everybody] == [rows] * 2
    assert "written since" in rows["t", '{"k":"k"}']
    assert "of b" in rows["t", '{"k":"j"}']
    assert {*generations(restored, "a")} == {*generations(restored, "b")} == {1, 2}
    assert verdict.rows_of(restored.state, TableName.QUARANTINE) == [], "old acknowledgements"
    assert told(restored, "recover") == 1, "it is not behind any more"


@pytest.mark.more
def test_a_state_that_is_lost_is_restored_behind_a_hub_that_was_refused(
    restored: Site, spark: SparkSession
) -> None:
    """A service manager starts the hub again before anybody is awake."""
    backup = str(restored.folder / "backup of the command")
    assert told(restored, "recover") == 0
    restored.run_available(spark)
    assert told(restored, "backup", backup) == 0
    shutil.rmtree(restored.state)
    for _ in range(2):
        with pytest.raises(SourceError, match="`slackwater restore`"):
            restored.run_available(spark)

    assert told(restored, "restore", backup) == 0

    with restored.running(spark) as hub:
        hub.brings(*restored.replicas.values())
    assert "of b" in verdict.rows_of_changelog(restored)["t", '{"k":"j"}']
    assert verdict.rows_of(restored.state, TableName.QUARANTINE) == []


def test_what_no_topic_holds_any_more_is_not_deleted_everywhere_in_silence(
    restored: Site, spark: SparkSession
) -> None:
    """The databases have it, and the full copies would take it from them."""
    topic = restored.replicas["a"].changes
    restored.ends.cut(topic, restored.ends.end(topic))
    assert told(restored, "recover") == 0

    with pytest.raises(StateError, match=r"begins at offset \d+, .* `slackwater recover --lose`"):
        restored.run_available(spark)

    assert told(restored, "recover", "--lose") == 0
    restored.run_available(spark)
    assert restored.replica_states()["a"].startswith("input_lost")
