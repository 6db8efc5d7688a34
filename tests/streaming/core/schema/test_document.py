"""The document of a schema: read back as written, bounded, refused with a sentence."""

from dataclasses import replace

import pytest

from streaming.core.model.errors import ConfigError
from streaming.core.model.table import ColumnType
from streaming.core.schema.document import (
    LEFT_OUT_NAMED,
    UNNAMED,
    DatabaseSchema,
    IdSource,
    SchemaColumn,
    SchemaReference,
    SchemaTable,
    SchemaTrigger,
    SchemaUnique,
    schema_of,
)

WHOLE = DatabaseSchema(
    "berlin",
    "SQLite 3.40",
    "UTF-8",
    (
        SchemaTable(
            "t",
            (
                SchemaColumn("id", "INTEGER", "INTEGER", id_source=IdSource.LARGEST_EVER),
                SchemaColumn("ü", "TEXT", "TEXT", not_null=True, default="'x'", collation="NOCASE"),
                SchemaColumn("g", "INT", "INTEGER", generated="(id * 2)"),
                SchemaColumn("p", "numeric(6,2)", "numeric", limit="numeric(6,2)"),
            ),
            (SchemaUnique(("id",), ("",)), SchemaUnique(("ü",), ("NOCASE",), "id > 0")),
            ("(id > 0)",),
            (SchemaReference(("id",), "p", ("key",), "CASCADE", "NO ACTION"),),
            (SchemaTrigger("mine", "AFTER INSERT", "0123", applies=True),),
            ("STRICT",),
        ),
        SchemaTable("u"),
    ),
    {"INTEGER": (ColumnType.INT32, ColumnType.INT64)},
    declares_limits=True,
)


def test_a_document_is_read_as_it_was_written() -> None:
    """What is false or null is left out, and is back."""
    assert schema_of(WHOLE.text(), "x") == WHOLE
    assert schema_of(f'{{"is_good": true, "schema": {WHOLE.text()}}}', "x") == WHOLE
    assert ":null" not in WHOLE.text()


def test_the_digest_changes_with_the_schema_only() -> None:
    """By it an agent knows that there is nothing new to say."""
    assert schema_of(WHOLE.text(), "x").digest == WHOLE.digest
    assert replace(WHOLE, encoding="UTF-16le").digest != WHOLE.digest


@pytest.mark.parametrize("tables", [1, 50, 300])
def test_a_document_is_bounded_and_says_what_it_left_out(tables: int) -> None:
    """A record of any size would not get into its topic."""
    names = [f"table_{number:04}" for number in range(tables)]
    wide = tuple(SchemaColumn(f"column_{n}", "TEXT", "TEXT") for n in range(20))
    big = replace(WHOLE, tables=tuple(SchemaTable(name, wide) for name in names))

    found = big.bounded(20_000)

    kept = [one.name for one in found.tables]
    assert found.size <= 20_000
    assert kept == names[: len(kept)]
    assert list(found.left_out[:LEFT_OUT_NAMED]) == names[len(kept) :][:LEFT_OUT_NAMED]
    assert (not found.left_out) == (tables == 1)
    assert found.left_out[LEFT_OUT_NAMED:] == (
        (f"and {tables - len(kept) - LEFT_OUT_NAMED} more",) if tables == 300 else ()
    )


def test_where_no_name_fits_only_that_is_said() -> None:
    """What cannot be told is still told as unknown, not as missing."""
    tables = tuple(SchemaTable("t" * 500 + str(number)) for number in range(3))

    found = replace(WHOLE, tables=tables).bounded(400)

    assert (found.tables, found.left_out) == ((), (UNNAMED,))
    assert found.size <= 400


def test_what_is_no_text_is_shown_as_one() -> None:
    """A lone surrogate, which bytes that are no UTF-8 become, has no place on the wire."""
    odd = replace(WHOLE, tables=(SchemaTable("t", checks=("x <> '\udcff'",)),))

    assert "x <> '?'" in odd.text()
    assert schema_of(odd.text(), "x").digest == odd.digest


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '"x"',
        '{"slackwater_schema":1,"tables":[{}]}',
        '{"slackwater_schema":"1"}',
    ],
)
def test_another_file_is_refused_with_what_to_do(text: str) -> None:
    """A wrong file is no difference."""
    with pytest.raises(ConfigError, match=r"a\.json is no document of a schema: write one with"):
        schema_of(text, "a.json")


def test_a_document_of_a_later_version_is_refused() -> None:
    """What it says may not be what is read."""
    with pytest.raises(ConfigError, match="of version 2, this command knows 1: upgrade"):
        schema_of('{"slackwater_schema":2}', "a.json")
