"""The columns that databases lack and are sent: rows wait for them, and go on by themselves."""

from collections.abc import Sequence
from dataclasses import dataclass

from streaming.config.config import Config
from streaming.core.intake.refused_rows import lacks
from streaming.core.model.refusal import COLUMN, Lacking
from streaming.core.state.topology import Topology
from streaming.core.text.wording import as_count
from streaming.facts.consumers.divergent import MOST, DivergenceKind, DivergentRow


@dataclass(frozen=True, slots=True)
class WaitedColumn:
    """A column that a replica is sent and its database lacks; `rows`: of the table, that wait.

    `has_more`: more may wait than were looked for.
    """

    replica: str
    table: str
    column: str
    rows: int
    has_more: bool

    @property
    def text(self) -> str:
        """What waits for it, for people."""
        least = "at least " if self.has_more else ""
        return (
            f"{self.replica} waits for column {self.column} of table {self.table}:"
            f" {least}{as_count(self.rows, 'row')}"
        )


COLUMN_REMEDY = (
    "add it to the table in that database (ALTER TABLE), and to the configuration of its agent if"
    " that lacks it; the rows go on by themselves. Where it is not wanted, take it out of the"
    " configuration (`slackwater config apply`)"
)
"""What to do about such a column."""


def waited_columns(
    config: Config, lacking: Lacking, differing: Sequence[DivergentRow]
) -> tuple[WaitedColumn, ...]:
    """Those of the configured replicas; `lacking`: as their agents said, rid -> columns."""
    sent = {one.consumer: config.subscription(one) for one in config.agreements} if lacking else {}
    topology = Topology(config.table_map(), {one.name: one for one in sent.values()})
    has_more = sum(one.kind is DivergenceKind.REFUSED for one in differing) >= MOST
    return tuple(
        WaitedColumn(one.name, table, column, _rows(one.name, table, differing), has_more)
        for one in config.replicas
        if one.rid in lacking
        for table in topology.tables
        for column in lacks(lacking, topology, one.rid, table)
    )


def _rows(replica: str, table: str, differing: Sequence[DivergentRow]) -> int:
    return sum(
        one.kind is DivergenceKind.REFUSED
        and (one.replica, one.table) == (replica, table)
        and one.code == COLUMN
        for one in differing
    )
