"""Lineage for OpenLineage: which topics and tables a hub reads and writes, and when it ran."""

from collections.abc import Iterator
from contextlib import contextmanager

from streaming.config.config import Config
from streaming.hub.observe.extras import of_extra


@contextmanager
def lineage(config: Config) -> Iterator[None]:
    """Tell [lineage] url of this run: START, RUNNING each minute, then how it ended.

    A thread tells the first two, so a receiver that does not answer delays only the hub's end.
    ConfigError if the extra is not installed.
    """
    if config.lineage.url is None:
        yield
        return
    run = of_extra("streaming.hub.observe.lineage_run", "lineage.url", "lineage").LineageRun(config)
    run.start()
    try:
        yield
    except BaseException as error:
        run.end(error)
        raise
    run.end(None)
