"""The JSON of a board as Grafana loads it, made with Grafana's own builders."""

import itertools
import json
from typing import Any

from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import dashboard, heatmap, prometheus, stat, table, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from deploy.dashboards.board import Board, Look, Panel, PanelKind, Query, Uid, scoped

SOURCE = common.DataSourceRef(type_val="prometheus", uid="${datasource}")

_GREEN, _YELLOW, _RED = "green", "yellow", "red"
_STEPS: dict[Look, list[tuple[float | None, str]]] = {
    Look.PLAIN: [(None, "text")],
    Look.LAG: [(None, _GREEN), (10, _YELLOW), (60, _RED)],
    Look.ALARM: [(None, _GREEN), (1, _RED)],
    Look.LEVEL: [(None, _RED), (1, _GREEN)],
}

_NEW_VERSION = (
    "count by (version) (slackwater_build_info)"
    " unless count by (version) (slackwater_build_info offset 1m)"
)
_ANNOTATIONS = (
    ("Restarts", "blue", "changes(process_start_time_seconds[1m]) > 0", "the hub was started"),
    (
        "Configuration",
        "purple",
        "changes(slackwater_config_version[1m]) > 0",
        "another configuration is in force",
    ),
    ("Versions", "orange", _NEW_VERSION, "version {{version}} was deployed"),
)

_Visual = stat.Panel | timeseries.Panel | table.Panel | heatmap.Panel


def rendered(board: Board) -> str:
    """The board as the text of its file."""
    made = (
        dashboard.Dashboard(board.title)
        .uid(board.uid)
        .description(board.description)
        .tags(["slackwater"])
        .readonly()
        .refresh("10s")
        .time("now-1h", "now")
        .timezone("browser")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .links([_link_to_all()])
        .variables(_variables(board))
        .annotations([_annotation(*one) for one in _ANNOTATIONS])
    )
    ids = itertools.count(1)
    for row in board.rows:
        made.with_row(dashboard.Row(row.title).id(next(ids)))
        for panel in row.panels:
            made.with_panel(_panel(panel).id(next(ids)))
    document = json.loads(JSONEncoder().encode(made.build()))
    return json.dumps(_tidied(document), indent=1, sort_keys=True) + "\n"


def _tidied(value: Any) -> Any:  # noqa: ANN401 whatever JSON it is
    """Without a placement that the builders add and nobody set: it moves links into a menu."""
    match value:
        case dict():
            kept = {k: one for k, one in value.items() if (k, one) != _ADDED}
            return {k: _tidied(one) for k, one in kept.items()}
        case list():
            return [_tidied(one) for one in value]
        case _:
            return value


_ADDED = ("placement", "inControlsMenu")


def _link_to_all() -> dashboard.DashboardLink:
    return (
        dashboard.DashboardLink("Slackwater")
        .type(models.DashboardLinkType.DASHBOARDS)
        .tags(["slackwater"])
        .include_vars(include_vars=True)
        .keep_time(keep_time=True)
    )


def _variables(board: Board) -> list[Any]:
    job = _values("job", "Job", "label_values(slackwater_build_info, job)")
    source = dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus")
    if not board.variable:
        return [source, job]
    of = f"label_values({scoped(board.of)}, {board.variable})"
    return [source, job, _values(board.variable, board.variable.capitalize(), of)]


def _values(name: str, label: str, query: str) -> dashboard.QueryVariable:
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .query(query)
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_ASC)
    )


def _annotation(name: str, color: str, expr: str, text: str) -> dashboard.AnnotationQuery:
    found = dashboard.AnnotationQuery().name(name).enable(enable=True).icon_color(color)
    return found.datasource(SOURCE).expr(scoped(expr)).title_format(text).step("1m")


def _panel(panel: Panel) -> _Visual:
    found = _visual(panel)
    found.title(panel.title).description(panel.description).datasource(SOURCE)
    found.unit(panel.unit).span(panel.width).height(panel.height)
    steps = [models.Threshold(value, color) for value, color in _STEPS[panel.look]]
    found.thresholds(dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps))
    if panel.look is Look.LEVEL:
        found.mappings([_yes_or_no()])
    if panel.to is not None:
        found.data_links([_link_to(panel, panel.to)])
    for number, query in enumerate(panel.queries):
        found.with_target(_target(panel.kind, query, "ABCDEFGH"[number]))
    return found


def _visual(panel: Panel) -> _Visual:
    match panel.kind:
        case PanelKind.STAT:
            last = common_builders.ReduceDataOptions().calcs(["lastNotNull"])
            area = common.BigValueGraphMode.AREA
            return stat.Panel().reduce_options(last).graph_mode(area)
        case PanelKind.GRAPH:
            return timeseries.Panel().legend(_legend())
        case PanelKind.STACK:
            stacked = common_builders.StackingConfig().mode(common.StackingMode.NORMAL)
            return timeseries.Panel().legend(_legend()).stacking(stacked).fill_opacity(30)
        case PanelKind.TABLE:
            return table.Panel().with_transformation(_labels_only())
        case PanelKind.MATRIX:
            colored = common.TableCellDisplayMode.COLOR_BACKGROUND
            return table.Panel().display_mode(colored).with_transformation(_matrix(panel.matrix))
        case PanelKind.HEATMAP:
            return heatmap.Panel()


def _legend() -> common_builders.VizLegendOptions:
    return (
        common_builders.VizLegendOptions()
        .show_legend(show_legend=True)
        .display_mode(common.LegendDisplayMode.LIST)
        .placement(common.LegendPlacement.BOTTOM)
    )


def _labels_only() -> models.DataTransformerConfig:
    hidden = dict.fromkeys(("Time", "Value", "__name__", "instance", "job"), True)
    return models.DataTransformerConfig("organize", options={"excludeByName": hidden})


def _matrix(labels: tuple[str, str]) -> models.DataTransformerConfig:
    row, column = labels
    options = {"rowField": row, "columnField": column, "valueField": "Value", "emptyValue": "null"}
    return models.DataTransformerConfig("groupingToMatrix", options=options)


def _yes_or_no() -> models.ValueMap:
    result = models.ValueMappingResult
    return models.ValueMap({"0": result("no", _RED), "1": result("yes", _GREEN)})


def _link_to(panel: Panel, uid: Uid) -> dashboard.DashboardLink:
    label = {Uid.AGREEMENT: "agreement", Uid.REPLICA: "replica"}.get(uid)
    where = "__data.fields" if panel.kind is PanelKind.TABLE else "__field.labels"
    chosen = f"&var-{label}=${{{where}.{panel.by or label}}}" if label else ""
    url = f"/d/{uid}?${{datasource:queryparam}}&${{job:queryparam}}{chosen}&${{__url_time_range}}"
    return dashboard.DashboardLink(uid.removeprefix("slackwater-").capitalize()).url(url)


def _target(kind: PanelKind, query: Query, ref_id: str) -> prometheus.Dataquery:
    found = prometheus.Dataquery().expr(query.scoped).ref_id(ref_id).legend_format(query.legend)
    match kind:
        case PanelKind.TABLE | PanelKind.MATRIX:
            return found.instant().format(PromQueryFormat.TABLE)
        case PanelKind.HEATMAP:
            return found.range().format(PromQueryFormat.HEATMAP)
        case PanelKind.STAT | PanelKind.GRAPH | PanelKind.STACK:
            return found.range()
