"""Claims about traces: what a collector gets of a batch, and what a hub does without one."""

import socket
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from streaming.config.config import Config
from streaming.config.sources.load import load
from streaming.core.model.errors import ConfigError
from streaming.hub.batch.phases import BatchPhase, BatchTimes
from streaming.hub.observe.extras import traced
from streaming.hub.observe.spans import TIMEOUT_S
from streaming.hub.observe.view import HubView
from tests.harness.missing_module import without
from tests.harness.otlp import attributes, spans
from tests.harness.receiver import Receiver, receiver

SAMPLE = Path(__file__).parents[3] / "deploy" / "hub.toml"
BATCH = BatchTimes(7, 1_800_000_000_000_000_000, ((BatchPhase.READ, 0.25), (BatchPhase.JUDGE, 0.5)))


@pytest.fixture
def collector() -> Iterator[Receiver]:
    """A collector that takes everything."""
    with receiver() as found:
        yield found


def config(endpoint: str | None) -> Config:
    """The sample, with such a collector."""
    sample = load(SAMPLE)
    return sample.model_copy(
        update={"traces": sample.traces.model_copy(update={"endpoint": endpoint})}
    )


def observed(view: HubView) -> None:
    """A batch ends."""
    view.shown_epoch = 42
    for observer in view.phases.observers:
        observer(BATCH)


def test_a_batch_is_a_trace_with_a_span_for_each_phase(collector: Receiver) -> None:
    """The phases follow each other inside it."""
    view = HubView(config(f"{collector.address}/v1/traces"))
    with traced(view):
        observed(view)

    found = {span.name: span for span in spans(collector.requests)}
    batch, read, judge = found["batch"], found["read"], found["judge"]
    assert {one.path for one in collector.requests} == {"/v1/traces"}
    assert attributes(batch) == {"slackwater.batch": 7, "slackwater.hub_epoch": 42}
    assert not batch.parent_span_id
    assert {read.parent_span_id, judge.parent_span_id} == {batch.span_id}
    assert len({span.trace_id for span in found.values()}) == 1
    assert batch.start_time_unix_nano == read.start_time_unix_nano == BATCH.began_ns
    assert read.end_time_unix_nano == judge.start_time_unix_nano == BATCH.began_ns + 250_000_000
    assert judge.end_time_unix_nano == batch.end_time_unix_nano == BATCH.began_ns + 750_000_000


def test_a_collector_that_is_not_there_holds_up_no_batch() -> None:
    """Neither a batch nor, for long, the end."""
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        view = HubView(config(f"http://127.0.0.1:{taken.getsockname()[1]}/v1/traces"))
        with traced(view):
            began_s = time.monotonic()
            for _ in range(100):
                observed(view)
            took_s, ended_s = time.monotonic() - began_s, time.monotonic()
        until_end_s = time.monotonic() - ended_s

    assert took_s < 1
    assert until_end_s < 4 * TIMEOUT_S


def test_without_an_endpoint_nobody_is_told() -> None:
    """And nothing of the extra is imported."""
    view = HubView(config(None))
    before = len(view.phases.observers)
    with without("opentelemetry", "streaming.hub.observe.spans"), traced(view):
        assert len(view.phases.observers) == before


def test_an_extra_that_is_not_installed_is_named() -> None:
    """The field, and what to install."""
    view = HubView(config("http://127.0.0.1:1/v1/traces"))
    with (
        without("opentelemetry", "streaming.hub.observe.spans"),
        pytest.raises(ConfigError, match=r"traces\.endpoint.*pip install 'slackwater\[traces\]'"),
        traced(view),
    ):
        pass
