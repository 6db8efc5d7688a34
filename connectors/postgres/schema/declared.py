"""What the database declares, for people: read now and then, and published as it changes."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from connectors.agent.schema_publication import SchemaPublication
from connectors.postgres.apply.rows import RowWriter
from connectors.postgres.schema.document import database_schema
from connectors.postgres.sql import Session
from streaming.core.schema.document import DatabaseSchema

SCHEMA_S = 60.0
"""So often the declarations are read; nothing that is replicated rests on them."""


@dataclass(slots=True)
class DeclaredSchema:
    """The schema of the replicated tables; `read_at_s` None: it was not read yet."""

    publication: SchemaPublication = field(
        default_factory=lambda: SchemaPublication(DatabaseSchema("", "", ""))
    )
    read_at_s: float | None = None

    def read(
        self, session: Session, writers: Mapping[str, RowWriter], record_bytes: int
    ) -> SchemaPublication:
        """The schema as it was lately."""
        now_s = time.monotonic()
        if self.read_at_s is None or now_s - self.read_at_s >= SCHEMA_S:
            whole = database_schema(session, "", [one.table for one in writers.values()])
            self.publication = self.publication.changed(whole, record_bytes)
            self.read_at_s = now_s
        return self.publication
