"""What the database declares, for people: read now and then, and published as it changes."""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass

from connectors.agent.schema_publication import SchemaPublication
from connectors.postgres.apply.rows import RowWriter
from connectors.postgres.schema.document import database_schema
from connectors.postgres.sql import Session
from streaming.core.schema.document import DatabaseSchema

log = logging.getLogger(__name__)

SCHEMA_S = 60.0
"""So often the declarations are read; nothing that is replicated rests on them."""


@dataclass(slots=True)
class DeclaredSchema:
    """The schema of the replicated tables; `added`: columns that the agent did not find there."""

    publication: SchemaPublication | None = None
    read_at_s: float = 0.0
    added: tuple[str, ...] = ()

    def read(
        self, session: Session, writers: Mapping[str, RowWriter], record_bytes: int
    ) -> SchemaPublication:
        """The schema as it was lately; log which columns are new, for nobody replicates them."""
        now_s = time.monotonic()
        if self.publication is None or now_s - self.read_at_s >= SCHEMA_S:
            whole = database_schema(session, "", [one.table for one in writers.values()])
            added = tuple(_added(whole, writers))
            if added and added != self.added:
                log.warning(
                    "not replicated: %s was added since the agent started", ", ".join(added)
                )
            published = "" if self.publication is None else self.publication.published
            self.publication = SchemaPublication.of(whole, record_bytes, published)
            self.read_at_s, self.added = now_s, added
        return self.publication

    def note_published(self, known: str) -> None:
        """Note by what the schema is known that this process has published."""
        if self.publication is not None:
            self.publication.published = known


def _added(schema: DatabaseSchema, writers: Mapping[str, RowWriter]) -> list[str]:
    """The columns that were not there when the agent started, each as table.column."""
    return [
        f"{name}.{column.name}"
        for name, one in writers.items()
        if (table := schema.table(name)) is not None
        for column in table.columns
        if column.name not in one.server.columns
    ]
