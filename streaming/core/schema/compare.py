"""All schemas side by side, and beside the configuration: each difference with what it causes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from streaming.core.model.table import Table
from streaming.core.schema.columns import Found, Unsent, column_differences, unkept_types
from streaming.core.schema.constraints import constraint_differences
from streaming.core.schema.difference import ABSENT, SchemaDifference, differ, names_text
from streaming.core.schema.document import DatabaseSchema
from streaming.core.schema.identifiers import IdRanges, id_ranges

HiddenColumns = Mapping[tuple[str, str], frozenset[str]]
"""(replica, table) -> the columns that are not sent to it."""
NOTHING_HIDDEN: HiddenColumns = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class SchemaComparison:
    """What was compared and what was found; `unknown`: the replicas without a document."""

    replicas: tuple[str, ...]
    unknown: tuple[str, ...]
    differences: tuple[SchemaDifference, ...]
    ids: tuple[IdRanges, ...]

    @property
    def is_good(self) -> bool:
        """Return whether all schemas are known, and no difference matters."""
        return not self.unknown and not any(one.matters for one in self.differences)


def compared(
    schemas: Sequence[DatabaseSchema],
    tables: Sequence[Table],
    rids: Mapping[str, int],
    hidden: HiddenColumns = NOTHING_HIDDEN,
) -> SchemaComparison:
    """Compare the schemas of replicas; `rids`: those of the configuration, by name.

    `hidden`: (replica, table) -> the columns that are not sent to it.
    """
    by_replica = {one.replica: one for one in schemas}
    found = [one for table in tables for one in _of_table(table, by_replica, hidden)]
    return SchemaComparison(
        tuple(by_replica),
        tuple(name for name in rids if name not in by_replica),
        (*_sorted(found), *_encodings(by_replica)),
        tuple(id_ranges(schemas, tables, rids)),
    )


def _sorted(found: Sequence[SchemaDifference]) -> Iterator[SchemaDifference]:
    """What matters first; otherwise as it was found."""
    yield from (one for one in found if one.matters)
    yield from (one for one in found if not one.matters)


def _of_table(
    table: Table, schemas: Mapping[str, DatabaseSchema], hidden: HiddenColumns
) -> Iterator[SchemaDifference]:
    found = {r: of for r, one in schemas.items() if (of := one.table(table.name))}
    cut = [r for r, one in schemas.items() if one.left_out and r not in found]
    lack = [one for one in schemas if one not in found and one not in cut]
    shown = {r: "there" if r in found else "not in its document" for r in schemas}
    if cut:
        yield SchemaDifference(
            table.name,
            "schema",
            shown,
            f"the document of {names_text(cut)} was too large for this table, so nobody knows"
            " whether it is alike",
            "compare files of `slackwater agent check --document`, which are whole",
        )
    if lack:
        yield SchemaDifference(
            table.name,
            "table",
            {r: ABSENT if r in lack else "there" for r in schemas},
            f"it is configured, and the agent of {names_text(lack)} does not start without it",
            "create it there, or take it out of the configuration",
        )
    if found:
        unsent = {replica: hidden.get((replica, table.name), frozenset()) for replica in found}
        yield from unkept_types(table, schemas, _as_sent(found, unsent))
        alike = [*_of_one_product(schemas, found)]
        limiting = _limiting(schemas)
        yield from column_differences(table, found, alike, unsent, limiting)
        yield from constraint_differences(table, found, alike, unsent, limiting)


def _as_sent(found: Found, unsent: Unsent) -> Found:
    """The tables without the columns that are not sent to them."""
    return {
        replica: replace(
            one, columns=tuple(c for c in one.columns if c.name not in unsent[replica])
        )
        for replica, one in found.items()
    }


def _of_one_product(schemas: Mapping[str, DatabaseSchema], found: Found) -> Iterator[Found]:
    """The tables of each product: what SQL spells is compared among those only."""
    for product in dict.fromkeys(schemas[replica].product for replica in found):
        yield {r: one for r, one in found.items() if schemas[r].product == product}


def _limiting(schemas: Mapping[str, DatabaseSchema]) -> frozenset[str]:
    """The replicas of the products that can declare a limit: one document of each says so."""
    products = {one.product for one in schemas.values() if one.can_limit}
    return frozenset(replica for replica, one in schemas.items() if one.product in products)


def _encodings(schemas: Mapping[str, DatabaseSchema]) -> Iterator[SchemaDifference]:
    shown = {replica: one.encoding for replica, one in schemas.items()}
    if differ(shown.values()):
        yield SchemaDifference(
            "",
            "encoding of text",
            shown,
            "text that is compared by bytes sorts differently; the rows are the same",
            "nothing needs to be done",
            matters=False,
        )
