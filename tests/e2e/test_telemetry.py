"""A hub at work tells OpenTelemetry of its batches and OpenLineage of its run."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from connectors.kafka.embedded.broker import Broker
from streaming.hub.batch.phases import BatchPhase
from tests.harness.otlp import attributes, spans
from tests.harness.receiver import Receiver, receiver
from tests.harness.site import Site, site

Told = tuple[Site, Receiver, Receiver]

_SECTIONS = """
[traces]
endpoint = "{collector}/v1/traces"

[lineage]
url = "{marquez}"
"""


@pytest.fixture
def told(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Told]:
    """A site whose hub tells two servers of itself."""
    with ExitStack() as opened:
        made = opened.enter_context(site(tmp_path, broker.bootstrap_servers, topic_prefix))
        collector, marquez = (opened.enter_context(receiver()) for _ in range(2))
        sections = _SECTIONS.format(collector=collector.address, marquez=marquez.address)
        made.file.write_text(made.file.read_text() + sections)
        yield made, collector, marquez


def test_a_hub_sends_its_traces_and_its_lineage(told: Told) -> None:
    """Every hub epoch has a trace with each phase; the run has a start and an end."""
    made, collector, marquez = told
    a = made.replicas["a"]
    a.hello()
    for number in range(3):
        a.write(f"k{number}", "new")
    with made.hub("--available-now") as hub:
        assert hub.ends() == 0
    epoch = made.slackwater("status")["hub_epoch"]

    found = spans(collector.requests)
    batches = {span.span_id: span for span in found if span.name == "batch"}
    assert epoch > 0
    assert max(attributes(one)["slackwater.hub_epoch"] for one in batches.values()) == epoch
    for span_id in batches:
        inside = {span.name for span in found if span.parent_span_id == span_id}
        assert inside == {phase.value for phase in BatchPhase}
    events = [json.loads(one.body) for one in marquez.requests]
    assert [one["eventType"] for one in events] == ["START", "COMPLETE"]
    assert {one["name"] for one in events[0]["inputs"]} == {
        one.changes for one in made.replicas.values()
    }
