"""How the columns of one table differ between replicas, and from the configuration."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from streaming.core.model.table import Table
from streaming.core.schema.difference import (
    ABSENT,
    EVERYWHERE,
    SchemaDifference,
    differ,
    names_text,
    there_or_not,
)
from streaming.core.schema.document import DatabaseSchema, IdSource, SchemaColumn, SchemaTable
from streaming.core.schema.limits import limit_difference

Found = Mapping[str, SchemaTable]
"""Replica -> its table."""
Unsent = Mapping[str, frozenset[str]]
"""Replica -> the columns of the table that are not sent to it."""


@dataclass(frozen=True, slots=True)
class ColumnAspect:
    """Something that a column declares: `of` it is compared; `shown` is what people read.

    `is_spelled`: as SQL has it, which is compared between databases of one product only.
    """

    subject: str
    of: Callable[[SchemaColumn], str]
    causes: str
    matters: bool
    shown: Callable[[SchemaColumn], str] | None = None
    is_spelled: bool = False

    def shown_of(self, column: SchemaColumn) -> str:
        """What people read of a column."""
        return (self.shown or self.of)(column)


_ID_SOURCES = {
    None: "given by the application",
    IdSource.LARGEST: "the largest plus one",
    IdSource.LARGEST_EVER: "the largest that ever was plus one",
    IdSource.SEQUENCE: "the next of a sequence",
    IdSource.OWN_SEQUENCE: "the next of a sequence of the replica's own ids",
}

ASPECTS = (
    ColumnAspect(
        "type",
        lambda column: column.storage,
        "one value is stored in two forms, so what compares, sorts or sums the column answers"
        " differently, and a value that one database keeps the other may not",
        matters=True,
        shown=lambda column: f"{column.declared or 'no type'} ({column.storage})",
        is_spelled=True,
    ),
    ColumnAspect(
        "declared type",
        lambda column: f"{column.storage} {column.declared}",
        "the same values are stored alike",
        matters=False,
        shown=lambda column: column.declared or "no type",
        is_spelled=True,
    ),
    ColumnAspect(
        "NOT NULL",
        lambda column: "NOT NULL" if column.not_null else "nulls allowed",
        "a row with a null there is accepted where nulls are allowed and refused elsewhere, and"
        " `slackwater status` lists it as differing",
        matters=True,
    ),
    ColumnAspect(
        "default",
        lambda column: f"DEFAULT {column.default}" if column.default else "no default",
        "an insert that leaves the column out gets another value, depending on where it is made;"
        " every replica then has that value",
        matters=False,
        is_spelled=True,
    ),
    ColumnAspect(
        "generated column",
        lambda column: f"AS {column.generated}" if column.generated else "not generated",
        "each database computes or keeps a value of its own, so the replicas differ in it",
        matters=True,
        is_spelled=True,
    ),
    ColumnAspect(
        "collation",
        lambda column: f"COLLATE {column.collation}" if column.collation else "by bytes",
        "comparing and sorting the column answers differently; the rows are the same",
        matters=False,
    ),
    ColumnAspect(
        "ids",
        lambda column: _ID_SOURCES[column.id_source],
        "a row that is inserted without an id gets it by another rule",
        matters=False,
    ),
)


def column_differences(
    table: Table,
    found: Found,
    alike: Sequence[Found],
    unsent: Unsent,
    limiting: Collection[str],
) -> Iterator[SchemaDifference]:
    """The columns that some replicas lack, and what the others declare differently.

    `alike`: the same tables, those of each product by themselves. A replica may lack what
    is not sent to it. `limiting`: the replicas whose databases can declare a limit.
    """
    names = {name.lower(): name for one in found.values() for name in _names(one)}
    for name in {**{n.lower(): n for n in table.columns}, **names}.values():
        columns = {r: column for r, one in found.items() if (column := one.column(name))}
        yield from _presence(table, name, found, columns, unsent)
        sent = {r: one for r, one in columns.items() if name not in unsent.get(r, ())}
        groups = [{r: sent[r] for r in one if r in sent} for one in alike]
        for aspect in ASPECTS:
            is_apart = aspect.is_spelled or name in table.key  # no key is null, said or not
            for one in groups if is_apart else [sent]:
                yield from _aspect(table, name, aspect, one)
        limit = limit_difference(table, name, sent, found, limiting)
        if limit is not None:
            yield limit


def _names(table: SchemaTable) -> list[str]:
    return [column.name for column in table.columns]


def _presence(
    table: Table,
    name: str,
    found: Found,
    columns: Mapping[str, SchemaColumn],
    unsent: Unsent,
) -> Iterator[SchemaDifference]:
    """What follows where a column is missing, in the configuration or at a replica."""
    is_configured = name in table.columns
    without = [one for one in found if name in unsent.get(one, ())]
    lack = [one for one in found if one not in columns and one not in without]
    subject, at = f"column {name}", there_or_not(found, list(columns))
    required = [one for one, column in columns.items() if column.is_required]
    unfilled = [one for one in required if one in without]
    demanding = [one for one in required if one not in without]
    is_generated = all(one.generated for one in columns.values())
    matters = True
    if unfilled:
        causes = (
            f"it is NOT NULL without a default at {names_text(unfilled)} and not sent there: no row"
            " of another replica could be stored, and its agent does not start"
        )
        remedy = "give it a default there, drop it there, or send it"
    elif is_configured and lack:
        causes = (
            f"it is configured, and rows with a value there wait until {names_text(lack)} has it"
        )
        remedy = "add the column there, or take it out of the configuration"
    elif not is_configured and required:
        causes = (
            "it is NOT NULL without a default and not configured: no row of another replica could"
            f" be stored at {names_text(required)}, and its agent does not start"
        )
        remedy = "give it a default, or add it to the table's columns in the configuration"
    elif lack:
        causes = "it is not configured, so its values stay in the database that has it"
        remedy = "add it at every replica and to the table's columns in the configuration"
        matters = not is_generated
    elif not is_configured and not is_generated:
        causes = (
            "it is not configured, so its values stay where they were written, and the replicas"
            " differ in it"
        )
        remedy = "add it to the table's columns in the configuration if they should not"
        matters = False
    elif is_configured and without and demanding:
        causes = (
            f"it is not sent to {names_text(without)}, and NOT NULL without a default at"
            f" {names_text(demanding)}: a row that is inserted at the former is refused there"
        )
        remedy = "give it a default there, if rows are inserted where it is not sent"
        matters = False
    else:
        return
    yield SchemaDifference(table.name, subject, at, causes, remedy, matters)


def _aspect(
    table: Table, name: str, aspect: ColumnAspect, columns: Mapping[str, SchemaColumn]
) -> Iterator[SchemaDifference]:
    if not differ(aspect.of(one) for one in columns.values()):
        return
    if aspect.subject == "declared type" and any(
        differ(texts)
        for texts in (
            [one.storage for one in columns.values()],
            [one.limit or "" for one in columns.values()],
        )
    ):
        return  # said already
    shown = {replica: aspect.shown_of(one) for replica, one in columns.items()}
    yield SchemaDifference(
        table.name,
        f"column {name}, {aspect.subject}",
        shown,
        aspect.causes,
        EVERYWHERE if aspect.matters else "nothing needs to be done",
        matters=aspect.matters,
    )


def unkept_types(
    table: Table, schemas: Mapping[str, DatabaseSchema], found: Found
) -> Iterator[SchemaDifference]:
    """The configured types whose values a database does not keep."""
    for name, kind in table.columns.items():
        columns = {r: column for r, one in found.items() if (column := one.column(name))}
        wrong = {
            replica: f"{column.declared or 'no type'} ({column.storage})"
            for replica, column in columns.items()
            if kind not in schemas[replica].storages.get(column.storage, (kind,))
        }
        if wrong:
            yield SchemaDifference(
                table.name,
                f"column {name}, configured as {kind}",
                wrong,
                f"the declaration does not keep every {kind}, so the agent of"
                f" {names_text(wrong)} does not start",
                "declare the column otherwise there, or configure another type",
            )
        computed = [r for r, column in columns.items() if column.generated]
        if computed:
            yield SchemaDifference(
                table.name,
                f"column {name}, configured as {kind}",
                {replica: "generated" if replica in computed else "stored" for replica in columns}
                | dict.fromkeys((one for one in found if one not in columns), ABSENT),
                f"nothing can be written to it at {names_text(computed)}, whose agent does not"
                " start",
                "leave it out of the configuration",
            )
