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


_UNITS = ("seconds", "bytes", "ratio")


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric under its full name, which says its type and unit: a counter's ends in `_total`.

    `query`: an example in PromQL. `buckets`: of a histogram, and of nothing else.
    """

    name: str
    help: str
    query: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = field(default=(), repr=False)

    @property
    def type(self) -> MetricType:
        """What may be done with its values."""
        if self.buckets:
            return MetricType.HISTOGRAM
        return MetricType.COUNTER if self.name.endswith("_total") else MetricType.GAUGE

    @property
    def unit(self) -> str:
        """The unit at the end of its name; empty: it has none."""
        last = self.family.rpartition("_")[2]
        return last if last in _UNITS else ""

    @property
    def family(self) -> str:
        """The name of its family, which for a counter lacks `_total`."""
        return self.name.removesuffix("_total")
