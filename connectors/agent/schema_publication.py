"""Which schema an agent publishes: one that its topic has not, and the document only once."""

from dataclasses import dataclass

from connectors.agent.images import OVERHEAD_BYTES
from streaming.core.records.record import PublishedSchema
from streaming.core.schema.document import DOCUMENT_BYTES, DatabaseSchema


@dataclass(slots=True)
class SchemaPublication:
    """The schema as it is; `published`: by what the one is known that this process published."""

    schema: DatabaseSchema
    published: str = ""

    @classmethod
    def of(
        cls, whole: DatabaseSchema, record_bytes: int, published: str = ""
    ) -> "SchemaPublication":
        """Of a schema, bounded so that it fits a record."""
        return cls(whole.bounded(min(DOCUMENT_BYTES, record_bytes - OVERHEAD_BYTES)), published)

    def unpublished(self, generation: int, stored: str) -> PublishedSchema | None:
        """The schema, if this process has not published it; its document, if it is new.

        `stored`: by what the document is known that the topic has.
        """
        known = known_as(generation, self.schema.digest)
        if known == self.published:
            return None
        return PublishedSchema(self.schema.digest, None if stored == known else self.schema.text())


def known_as(generation: int, digest: str) -> str:
    """By what a published document is known; a hub that was restored may lack it."""
    return f"{generation}:{digest}"
