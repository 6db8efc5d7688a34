"""Traces and lineage: what they need is imported when the configuration asks for them."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

from streaming.config.config import Config
from streaming.core.model.errors import ConfigError
from streaming.hub.observe.view import HubView


@contextmanager
def traced(view: HubView) -> Iterator[None]:
    """Send a trace of each batch to [traces] endpoint as long as the block takes.

    A trace for OpenTelemetry is a span for the batch, and one in it for each of its phases.
    Spans wait in memory, 2,048 at most, and a thread sends them; what a collector does not take
    is dropped. ConfigError if the extra is not installed.
    """
    endpoint = view.config.traces.endpoint
    if endpoint is None:
        yield
        return
    spans = _of_extra("streaming.hub.observe.spans", "traces.endpoint", "traces")
    exporter = spans.SpanExporter(endpoint, view.config.hub.name)
    view.phases.observers.append(lambda times: exporter.record(times, view.hub_epoch()))
    try:
        yield
    finally:
        exporter.close()


@contextmanager
def lineage(config: Config) -> Iterator[None]:
    """Tell [lineage] url of this run: START, RUNNING each minute, then how it ended.

    A thread tells the first two, so a receiver that does not answer delays only the hub's end.
    ConfigError if the extra is not installed.
    """
    if config.lineage.url is None:
        yield
        return
    module = _of_extra("streaming.hub.observe.lineage_run", "lineage.url", "lineage")
    run = module.LineageRun(config)
    run.start()
    try:
        yield
    except BaseException as error:
        run.end(error)
        raise
    run.end(None)


def _of_extra(module: str, setting: str, extra: str) -> ModuleType:
    """The module; ConfigError, which names the setting, if a package of the extra is missing."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"{setting} is set, but the package {error.name} is not installed: "
            f"pip install 'slackwater[{extra}]', or remove the setting"
        ) from None
