"""From metrics and values to the formats that Prometheus reads."""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Histogram, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from streaming.metrics.metric import Metric, MetricType

Sample = tuple[Metric, tuple[str, ...], float]
"""A metric, the values of its labels in their order, and its value."""


class SamplesCollector(Collector):
    """The metrics of a catalogue with the values of the moment in which they are scraped.

    A metric without a value keeps its description: a name that is missing and one that has nothing
    to say would look the same.
    """

    def __init__(self, metrics: Iterable[Metric], samples: Callable[[], Iterable[Sample]]) -> None:
        self._metrics = [one for one in metrics if one.type is not MetricType.HISTOGRAM]
        self._samples = samples

    def collect(self) -> Iterator[Family]:
        """Yield each metric with its values."""
        families = {one.name: _family(one) for one in self._metrics}
        for metric, labels, value in self._samples():
            families[metric.name].add_metric(labels, value)
        yield from families.values()

    def describe(self) -> Iterator[Family]:
        """Yield each metric without its values."""
        for one in self._metrics:
            yield _family(one)


def _family(metric: Metric) -> CounterMetricFamily | GaugeMetricFamily:
    kind = CounterMetricFamily if metric.type is MetricType.COUNTER else GaugeMetricFamily
    return kind(metric.family, metric.help, labels=metric.labels, unit=metric.unit)


def histogram_of(metric: Metric, registry: CollectorRegistry) -> Histogram:
    """A histogram to which observations are added as they are made."""
    disable_created_metrics()  # type: ignore[no-untyped-call]  # a gauge of when it was made
    return Histogram(
        metric.name, metric.help, metric.labels, registry=registry, buckets=metric.buckets
    )


def exposition(registry: CollectorRegistry, accept: str) -> tuple[bytes, str]:
    """All metrics in the format that the scraper accepts, and the type of that content."""
    encoder, content_type = choose_encoder(accept)
    return encoder(registry), content_type
