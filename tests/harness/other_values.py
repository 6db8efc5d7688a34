"""A carrier that keeps the images of valid changes, as executors do, without Spark."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkpoints.tables import CHANGELOG
from streaming.core.model.table import Table
from streaming.stages.checked import compared_tables, is_away, with_images
from streaming.stages.publish import Chunk, Outgoing


@dataclass(slots=True)
class Elsewhere:
    """See Carrier."""

    whole: pa.Table
    tables: Mapping[str, Table]
    facts: pa.Table = field(init=False)

    def __post_init__(self) -> None:
        """Remove the images of valid changes, as carriers/executors.py does."""
        whole = pa.array(compared_tables(self.tables), pa.string())
        plain = pc.and_(
            pc.and_(pc.equal(self.whole["kind"], "change"), pc.is_null(self.whole["reason"])),
            pc.invert(pc.is_in(self.whole["table"], whole)),
        )
        away = pc.fill_null(plain, False)  # noqa: FBT003
        facts = self.whole
        for name in ("before", "after"):
            left = pc.if_else(away, pa.scalar(None, pa.string()), facts[name])
            facts = facts.set_column(facts.schema.get_field_index(name), name, left)
        size = pc.if_else(away, pa.scalar(1, pa.int64()), pa.scalar(None, pa.int64()))
        self.facts = facts.set_column(facts.schema.get_field_index("size"), "size", size)

    def images(self, places: pa.Table) -> pa.Table:
        """See Carrier."""
        known = {(row["rid"], row["offset"]): row for row in self.whole.to_pylist()}
        found = [known[row["rid"], row["offset"]] for row in places.to_pylist()]
        columns = {name: [row[name] for row in found] for name in ("before", "after")}
        return pa.table({n: pa.array(texts, pa.string()) for n, texts in columns.items()})

    def changelog(self, log: pa.Table) -> pa.Table:
        """See Carrier: the image of a change that is away is what it wrote."""
        away = is_away(log)
        log = with_images(log, away, self.images)
        image = pc.if_else(pa.array(away), log["after"], log["image"])
        log = log.set_column(log.schema.get_field_index("image"), "image", image)
        return log.select(CHANGELOG.names)

    def send(self, outgoing: Outgoing, chunks: Sequence[Chunk]) -> None:
        """Nobody reads it; each row is sent as it is in the log."""
        assert all(outgoing.away.size > np.max(chunk.rows, initial=0) for chunk in chunks)

    def close(self) -> None:
        """Nothing is kept."""
