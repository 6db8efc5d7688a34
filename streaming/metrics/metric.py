"""One metric: its name, type, unit and labels, its meaning, and a question that it answers."""

from dataclasses import dataclass, field
from enum import StrEnum


class MetricType(StrEnum):
    """What may be done with the values of a metric."""

    COUNTER = "counter"
    """it only grows: `rate` and `increase`"""
    GAUGE = "gauge"
    """it goes up and down: its value is of now"""
    HISTOGRAM = "histogram"
    """how many observations were at most so large: `histogram_quantile`"""


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric under its full name; a counter's ends in `_total`.

    `unit`: the suffix of the name that says it, or nothing. `query`: an example in PromQL.
    `buckets`: of a histogram.
    """

    name: str
    type: MetricType
    help: str
    query: str
    labels: tuple[str, ...] = ()
    unit: str = ""
    buckets: tuple[float, ...] = field(default=(), repr=False)

    @property
    def family(self) -> str:
        """The name of its family, which for a counter lacks `_total`."""
        return self.name.removesuffix("_total")


@dataclass(frozen=True, slots=True)
class MetricGroup:
    """Metrics of one subject."""

    title: str
    metrics: tuple[Metric, ...]


def counter(name: str, help_: str, query: str, *labels: str, unit: str = "") -> Metric:
    """A metric that only grows."""
    return Metric(name, MetricType.COUNTER, help_, query, labels, unit)


def gauge(name: str, help_: str, query: str, *labels: str, unit: str = "") -> Metric:
    """A metric that goes up and down."""
    return Metric(name, MetricType.GAUGE, help_, query, labels, unit)


def seconds(name: str, help_: str, query: str, *labels: str) -> Metric:
    """A gauge in seconds: a duration, or a time since 1970."""
    return gauge(name, help_, query, *labels, unit="seconds")


def histogram(
    name: str, help_: str, query: str, *labels: str, buckets: tuple[float, ...]
) -> Metric:
    """A histogram of seconds."""
    return Metric(name, MetricType.HISTOGRAM, help_, query, labels, "seconds", buckets)
