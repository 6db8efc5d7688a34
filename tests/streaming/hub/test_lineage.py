"""Claims about lineage: what a receiver is told of a run, and that it holds up nothing."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streaming.config.config import Config
from streaming.config.sources.load import load
from streaming.core.access.root import BucketRoot
from streaming.core.model.errors import ConfigError, HubError
from streaming.hub.observe.extras import lineage
from streaming.hub.observe.lineage_run import datasets
from streaming.hub.stopping import StartInterrupted
from tests.harness.missing_module import without
from tests.harness.receiver import Receiver, receiver

SAMPLE = Path(__file__).parents[3] / "deploy" / "hub.toml"


@pytest.fixture
def marquez() -> Iterator[Receiver]:
    """A receiver that takes everything."""
    with receiver(201) as found:
        yield found


def config(url: str | None, **lineage_fields: str) -> Config:
    """The sample, with such a receiver."""
    sample = load(SAMPLE)
    changed = sample.lineage.model_copy(update={"url": url, **lineage_fields})
    return sample.model_copy(update={"lineage": changed})


def events(marquez: Receiver) -> list[Any]:
    """What it was told."""
    return [json.loads(one.body) for one in marquez.requests]


def test_a_run_is_told_from_its_start_to_its_end(marquez: Receiver) -> None:
    """One run of one job, with all that it reads and writes."""
    configured = config(marquez.address, namespace="prod", access_token="key")
    with lineage(configured):
        pass

    start, end = events(marquez)
    assert [start["eventType"], end["eventType"]] == ["START", "COMPLETE"]
    assert start["run"]["runId"] == end["run"]["runId"]
    assert (start["job"]["namespace"], start["job"]["name"]) == ("prod", configured.hub.name)
    assert start["job"]["facets"]["jobType"]["processingType"] == "STREAMING"
    assert start["run"]["facets"]["processing_engine"]["name"] == "Spark"
    assert [one["name"] for one in start["inputs"]] == [
        configured.changes_topic(one.name) for one in configured.replicas
    ]
    written = [one["name"] for one in start["outputs"]]
    sent = [configured.updates_topic(one.name) for one in configured.agreements]
    assert written[: len(sent)] == sent
    assert written[-1].endswith("state/config")
    assert marquez.requests[0].headers["authorization"] == "Bearer key"


@pytest.mark.parametrize(
    ("error", "told"), [(HubError("the disk is full"), "FAIL"), (StartInterrupted(), "ABORT")]
)
def test_a_run_that_ends_otherwise_says_so(
    marquez: Receiver, error: BaseException, told: str
) -> None:
    """With the reason, which goes on to whoever runs it."""
    with pytest.raises(type(error)), lineage(config(marquez.address)):
        raise error

    end = events(marquez)[-1]
    assert end["eventType"] == told
    if told == "FAIL":
        assert end["run"]["facets"]["errorMessage"]["message"] == "HubError: the disk is full"


def test_a_receiver_that_refuses_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """It is said in the log."""
    with receiver(500) as broken, lineage(config(broken.address)):
        pass

    assert "lineage.url does not take an event (START)" in caplog.text


def test_without_a_url_nobody_is_told() -> None:
    """And nothing of the extra is imported."""
    with without("openlineage", "streaming.hub.observe.lineage_run"), lineage(config(None)):
        pass


def test_an_extra_that_is_not_installed_is_named() -> None:
    """The field, and what to install."""
    with (
        without("openlineage", "streaming.hub.observe.lineage_run"),
        pytest.raises(ConfigError, match=r"lineage\.url.*pip install 'slackwater\[lineage\]'"),
        lineage(config("http://127.0.0.1:1")),
    ):
        pass


def test_tables_in_a_bucket_are_named_by_it() -> None:
    """As OpenLineage names what is in S3."""
    configured = config(None)
    hub = configured.hub.model_copy(update={"state": BucketRoot("lake", "hubs/one")})

    _, written = datasets(configured.model_copy(update={"hub": hub}))
    assert ("s3://lake", "hubs/one/changelog") in written
