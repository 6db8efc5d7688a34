"""`export`: a SQLite database as it was at a hub epoch, a change or a time."""

from pathlib import Path
from typing import Annotated

import typer

from streaming.cli.exit_codes import cannot_say
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath
from streaming.cli.past.rows import AsOf
from streaming.config.sources.load import load
from streaming.core.replay.span import parse_moment
from streaming.core.text.wording import as_count
from streaming.terminal.output import write_json, write_line

File = Annotated[
    Path, typer.Option("--sqlite", metavar="FILE", help="The file to make; it must not be there.")
]


def export(
    sqlite: File,
    *,
    as_of: AsOf = None,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
) -> None:
    """Write all tables into a new SQLite file, as they stand or as they stood at a moment.

    It is an ordinary database, and no replica.
    """
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
