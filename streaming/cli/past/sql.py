"""`sql`: a query over all tables as of a hub epoch, a change or a time."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from itertools import chain, count
from math import isfinite
from typing import TYPE_CHECKING, Annotated

import typer

from checkpoints.commit.recorded import BatchMark
from checkpoints.reading.past import PastStore
from streaming.cli.exit_codes import cannot_say
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath
from streaming.cli.past.rows import AsOf, AtMost
from streaming.config.config import Config
from streaming.config.sources.load import load
from streaming.core.model.errors import QuestionError
from streaming.core.replay.span import parse_moment
from streaming.core.text.wording import as_count
from streaming.terminal.output import write_json, write_line, write_table

if TYPE_CHECKING:
    from streaming.replay.sql.answer import SqlAnswer


class SqlEngine(StrEnum):
    """What answers a query."""

    DUCKDB = "duckdb"
    """in this process, in a second"""
    SPARK = "spark"
    """in a JVM, any amount of rows, in Spark's dialect"""

    @property
    def timeout_s(self) -> float:
        """How long a query may take if nobody says it."""
        return 60 if self is SqlEngine.DUCKDB else 600


Text = Annotated[str, typer.Argument(metavar="QUERY", help="A query in the engine's SQL.")]
Engine = Annotated[
    SqlEngine,
    typer.Option("--engine", help="duckdb answers in a second; spark reads any amount of rows."),
]


Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        min=0,
        metavar="SECONDS",
        help="How long the query may take; by default 60, with spark 600.",
    ),
]


def sql(
    text: Text,
    *,
    as_of: AsOf = None,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
    limit: AtMost = 100,
    engine: Engine = SqlEngine.DUCKDB,
    timeout: Timeout = None,
) -> None:
    """Query all tables by SQL, as they stand or as they stood at a moment.

    Every configured table is there under its name, with the columns _author, _hub_epoch and _csn;
    the tables of the hub are there as hub_changelog, hub_conflicts and so on (docs/tables.md), and
    hub_conflicts_by_hour and hub_lag_by_hour. A query reads nothing else.
    """
    from checkpoints.commit.recorded import batch_marks, mark_at  # noqa: PLC0415
    from checkpoints.reading.as_of import travel_to  # noqa: PLC0415  # reading a table takes time to import
    from streaming.facts.history.past_rows import past  # noqa: PLC0415

    with cannot_say():
        _check_text(text)
        configured = load(config)
        moment = None if as_of is None else parse_moment(as_of)
        with past(configured) as store:
            marks = batch_marks(store)
            epoch = travel_to(store, marks, moment)
            last = mark_at(marks, epoch)
            if last is None:
                raise QuestionError("no batch is committed yet: there is nothing to ask about")
            timeout_s = engine.timeout_s if timeout is None else timeout
            names, rows = _answer(engine, configured, store, last, text, limit, timeout_s)
    shown = [[_plain(value) for value in row] for row in rows]
    if as_json:
        keys = _distinct(names)
        write_json({"hub_epoch": epoch, "rows": [dict(zip(keys, r, strict=True)) for r in shown]})
        return
    write_table(names, shown)
    write_line(f"{as_count(len(rows), 'row')} as of hub epoch {epoch}, at most {limit} are shown")


def _check_text(text: str) -> None:
    """QuestionError for bytes that are no UTF-8, which a shell passes on."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise QuestionError(f"the query is no UTF-8, at character {error.start + 1}") from None


def _answer(
    engine: SqlEngine,
    config: Config,
    store: PastStore,
    last: BatchMark,
    text: str,
    limit: int,
    timeout_s: float,
) -> "SqlAnswer":
    """The columns and the first rows; each engine is imported only where it answers."""
    tables = list(config.table_map().values())
    if engine is SqlEngine.DUCKDB:
        from streaming.replay.sql import duckdb_sql  # noqa: PLC0415

        return duckdb_sql.query(store, tables, last, text, limit, timeout_s)
    from streaming.replay.session import own_session  # noqa: PLC0415
    from streaming.replay.sql import spark_sql  # noqa: PLC0415
    from streaming.replay.sql.answer import SqlAnswer, answer_within  # noqa: PLC0415

    with own_session(config, "sql") as spark:

        def answer() -> SqlAnswer:
            found = spark_sql.query(spark, store, tables, last, text)
            return SqlAnswer(tuple(found.columns), [tuple(row) for row in found.take(limit)])

        return answer_within(timeout_s, answer, spark.sparkContext.cancelAllJobs)


def _distinct(names: Sequence[str]) -> list[str]:
    """The names of columns as the names of a JSON object's members: the second n is n_2."""
    found = list[str]()
    for name in names:
        many = (f"{name}_{number}" for number in count(2))
        found.append(next(one for one in chain([name], many) if one not in found))
    return found


def _plain(value: object) -> object:
    """A value as JSON has it; times are ISO 8601 in UTC, bytes are hexadecimal."""
    match value:
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case float() if not isfinite(value):
            return str(value)
        case str() | int() | float() | bool() | None:
            return value
        case bytes():
            return value.hex()
        case dict():
            return {str(name): _plain(one) for name, one in value.items()}
        case list():
            return [_plain(one) for one in value]
        case _:
            return str(value)
