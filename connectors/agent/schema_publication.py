"""Which schema an agent publishes: one that its topic has not, and the document only once."""

from dataclasses import dataclass, replace

from connectors.agent.images import OVERHEAD_BYTES
from streaming.core.records.record import PublishedSchema
from streaming.core.schema.document import DOCUMENT_BYTES, DatabaseSchema


@dataclass(slots=True)
class SchemaPublication:
    """The schema as it is; `published`: by what the one is known that this process published.

    `lacking`: the columns that this process published with it, which its database lacked.
    """

    schema: DatabaseSchema
    published: str = ""
    lacking: tuple[str, ...] = ()

    def changed(self, whole: DatabaseSchema, record_bytes: int) -> "SchemaPublication":
        """The same of another schema, bounded so that it fits a record."""
        bounded = whole.bounded(min(DOCUMENT_BYTES, record_bytes - OVERHEAD_BYTES))
        return replace(self, schema=bounded)

    def unpublished(
        self, generation: int, stored: str, lacking: tuple[str, ...] = ()
    ) -> PublishedSchema | None:
        """The schema, if this process has not published it; its document, if it is new.

        `stored`: by what the document is known that the topic has. `lacking`: the columns that the
        database lacks.
        """
        known = known_as(generation, self.schema.digest)
        if (known, lacking) == (self.published, self.lacking):
            return None
        document = None if stored == known else self.schema.text()
        return PublishedSchema(self.schema.digest, document, lacking or None)

    def note_published(self, known: str, schema: PublishedSchema) -> None:
        """Note what this process has published; `known`: by what the schema is known."""
        self.published, self.lacking = known, schema.lacking or ()


def known_as(generation: int, digest: str) -> str:
    """By what a published document is known; a hub that was restored may lack it."""
    return f"{generation}:{digest}"
