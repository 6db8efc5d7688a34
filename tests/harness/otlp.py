"""Spans as a collector of OpenTelemetry reads them."""

import gzip
from collections.abc import Iterator, Sequence
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.harness.receiver import Received


def spans(requests: Sequence[Received]) -> list[Any]:
    """All spans of these requests, in their order."""
    return [span for one in requests for scope in _scopes(one) for span in scope.spans]


def _scopes(request: Received) -> Iterator[Any]:
    body = request.body
    if request.headers.get("content-encoding") == "gzip":
        body = gzip.decompress(body)
    for one in ExportTraceServiceRequest.FromString(body).resource_spans:
        yield from one.scope_spans


def attributes(span: Any) -> dict[str, Any]:  # noqa: ANN401 - the class is a generated one
    """The attributes of a span that are numbers."""
    return {one.key: one.value.int_value for one in span.attributes}
