"""What the database declares, for people: read now and then, and published as it changes."""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from connectors.agent.schema_publication import SchemaPublication
from connectors.postgres.apply.rows import RowWriter
from connectors.postgres.schema.document import database_schema
from connectors.postgres.sql import Session

SCHEMA_S = 60.0
"""So often the declarations are read; nothing that is replicated rests on them."""


@dataclass(slots=True)
class DeclaredSchema:
    """The schema of the replicated tables."""

    publication: SchemaPublication | None = None
    read_at_s: float = 0.0

    def read(
        self, session: Session, writers: Mapping[str, RowWriter], record_bytes: int
    ) -> SchemaPublication:
        """The schema as it was lately."""
        now_s = time.monotonic()
        if self.publication is None or now_s - self.read_at_s >= SCHEMA_S:
            whole = database_schema(session, "", [one.table for one in writers.values()])
            published = "" if self.publication is None else self.publication.published
            self.publication = SchemaPublication.of(whole, record_bytes, published)
            self.read_at_s = now_s
        return self.publication

    def note_published(self, known: str) -> None:
        """Note by what the schema is known that this process has published."""
        if self.publication is not None:
            self.publication.published = known
