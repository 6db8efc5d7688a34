"""`sql`: a query over all tables as of a hub epoch, a change or a time."""

from typing import Annotated, Any

import typer

from streaming.cli.exit_codes import cannot_say
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath
from streaming.cli.output import as_count, write_json, write_line, write_table
from streaming.cli.past import AsOf, AtMost
from streaming.config.config import load
from streaming.core.replay.span import parse_moment

Text = Annotated[str, typer.Argument(metavar="QUERY", help="A query in Spark SQL.")]


def sql(
    text: Text,
    *,
    as_of: AsOf = None,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
    limit: AtMost = 100,
) -> None:
    """Ask anything of everything, as it stands or as it stood at a moment.

    Every configured table is there under its name, with the columns _author, _epoch and _csn; the
    tables of the hub are there as hub_changelog, hub_conflicts and so on (docs/tables.md), and
    hub_conflicts_by_hour and hub_lag_by_hour.
    """
    from checkpoints.as_of import travel_to  # noqa: PLC0415  # they import Spark
    from checkpoints.recorded import batch_marks  # noqa: PLC0415
    from streaming.facts.past_rows import past  # noqa: PLC0415
    from streaming.replay.session import own_session  # noqa: PLC0415
    from streaming.replay.sql import query  # noqa: PLC0415

    with cannot_say():
        configured = load(config)
        moment = None if as_of is None else parse_moment(as_of)
        with past(configured) as store, own_session(configured, "sql") as spark:
            marks = batch_marks(store)
            epoch = travel_to(store, marks, moment)
            last = [one for one in marks if one.hub_epoch <= epoch][-1]
            tables = list(configured.table_map().values())
            found = query(spark, store, tables, last, text)
            names, rows = found.columns, [row.asDict() for row in found.take(limit)]
    if as_json:
        write_json({"hub_epoch": epoch, "rows": [_plain(row) for row in rows]})
        return
    write_table(names, ([row[name] for name in names] for row in rows))
    write_line(f"{as_count(len(rows), 'row')} as of hub epoch {epoch}, at most {limit} are shown")


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value if isinstance(value, str | int | float | bool | None) else str(value)
        for name, value in row.items()
    }
