"""The schema of one replica's database as a document that any agent can write.

It says what the database declares, in words that hold for every database, so that schemas can be
compared before anything runs. It is JSON; what is false, null or empty is left out.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from hashlib import sha256
from typing import Any

from streaming.core.model.errors import ConfigError
from streaming.core.model.foreign_json import loads
from streaming.core.model.table import ColumnType
from streaming.core.model.values import json_text

DOCUMENT_VERSION = 1
DOCUMENT_BYTES = 400_000
"""The most that a published document may have; the tables that do not fit are named in it."""
LEFT_OUT_NAMED = 100
"""How many tables that did not fit are named."""
UNNAMED = "all tables"
"""Stands for the names of tables that did not fit, where the names do not fit either."""


class IdSource(StrEnum):
    """From where a database takes the id of a row that is inserted without one."""

    LARGEST = "largest"
    """the largest id there is plus one: that of a deleted row may be given again"""
    LARGEST_EVER = "largest_ever"
    """the largest id there ever was plus one"""
    SEQUENCE = "sequence"
    """the next id of a sequence, which rows of other replicas do not move on"""
    OWN_SEQUENCE = "own_sequence"
    """the next id of a sequence that was set to keep away from other replicas' ids"""


@dataclass(frozen=True, slots=True)
class SchemaColumn:
    """A column; `storage` names one of the document's storages.

    `limit`: the declaration, where the database refuses or rounds what does not fit it, as
    `numeric(6,2)`. `default` and `generated` are SQL. `collation` None: only equal bytes are equal.
    """

    name: str
    declared: str = ""
    storage: str = ""
    not_null: bool = False
    default: str | None = None
    generated: str | None = None
    collation: str | None = None
    id_source: IdSource | None = None
    limit: str | None = None

    @property
    def is_required(self) -> bool:
        """Return whether an insert without a value for this column fails."""
        is_given = self.default is not None or self.generated is not None or self.id_source
        return self.not_null and not is_given


@dataclass(frozen=True, slots=True)
class SchemaUnique:
    """A primary key, unique constraint or unique index: columns or expressions.

    `collations`: of each of them, "" where only equal bytes are equal. `where`: of a partial one.
    """

    columns: tuple[str, ...]
    collations: tuple[str, ...] = ()
    where: str | None = None

    @property
    def text(self) -> str:
        """The constraint as SQL has it."""
        where = f" WHERE {self.where}" if self.where else ""
        return f"UNIQUE ({', '.join(self.columns)}){where}"


@dataclass(frozen=True, slots=True)
class SchemaReference:
    """A foreign key; `parent`: the columns it refers to, empty: the primary key."""

    columns: tuple[str, ...]
    table: str
    parent: tuple[str, ...] = ()
    on_delete: str = ""
    on_update: str = ""

    @property
    def text(self) -> str:
        """The constraint as SQL has it, without its actions."""
        parent = f" ({', '.join(self.parent)})" if self.parent else ""
        return f"FOREIGN KEY ({', '.join(self.columns)}) REFERENCES {self.table}{parent}"


@dataclass(frozen=True, slots=True)
class SchemaTrigger:
    """A trigger of the user's; `digest`: of its text. `applies`: it fires for applied rows too."""

    name: str
    event: str
    digest: str
    applies: bool = False


@dataclass(frozen=True, slots=True)
class SchemaTable:
    """A table; `options`: such as STRICT."""

    name: str
    columns: tuple[SchemaColumn, ...] = ()
    uniques: tuple[SchemaUnique, ...] = ()
    checks: tuple[str, ...] = ()
    references: tuple[SchemaReference, ...] = ()
    triggers: tuple[SchemaTrigger, ...] = ()
    options: tuple[str, ...] = ()

    def column(self, name: str) -> SchemaColumn | None:
        """The column of this name, in any case."""
        return next((one for one in self.columns if one.name.lower() == name.lower()), None)


