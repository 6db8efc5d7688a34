"""`rows`, `diff`, `blame`: rows as they stood, what changed between, who wrote what."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from streaming.cli.exit_codes import cannot_say
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, opened
from streaming.cli.past.replay import MOMENT
from streaming.config.sources.load import load
from streaming.core.model.errors import QuestionError
from streaming.core.replay.span import parse_moment
from streaming.core.text.wording import as_count, as_numbered
from streaming.core.tracking.ranges import listed_order
from streaming.facts.names import names_of
from streaming.terminal.output import write_json, write_line, write_table

AsOf = Annotated[
    str | None,
    typer.Option(
        "--as-of", metavar=MOMENT, help="At this hub epoch, change or time; the last by default."
    ),
]
Key = Annotated[str, typer.Argument(metavar="KEY", help='A key, like {"id":"1"}, or its value.')]
OptionalKey = Annotated[
    str | None, typer.Argument(metavar="[KEY]", help='A key, like {"id":"1"}, or its value.')
]
OfTable = Annotated[str, typer.Argument(metavar="TABLE", help="Its name in the configuration.")]
Meta = Annotated[bool, typer.Option("--meta", help="With author, hub epoch and CSN.")]
AtMost = Annotated[int, typer.Option("--limit", min=1, help="Show at most this many rows.")]
Begin = Annotated[str, typer.Option("--from", metavar=MOMENT, help="The earlier moment.")]
End = Annotated[
    str | None, typer.Option("--to", metavar=MOMENT, help="The later one; the last by default.")
]
OnlyTable = Annotated[str | None, typer.Option("--table", help="Only of this table.")]


def rows(
    table: OfTable,
    key: OptionalKey = None,
    *,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
    as_of: AsOf = None,
    meta: Meta = False,
    limit: AtMost = 100,
) -> None:
    """Show the rows of a table, as they stand or as they stood at a moment."""
    from streaming.facts.history import past_rows  # noqa: PLC0415  # it imports Spark

    with cannot_say():
        configured = load(config)
        of = past_rows.table_named(configured, table)
        moment = None if as_of is None else parse_moment(as_of)
        wanted = None if key is None else past_rows.key_named(of, key)
        with past_rows.past(configured) as store:
            epoch, rows_then = past_rows.standing_rows(store, table, wanted, moment)
        order = listed_order(of)
        found = sorted(rows_then, key=lambda row: order(row.key))
    if as_json:
        write_json({"hub_epoch": epoch, "rows": [row._asdict() for row in found]})
        return
    names, columns = names_of(configured), list(of.columns)
    about = ("author", "hub epoch", "CSN") if meta else ()
    write_table(
        (*columns, *about),
        (
            (
                *(row.image.get(column) for column in columns),
                *((names.get(row.author, row.author), row.hub_epoch, row.csn) if meta else ()),
            )
            for row in found[:limit]
        ),
    )
    write_line(f"{min(limit, len(found))} of {as_count(len(found), 'row')} at hub epoch {epoch}")


def diff(
    *,
    begin: Begin,
    end: End = None,
    table: OnlyTable = None,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
    limit: AtMost = 100,
) -> None:
    """Show which rows stand otherwise at a later moment, column by column."""
    from streaming.facts.history import past_rows  # noqa: PLC0415  # it imports Spark

    with cannot_say():
        configured = load(config)
        one = None if table is None else past_rows.table_named(configured, table).name
        tables = [one] if one else [t.name for t in configured.tables]
        later = None if end is None else parse_moment(end)
        with past_rows.past(configured) as store:
            first, last, changed = past_rows.changed_rows(store, tables, parse_moment(begin), later)
        order = {name: listed_order(one) for name, one in configured.table_map().items()}
        found = sorted(
            changed, key=lambda row: (tables.index(row.table), order[row.table](row.key))
        )
    if as_json:
        documents = [
            {
                "table": row.table,
                "key": row.key,
                "before": row.before and row.before._asdict(),
                "after": row.after and row.after._asdict(),
            }
            for row in found
        ]
        write_json({"from_epoch": first, "to_epoch": last, "rows": documents})
        return
    names = names_of(configured)
    write_table(
        ("row", "by", "column", "at first", "then"),
        (
            (
                f"{row.table} {row.key}",
                names.get(row.after.author, row.after.author) if row.after else None,
                *columns,
            )
            for row in found[:limit]
            for columns in other_values(
                row.before.image if row.before else {}, row.after.image if row.after else {}
            )
        ),
    )
    shown = min(limit, len(found))
    epochs = as_numbered("hub epoch", first, last)
    write_line(f"{shown} of {as_count(len(found), 'row')} of {epochs}")


def other_values(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """The columns in which two images of a row differ, with both values."""
    names = dict.fromkeys([*before, *after])
    pairs = ((name, before.get(name), after.get(name)) for name in names)
    return [(name, one, other) for name, one, other in pairs if one != other]


def blame(
    table: OfTable, key: Key, *, config: ConfigPath = DEFAULT_CONFIG, as_json: AsJson = False
) -> None:
    """Show by column who wrote what stands in a row."""
    from streaming.facts.history import past_rows  # noqa: PLC0415  # it imports Spark

    with cannot_say():
        configured, reader = opened(config)
        text = past_rows.key_named(past_rows.table_named(configured, table), key)
        found = past_rows.column_authors(reader, table, text)
        if not found:
            raise QuestionError(f"no row {table} {text} stands, or its changes are not kept")
    if as_json:
        write_json([one._asdict() for one in found])
        return
    names = names_of(configured)
    write_table(
        ("column", "value", "by", "app", "hub epoch", "change"),
        (
            (one.column, one.value, names.get(one.rid, one.rid), one.app, one.hub_epoch, one.csn)
            for one in found
        ),
    )


def write_database(sqlite: Path, as_of: str | None, config: ConfigPath, *, as_json: bool) -> None:
    """Write all tables into a new SQLite file, as they stand or stood at a moment; `export`."""
    from checkpoints.commit.recorded import batch_marks  # noqa: PLC0415
    from checkpoints.reading.as_of import rows_as_of, travel_to  # noqa: PLC0415  # they import Spark
    from connectors.databases import kind_of  # noqa: PLC0415
    from streaming.facts.history.past_rows import past  # noqa: PLC0415

    with cannot_say():
        tables = load(config).table_map()
        moment = None if as_of is None else parse_moment(as_of)
        with past(load(config)) as store:
            epoch = travel_to(store, batch_marks(store), moment)
            rows = {
                name: (
                    (row["key"], row["image"])
                    for batch in rows_as_of(store, name, epoch).to_batches()
                    for row in batch.select(["key", "image"]).to_pylist()
                )
                for name in tables
            }
            count = kind_of("sqlite").export(sqlite, list(tables.values()), rows)
    if as_json:
        write_json({"hub_epoch": epoch, "rows": count, "file": sqlite})
        return
    write_line(f"{sqlite}: {as_count(count, 'row')} as of hub epoch {epoch}")
