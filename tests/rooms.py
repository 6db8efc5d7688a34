"""The rooms of the product: what each holds, and what it may import.

`make docs` writes their table into ARCHITECTURE.md; test_layers.py holds them.
"""

import ast
from pathlib import Path

from streaming.core.text.markdown import code, table

CHECKOUT = Path(__file__).parent.parent
LEAF = ("streaming.core", "streaming.jvm.java")  # who finds Java needs nothing but an error class

FLOW = (
    *("batch/phases", "resync/prepared_tables", "resync/pages", "batch/settings"),
    *(
        "standby/window",
        "batch/rest",
        "batch/delays",
        "batch/throttle",
        "batch/hub",
        "batch/ingest",
    ),
    "batch/outcome",
    *(
        "batch/page_ranges",
        "batch/packets",
        "batch/publishing",
        "batch/lost_input",
        "batch/pipeline",
    ),
)
"""The modules of the flow of a batch; each may import those before it."""

CORE = (
    *("model", "text", "access", "records", "tracking", "compare", "matrix", "conflict", "state"),
    "counts",
    *("delivery", "intake", "retention", "batch", "schema", "replay"),
)
"""The rooms of core; each may import those before it."""


def dotted(place: str) -> str:
    """A place as the module that it is."""
    return place.removesuffix(".py").replace("/", ".")


MAY_IMPORT = {
    "streaming/core": ("streaming.core",),
    **{
        f"streaming/core/{room}": tuple(f"streaming.core.{below}" for below in CORE[: place + 1])
        for place, room in enumerate(CORE)
    },
    "streaming/jvm/pins.py": (),
    "streaming/jvm/java.py": ("streaming.core.model.errors", "streaming.jvm.pins"),
    "streaming/jvm/private.py": ("streaming.jvm.launch_files", "streaming.jvm.pins"),
    "connectors": (*LEAF, "connectors"),
    "connectors/agent": (
        "streaming.core",
        *("connectors.wire", "connectors.kafka", "connectors.packets", "connectors.agent"),
        *("connectors.log_format", "connectors.logs", "connectors.tls"),
        *("connectors.metrics_server", "connectors.live_value", "connectors.trusted_file"),
    ),
    "connectors/packets": ("streaming.core", "connectors.wire", "connectors.packets"),
    "checkpoints": (*LEAF, "checkpoints"),
    "streaming/stages": (*LEAF, "connectors", "checkpoints", "streaming.stages"),
    "streaming/filters": ("streaming.core", "streaming.filters"),
    "streaming/carriers": (
        *(*LEAF, "connectors", "checkpoints"),
        *("streaming.stages", "streaming.carriers", "streaming.jvm.private"),
    ),
    "streaming/facts": (
        *("streaming.core", "streaming.config", "connectors", "checkpoints", "streaming.facts"),
        *("streaming.stages.filtered", "streaming.stages.recipients", "streaming.stages.tracked"),
    ),
    "streaming/terminal": (
        *("streaming.core", "streaming.facts.documents", "streaming.terminal"),
        "connectors.log_format",
    ),
    "streaming/metrics": (
        *("streaming.core", "checkpoints", "streaming.facts", "streaming.metrics"),
        "connectors.agent.metrics",
    ),
    **{
        f"streaming/metrics/{name}.py": ("streaming.metrics.metric",)
        for name in ("metric", "agreement_metrics", "exposition")
    },
    "streaming/metrics/catalogue.py": (
        *("streaming.metrics.metric", "streaming.metrics.agreement_metrics"),
    ),
    "streaming/http": (
        *("streaming.core", "checkpoints", "streaming.facts", "streaming.http"),
        "streaming.metrics.exposition",
    ),
    "streaming/replay": (
        *(*LEAF, "checkpoints", "streaming.config", "streaming.stages", "streaming.carriers"),
        *("streaming.hub", "streaming.jvm.session", "streaming.jvm.master", "streaming.replay"),
        *("streaming.jvm.query_plan", "streaming.operator.undo"),
        *("streaming.facts.page_style", "streaming.facts.report_page"),
    ),
    "streaming/compare": (
        *("streaming.core", "streaming.config", "connectors", "checkpoints"),
        *("streaming.facts", "streaming.compare"),
    ),
    "streaming/operator": (*LEAF, "checkpoints", "streaming.filters", "streaming.operator"),
    "streaming/hub/upkeep.py": (*LEAF, "checkpoints"),
    "streaming/hub/purging.py": (*LEAF, "checkpoints"),
    **{
        f"streaming/hub/{name}.py": (
            *(*LEAF, "connectors", "checkpoints"),
            *("streaming.stages", "streaming.carriers", "streaming.operator"),
            *(
                "streaming.hub.upkeep",
                "streaming.hub.purging",
                *(dotted(f"streaming/hub/{below}") for below in FLOW[:place]),
            ),
        )
        for place, name in enumerate(FLOW)
    },
}

PAGE = CHECKOUT / "ARCHITECTURE.md"
_HEADING = "## The rooms\n\n"
ANYTHING = "what it needs"
"""Of a room that no rule holds, because it stands above all others."""


def rooms() -> str:
    """The table: each folder of modules with the first sentence of its docstring."""
    places = sorted(
        file.parent.relative_to(CHECKOUT).as_posix()
        for top in ("streaming", "connectors", "checkpoints")
        for file in (CHECKOUT / top).rglob("__init__.py")
    )
    shown = [place for place in places if place != "streaming"]
    rows = [(code(place), _holds(place), _imports(place)) for place in shown]
    return table(("folder", "holds", "may import"), rows)


def _holds(place: str) -> str:
    text = ast.get_docstring(ast.parse((CHECKOUT / place / "__init__.py").read_text())) or ""
    return text.split("\n\n")[0].replace("\n", " ").removesuffix(".")


def _imports(place: str) -> str:
    if place not in MAY_IMPORT:
        above = place.rpartition("/")[0]
        return f"as {code(above)}" if above in MAY_IMPORT else ANYTHING
    own = place.replace("/", ".")
    return ", ".join(code(name) for name in MAY_IMPORT[place] if name != own) or "nothing of ours"


def page() -> str:
    """ARCHITECTURE.md with the table as it is now."""
    text = PAGE.read_text(encoding="utf-8")
    before, heading, after = text.partition(_HEADING)
    return f"{before}{heading}{rooms().rstrip()}\n\n{after[after.index('Imports go one way') :]}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