@dataclass(frozen=True, slots=True)
class DatabaseSchema:
    """What one database declares of the configured tables.

    `storages`: name -> the types of the configuration whose values such a column keeps.
    `left_out`: the tables that did not fit into the document. `declares_limits`: the database
    refuses or rounds what does not fit a column's declaration.
    """

    replica: str
    database: str
    encoding: str
    tables: tuple[SchemaTable, ...] = ()
    storages: Mapping[str, tuple[ColumnType, ...]] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    declares_limits: bool = False

    @property
    def can_limit(self) -> bool:
        """Return whether it declares limits; a document that does not say so may still have one."""
        columns = (column for one in self.tables for column in one.columns)
        return self.declares_limits or any(column.limit for column in columns)

    def table(self, name: str) -> SchemaTable | None:
        """The table of this name, in any case."""
        return next((one for one in self.tables if one.name.lower() == name.lower()), None)

    @property
    def product(self) -> str:
        """The database without its version: two of one product spell the same alike."""
        return self.database.partition(" ")[0]

    def text(self) -> str:
        """The document, without needless spaces; what is no text in the database is shown as ?."""
        return json_text(self.document()).encode(errors="replace").decode()

    def document(self) -> dict[str, Any]:
        """The document as JSON has it."""
        return {"slackwater_schema": DOCUMENT_VERSION, **_filled(asdict(self))}

    @property
    def digest(self) -> str:
        """By what two documents of one replica are known to be the same."""
        return sha256(self.text().encode()).hexdigest()

    def bounded(self, bytes_max: int = DOCUMENT_BYTES) -> "DatabaseSchema":
        """The document with as many of its first tables as fit; the others are named, if that fits.

        What is left when nothing fits is some hundred bytes.
        """
        counts = range(len(self.tables) + 1)
        too_many = bisect_right(counts, bytes_max, key=lambda n: self._with_first(n).size)
        if not too_many:
            return replace(self, tables=(), left_out=(UNNAMED,))
        return self._with_first(too_many - 1)

    @property
    def size(self) -> int:
        """The bytes of the document."""
        return len(self.text().encode())

    def _with_first(self, count: int) -> "DatabaseSchema":
        """The document with its first tables; of the others some are named."""
        names = [one.name for one in self.tables[count:]]
        more = len(names) - LEFT_OUT_NAMED
        named = names[:LEFT_OUT_NAMED] + ([f"and {more} more"] if more > 0 else [])
        return replace(self, tables=self.tables[:count], left_out=tuple(named))


def _filled(value: Any) -> Any:  # noqa: ANN401  # JSON has no common type
    """JSON without what is false, null or empty."""
    if isinstance(value, dict):
        return {name: _filled(one) for name, one in value.items() if one}
    return [_filled(one) for one in value] if isinstance(value, tuple) else value


def schema_of(text: str | bytes, source: str) -> DatabaseSchema:
    """Read a document; ConfigError names its source and what is wrong.

    The answer of `agent check --json` holds one as `schema`.
    """
    try:
        found = loads(text)
        found = found.get("schema", found)
        version = found["slackwater_schema"]
        if version > DOCUMENT_VERSION:
            raise ConfigError(
                f"{source}: the document is of version {version}, this command knows"
                f" {DOCUMENT_VERSION}: upgrade it"
            )
        return _database(found)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigError(
            f"{source} is no document of a schema: write one with"
            " `slackwater agent check --replica NAME --database FILE --document FILE`"
        ) from error


def _database(found: Mapping[str, Any]) -> DatabaseSchema:
    storages = found.get("storages", {})
    return DatabaseSchema(
        str(found.get("replica", "")),
        str(found.get("database", "")),
        str(found.get("encoding", "")),
        tuple(_table(one) for one in found.get("tables", ())),
        {name: tuple(ColumnType(one) for one in kinds) for name, kinds in storages.items()},
        tuple(map(str, found.get("left_out", ()))),
        bool(found.get("declares_limits", False)),
    )


def _table(found: Mapping[str, Any]) -> SchemaTable:
    return SchemaTable(
        str(found["name"]),
        tuple(_column(one) for one in found.get("columns", ())),
        tuple(
            SchemaUnique(_names(one, "columns"), _names(one, "collations"), one.get("where"))
            for one in found.get("uniques", ())
        ),
        _names(found, "checks"),
        tuple(_reference(one) for one in found.get("references", ())),
        tuple(
            SchemaTrigger(one["name"], one["event"], one["digest"], one.get("applies", False))
            for one in found.get("triggers", ())
        ),
        _names(found, "options"),
    )


def _column(found: Mapping[str, Any]) -> SchemaColumn:
    source = found.get("id_source")
    return SchemaColumn(
        str(found["name"]),
        str(found.get("declared", "")),
        str(found.get("storage", "")),
        bool(found.get("not_null", False)),
        found.get("default"),
        found.get("generated"),
        found.get("collation"),
        None if source is None else IdSource(source),
        found.get("limit"),
    )


def _reference(found: Mapping[str, Any]) -> SchemaReference:
    return SchemaReference(
        _names(found, "columns"),
        str(found["table"]),
        _names(found, "parent"),
        str(found.get("on_delete", "")),
        str(found.get("on_update", "")),
    )


def _names(found: Mapping[str, Any], name: str) -> tuple[str, ...]:
    names: Sequence[object] = found.get(name, ())
    return tuple(map(str, names))
