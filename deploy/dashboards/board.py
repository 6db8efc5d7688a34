"""What a board shows: rows of panels, each with its questions in PromQL."""

import re
from dataclasses import dataclass
from enum import StrEnum

JOB = 'job="$job"'
_METRIC = re.compile(r"\b((?:slackwater|process)_\w+)(\{)?")


class PanelKind(StrEnum):
    """How a panel shows its values."""

    STAT = "stat"
    """the last value, large, in the colour of its threshold"""
    GRAPH = "graph"
    """lines over time"""
    STACK = "stack"
    """areas over time that add up"""
    TABLE = "table"
    """the present series as rows, with their labels"""
    MATRIX = "matrix"
    """the present series as a matrix of two labels, in the colour of their thresholds"""
    HEATMAP = "heatmap"
    """the buckets of a histogram over time"""


class Look(StrEnum):
    """When the colour of a value changes."""

    PLAIN = "plain"
    """never"""
    LAG = "lag"
    """yellow from 10 seconds, red from 60"""
    ALARM = "alarm"
    """red from 1: there should be none"""
    LEVEL = "level"
    """1 is green and reads yes, 0 is red and reads no"""


class Unit(StrEnum):
    """Grafana's names of units."""

    COUNT = "short"
    PER_SECOND = "ops"
    SECONDS = "s"
    BYTES = "bytes"
    RATIO = "percentunit"


class Uid(StrEnum):
    """The boards, by what their addresses contain."""

    OVERVIEW = "slackwater-overview"
    AGREEMENT = "slackwater-agreement"
    CONFLICTS = "slackwater-conflicts"
    REPLICA = "slackwater-replica"
    HUB = "slackwater-hub"
    AGENTS = "slackwater-agents"


@dataclass(frozen=True, slots=True)
class Query:
    """A question in PromQL and the name of each answer; `expr` need not name the job."""

    expr: str
    legend: str = ""

    @property
    def scoped(self) -> str:
        """The question of the job that the board shows."""
        return scoped(self.expr)


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel; `width` of 24.

    `to`: the board behind a click; `by`: the label whose value is chosen there, if it has another
    name. `matrix`: the labels of a matrix's rows and columns.
    """

    title: str
    description: str
    queries: tuple[Query, ...]
    kind: PanelKind = PanelKind.GRAPH
    unit: Unit = Unit.COUNT
    look: Look = Look.PLAIN
    width: int = 8
    height: int = 8
    to: Uid | None = None
    by: str = ""
    matrix: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under a heading."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Board:
    """A dashboard; `variable`: the label that its reader chooses a value of, `of`: its metric."""

    uid: Uid
    title: str
    description: str
    rows: tuple[Row, ...]
    variable: str = ""
    of: str = ""


def scoped(expr: str) -> str:
    """A question with the chosen job at each metric."""
    return _METRIC.sub(
        lambda found: f"{found[1]}{{{JOB}, " if found[2] else f"{found[1]}{{{JOB}}}", expr
    )


def stat(
    title: str,
    description: str,
    expr: str,
    *,
    unit: Unit = Unit.COUNT,
    look: Look = Look.PLAIN,
    to: Uid | None = None,
) -> Panel:
    """One large number."""
    return Panel(
        title, description, (Query(expr),), PanelKind.STAT, unit, look, width=4, height=4, to=to
    )


def graph(
    title: str,
    description: str,
    *queries: tuple[str, str],
    unit: Unit = Unit.COUNT,
    kind: PanelKind = PanelKind.GRAPH,
    to: Uid | None = None,
    by: str = "",
) -> Panel:
    """Lines, or areas, over time; `queries`: (expression, legend)."""
    found = tuple(Query(*one) for one in queries)
    return Panel(title, description, found, kind, unit, to=to, by=by)
