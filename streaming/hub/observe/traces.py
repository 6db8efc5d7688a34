"""Traces for OpenTelemetry: a span for each batch, and one in it for each of its phases."""

from collections.abc import Iterator
from contextlib import contextmanager

from streaming.hub.observe.extras import of_extra
from streaming.hub.observe.view import HubView


@contextmanager
def traced(view: HubView) -> Iterator[None]:
    """Send a trace of each batch to [traces] endpoint as long as the block takes.

    Spans wait in memory, 2,048 at most, and a thread sends them; what a collector does not take
    is dropped. ConfigError if the extra is not installed.
    """
    endpoint = view.config.traces.endpoint
    if endpoint is None:
        yield
        return
    spans = of_extra("streaming.hub.observe.spans", "traces.endpoint", "traces")
    exporter = spans.SpanExporter(endpoint, view.config.hub.name)
    view.phases.observers.append(lambda times: exporter.record(times, view.hub_epoch()))
    try:
        yield
    finally:
        exporter.close()
