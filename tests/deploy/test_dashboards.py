"""The dashboards in deploy/grafana: made from the code, and of metrics that there are."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from connectors.agent.metrics import METRICS
from deploy.dashboards.__main__ import BOARDS, FOLDER, files
from deploy.dashboards.board import Board, Uid, scoped
from streaming.metrics.catalogue import CERTIFICATE_EXPIRY, GENERATION, HUB_METRICS
from streaming.metrics.metric import MetricType

HUBS = {one.name: (one.type, frozenset(one.labels)) for one in HUB_METRICS}
AGENTS = {
    one.name: (
        MetricType.COUNTER if one.name.endswith("_total") else MetricType.GAUGE,
        frozenset({"replica"}),
    )
    for one in METRICS
}
NAMES = HUBS | AGENTS
NOT_SHOWN = {
    CERTIFICATE_EXPIRY.name,
    GENERATION.name,
    "slackwater_agent_log_room_bytes",
    "slackwater_agent_outbox_bytes",
    "slackwater_agent_outbox_records",
}
"""What only alerts look at, and what only an agent on packets has: the runbook asks for it."""

by_board = pytest.mark.parametrize("board", BOARDS, ids=lambda board: str(board.uid))


def expressions(board: Board) -> Iterator[str]:
    """All questions of a board."""
    for row in board.rows:
        for panel in row.panels:
            yield from (query.expr for query in panel.queries)


def metrics_in(expr: str) -> set[str]:
    """The names of the catalogue that a question asks for; a histogram's parts are its own."""
    found = set(re.findall(r"\bslackwater_\w+", expr))
    return {re.sub(r"_seconds_(bucket|sum|count)$", "_seconds", name) for name in found}


def test_the_files_are_those_of_the_code() -> None:
    """Who edits a file by hand would lose it with the next `make dashboards`."""
    assert {path: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")} == files()


@by_board
def test_a_question_names_metrics_and_labels_of_the_catalogue(board: Board) -> None:
    """A renamed metric would leave an empty panel, which looks like peace."""
    for expr in expressions(board):
        assert metrics_in(expr) <= set(NAMES), expr
        labels = {label for name in metrics_in(expr) for label in NAMES[name][1]}
        asked = set(re.findall(r"[{,] *(\w+)=", expr))
        for group in re.findall(r"by \(([^)]*)\)", expr):
            asked |= set(re.split(r", *", group)) - {"le"}
        assert asked <= labels, expr


def test_each_metric_is_on_a_board() -> None:
    """What nobody can see need not be exposed."""
    shown = {name for board in BOARDS for expr in expressions(board) for name in metrics_in(expr)}

    assert set(NAMES) - shown == NOT_SHOWN


@by_board
def test_rates_are_of_counters(board: Board) -> None:
    """The rate of a gauge that falls is wrong; epochs and versions only grow."""
    growing = {"slackwater_hub_epoch", "slackwater_replica_epoch", "slackwater_delta_table_version"}
    for expr in expressions(board):
        for name in re.findall(r"(?:rate|increase)\((slackwater_\w+)", expr):
            (metric,) = metrics_in(name)
            assert NAMES[metric][0] is not MetricType.GAUGE or metric in growing, expr


@by_board
def test_a_panel_says_what_it_shows(board: Board) -> None:
    """Who is called at night has no time to guess, nor two lines of one name."""
    panels = list(_panels(board))

    assert len({one["id"] for one in panels}) == len(panels)
    for one in panels:
        if one["type"] == "row":
            continue
        assert one["description"].endswith("."), one["title"]
        assert one["fieldConfig"]["defaults"]["unit"], one["title"]
        assert one["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        legends = [target["legendFormat"] for target in one["targets"]]
        assert one["type"] != "timeseries" or all(legends), one["title"]
        assert len(set(legends)) == len(legends), one["title"]


def test_links_lead_to_boards() -> None:
    """A click on a line leads to what it is a line of."""
    targets = set()
    for board in BOARDS:
        for one in _panels(board):
            for link in one.get("fieldConfig", {}).get("defaults", {}).get("links", []):
                targets.add(link["url"].removeprefix("/d/").partition("?")[0])

    assert targets == set(Uid) - {Uid.OVERVIEW}


def test_the_job_is_named_at_each_metric() -> None:
    """Two hubs in one Prometheus are two boards."""
    expr = 'max(a) / slackwater_x + slackwater_y{replica="b"}'

    assert scoped(expr) == (
        'max(a) / slackwater_x{job="$job"} + slackwater_y{job="$job", replica="b"}'
    )


def _panels(board: Board) -> Iterator[dict[str, Any]]:
    file = FOLDER / f"{board.uid}.json"
    yield from json.loads(file.read_text(encoding="utf-8"))["panels"]
