"""What an installation consists of, and which formats it reads and writes."""

import platform
from dataclasses import dataclass
from importlib.metadata import version

from checkpoints.format_number import FORMAT as STATE_FORMAT
from connectors.database_kinds import KINDS
from streaming.core.records.record import WIRE_VERSIONS


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions that decide which hubs, agents and states work together."""

    slackwater: str
    python: str
    spark: str
    delta: str
    """Delta Lake in Spark; `deltalake` reads and writes the same tables without a JVM."""
    deltalake: str
    wire: tuple[int, ...]
    """The versions of the wire that it understands."""
    state_format: int
    """The newest format of the Delta tables that it opens, and the one that it writes."""
    database_formats: dict[str, int]
    """The same of the agents' own tables, by the kind of the database."""


def versions() -> Versions:
    """Those of the running Python, without importing what they are the versions of."""
    return Versions(
        slackwater=version("slackwater"),
        python=platform.python_version(),
        spark=version("pyspark"),
        delta=version("delta-spark"),
        deltalake=version("deltalake"),
        wire=WIRE_VERSIONS,
        state_format=STATE_FORMAT,
        database_formats={scheme: kind.format for scheme, kind in KINDS.items()},
    )
