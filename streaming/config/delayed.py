"""What few expect of an agreement that is delayed."""

from collections.abc import Iterator

from streaming.config.config import Config


def delay_warnings(config: Config) -> Iterator[str]:
    """A sentence for each consumer that is delayed and writes: most of its conflicts it loses."""
    for one in config.agreements:
        tables = config.writes_of(config.replica(one.consumer))
        if one.delay_s and tables:
            yield (
                f"agreement {one.name} is delayed, and {one.consumer} may write"
                f" {', '.join(sorted(tables))}: what others wrote within the delay it has not seen,"
                f" so it loses conflicts over those rows; give replica {one.consumer} writes = []"
            )
