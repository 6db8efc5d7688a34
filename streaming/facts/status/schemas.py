"""The schemas that the agents published, side by side, and the columns that are not replicated."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from checkpoints.reading.published_documents import published_documents
from checkpoints.reading.reader import Reader
from streaming.config.config import Config
from streaming.core.model.errors import ConfigError
from streaming.core.model.foreign_json import loads
from streaming.core.schema.compare import SchemaComparison, compared
from streaming.core.schema.difference import SchemaDifference
from streaming.core.schema.document import DatabaseSchema, schema_of


def _schema(document: object) -> DatabaseSchema | None:
    """A published document; None: there is none, or this version cannot read it."""
    try:
        return schema_of(json.dumps(document), "a record") if document else None
    except ConfigError:  # of a later version, or of an agent that writes another document
        return None


def compared_schemas(
    config: Config, reader: Reader | None, files: Iterable[DatabaseSchema] = ()
) -> SchemaComparison:
    """Those that were published, and the configuration; a file takes the place of its replica's.

    `reader` None: no hub has run yet.
    """
    documents = {} if reader is None else published_documents(reader)
    found = ((one.name, _schema(documents.get(one.rid))) for one in config.replicas)
    schemas = {name: replace(schema, replica=name) for name, schema in found if schema is not None}
    schemas |= {one.replica: one for one in files}
    rids = {one.name: one.rid for one in config.replicas}
    return compared(
        [*schemas.values()], [*config.table_map().values()], rids, config.hidden_columns
    )


def schema_differences(config: Config, reader: Reader) -> tuple[SchemaDifference, ...]:
    """The differences between published schemas by which rows may be refused, or differ."""
    found = compared_schemas(config, reader).differences
    return tuple(one for one in found if one.matters)


def schema_warnings(found: Sequence[SchemaDifference]) -> Iterator[str]:
    """One sentence, if there is a difference: `slackwater schema` tells them all."""
    if found:
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        yield (
            f"warning: the schemas of the replicas differ: {found[0].place}{more}: rows may be"
            " refused, or differ: `slackwater schema` says what each causes"
        )


def unreplicated_columns(config: Config, reader: Reader) -> dict[str, tuple[str, ...]]:
    """Replica -> its columns, each as table.column, as its last hello named them.

    Without those that it is not sent.
    """
    hellos, hidden = reader.hellos(), config.hidden_columns
    unsent = {(replica, f"{t}.{c}") for (replica, t), columns in hidden.items() for c in columns}
    names = {
        one.name: tuple(
            name for name in _unreplicated(hellos.get(one.rid)) if (one.name, name) not in unsent
        )
        for one in config.replicas
    }
    return {replica: columns for replica, columns in names.items() if columns}


def unreplicated_warnings(columns: dict[str, tuple[str, ...]]) -> list[str]:
    """A sentence for each of these columns."""
    return [
        f"warning: {replica}: column {name} is not replicated, because it is not configured"
        for replica, names in columns.items()
        for name in names
    ]


def _unreplicated(hello: str | None) -> tuple[str, ...]:
    """Those that a hello names; the hub has checked it when it took it."""
    return tuple(loads(hello).get("unreplicated") or ()) if hello else ()
