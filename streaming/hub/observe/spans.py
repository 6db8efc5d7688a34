"""Batches as spans of OpenTelemetry; needs the packages of the extra `traces`."""

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from streaming.hub.batch.phases import BatchTimes

TIMEOUT_S = 3.0
"""How long one sending may take; it delays no batch, but the end of the hub."""
_NS = 1_000_000_000


class SpanExporter:
    """Sends spans to a collector by OTLP over HTTP, from a thread of its own."""

    def __init__(self, endpoint: str, hub: str) -> None:
        resource = Resource.create({"service.name": "slackwater", "service.instance.id": hub})
        self._provider = TracerProvider(resource=resource)
        exporter = OTLPSpanExporter(endpoint=endpoint, timeout=TIMEOUT_S)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("slackwater")

    def record(self, times: BatchTimes, hub_epoch: int) -> None:
        """Record a finished batch; `hub_epoch`: the last one behind it."""
        attributes = {"slackwater.batch": times.batch, "slackwater.hub_epoch": hub_epoch}
        at_ns = times.began_ns
        batch = self._tracer.start_span("batch", start_time=at_ns, attributes=attributes)
        inside = trace.set_span_in_context(batch)
        for phase, took_s in times.phases:
            part = self._tracer.start_span(phase.value, inside, start_time=at_ns)
            at_ns += int(took_s * _NS)
            part.end(at_ns)
        batch.end(at_ns)

    def close(self) -> None:
        """Send what waits, and end the thread."""
        self._provider.shutdown()
