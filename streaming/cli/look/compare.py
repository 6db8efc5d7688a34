"""`compare`: the rows of two replicas, or of a replica and the hub; exit 0 if they are equal."""

import time
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from checkpoints.reading.reader import open_state
from streaming.cli.appends import appends
from streaming.cli.exit_codes import ExitCode, cannot_say
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, reader_if_any
from streaming.cli.look.repairing import (
    RepairChoice,
    RepairOrder,
    RowRepairs,
    planned_repairs,
    repair_choice,
    show_repair,
    user_name,
)
from streaming.cli.look.rounds import run_rounds
from streaming.compare.lag import lag_of, silence_of
from streaming.compare.report import ReplicaComparison, known_rows
from streaming.compare.rounds import RoundOptions
from streaming.compare.run import Waiting, compared_tables
from streaming.compare.sides import (
    ComparedSide,
    check_filters,
    databases_named,
    in_common,
    opened_side,
    side_named,
    tables_between,
)
from streaming.config.config import Config
from streaming.config.sources.load import load
from streaming.core.model.command import CommandName
from streaming.core.model.errors import QuestionError, StateError
from streaming.core.text.wording import as_count
from streaming.facts.consumers.divergent import divergent_rows
from streaming.terminal.output import (
    write_file,
    write_json,
    write_line,
    write_sentence,
    write_table,
)

First = Annotated[
    str | None,
    typer.Argument(metavar="A", help="`hub`, a replica's name, or the DSN of a database."),
]
Second = Annotated[str | None, typer.Argument(metavar="B", help="The other one, named likewise.")]
Databases = Annotated[
    list[str] | None,
    typer.Option(
        "--database",
        metavar="NAME=DSN",
        help="Where the database of a replica is; can be given repeatedly.",
    ),
]
Tables = Annotated[
    list[str] | None,
    typer.Option("--table", metavar="TABLE", help="Only this table; can be given repeatedly."),
]
Settle = Annotated[
    float | None,
    typer.Option(
        "--settle",
        metavar="SECONDS",
        min=0,
        help="Look again for so long at rows that differ: they may be in flight. By default twice"
        " the lag, at least 10 and at most 600.",
    ),
]
HtmlFile = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Write a report that a browser shows.")
]
AtMost = Annotated[int, typer.Option("--limit", min=1, help="Show at most this many rows.")]
Load = Annotated[
    str | None,
    typer.Option(
        "--load",
        metavar="MODULE:FUNCTION",
        help="As `slackwater agent` takes it: what the schema of a database needs.",
    ),
]
Repair = Annotated[
    bool, typer.Option("--repair", help="Show what would set the rows right; --yes does it.")
]
Source = Annotated[
    str | None,
    typer.Option("--source", metavar="A|B", help="With --repair: the side whose rows are right."),
]
Keys = Annotated[
    list[str] | None,
    typer.Option("--key", help='With --repair and one --table: only this key, like {"id":"1"}.'),
]
Everything = Annotated[bool, typer.Option("--all", help="With --repair: every row that differs.")]
Yes = Annotated[bool, typer.Option("--yes", help="With --repair: do it.")]
Why = Annotated[
    str, typer.Option("--why", metavar="TEXT", help="With --repair --yes: why, for the record.")
]
By = Annotated[
    str, typer.Option("--by", metavar="NAME", help="Who orders it; by default who runs this.")
]
Continuous = Annotated[
    bool,
    typer.Option(
        "--continuous",
        help="Compare each replica of a --database with the hub, round after round, beside a hub;"
        " without one each that has a section `compare`.",
    ),
]
Every = Annotated[
    float | None,
    typer.Option(
        "--every",
        metavar="SECONDS",
        min=0,
        help="With --continuous: begin a round so often; 3600, or as the section `compare` says.",
    ),
]
Rate = Annotated[
    int | None,
    typer.Option(
        "--rate",
        metavar="ROWS",
        min=1,
        help="With --continuous: compare so many rows a second; 20000, or as the section says.",
    ),
]
Rounds = Annotated[
    int,
    typer.Option("--rounds", min=0, help="With --continuous: end after so many; 0: never."),
]


@appends(CommandName.REPAIR, CommandName.PREFER, when="with --repair and --yes")
def compare(
    first: First = None,
    second: Second = None,
    *,
    database: Databases = None,
    config: ConfigPath = DEFAULT_CONFIG,
    table: Tables = None,
    settle: Settle = None,
    load_: Load = None,
    as_json: AsJson = False,
    html: HtmlFile = None,
    limit: AtMost = 100,
    repair: Repair = False,
    source: Source = None,
    key: Keys = None,
    everything: Everything = False,
    yes: Yes = False,
    why: Why = "",
    by: By = "",
    continuous: Continuous = False,
    every: Every = None,
    rate: Rate = None,
    rounds: Rounds = 0,
) -> None:
    """Compare the rows of two replicas, or of a replica and the hub; exit 0 if they are equal.

    Digests of key ranges are computed inside each database, and those that differ are narrowed
    down to rows. A row that differs is looked at again until --settle has passed, and is left out
    only if it has become equal, or was written meanwhile. Exit 1 if rows differ. Nothing is written
    to either side.

    With --repair the rows of --source are right: the hub sends them to the other side, or makes
    changes of its own of them. Choose by --table, by --table and --key, or --all. Without --yes it
    only says what would be done; with it, who ordered it and why is recorded.

    With --continuous neither A nor B is named: each replica of a --database is compared with the
    hub, without one each that has a section `compare`; and `status`, the hub's page and its metrics
    show what the last round found. `slackwater run` does so by itself where there is a section.
    With --rounds the last round of each decides: exit 1 if rows differ, 2 if one could not be.
    """
    if continuous:
        with cannot_say():
            databases = databases_named(database or [])
            options = RoundOptions(settle, every, rate, load_, rounds)
            code = run_rounds(load(config), databases, options, as_json=as_json)
        raise typer.Exit(code)
    with cannot_say():
        configured = load(config)
        databases = databases_named(database or [])
        if first is None or second is None:
            raise QuestionError("say which two are to be compared, or --continuous")
        sides = tuple(side_named(configured, text, databases) for text in (first, second))
        choice = None
        if repair:
            choice = repair_choice(
                (sides[0], sides[1]),
                (first, second),
                source,
                table or [],
                key or [],
                is_all=everything,
                order=RepairOrder(by or user_name(), why, yes),
            )
        found = _compared(configured, (sides[0], sides[1]), table or [], settle, load_)
        repaired = None if choice is None else _repaired(configured, found, choice)
    if html is not None:
        write_file(html, found.page())
    if as_json:
        write_json(found.document() | (repaired.document() if repaired else {}))
    else:
        _show(found, limit)
        if repaired is not None:
            show_repair(repaired, limit)
    if not (found.is_equal or (repaired is not None and repaired.is_ordered)):
        raise typer.Exit(ExitCode.NO)


def _repaired(config: Config, found: ReplicaComparison, choice: RepairChoice) -> RowRepairs:
    """What would be done; with --yes it is ordered."""
    reader = open_state(config.hub.state)
    planned = planned_repairs(config, reader, found, choice)
    if not choice.order.is_given:
        return planned
    from streaming.cli.command import appended  # noqa: PLC0415  # a question does without

    numbers = [
        number
        for command in (CommandName.REPAIR, CommandName.PREFER)
        for number in appended(reader, command, planned.texts(command), planned.seen)
    ]
    return replace(planned, numbers=tuple(numbers))


def _compared(
    config: Config,
    sides: tuple[ComparedSide, ComparedSide],
    named: list[str],
    settle_s: float | None,
    load_: str | None,
) -> ReplicaComparison:
    first, second = sides
    known, both = tables_between(config, first, second), first.tables & second.tables
    if missing := [one for one in named if one not in both]:
        raise QuestionError(
            f"{first.name} and {second.name} do not both have table {missing[0]!r}: use one of"
            f" {', '.join(sorted(both)) or 'none'}"
        )
    wanted = [known[name] for name in known if name in both and (not named or name in named)]
    check_filters(first, second, [table.name for table in wanted])
    pair = in_common(config, first, second, wanted)
    with ExitStack() as stack:
        tables = [
            stack.enter_context(opened_side(config, side, load_, other))
            for side, other in ((pair.first, pair.second), (pair.second, pair.first))
        ]
        replicas = [side.replica for side in sides if side.replica is not None]
        lag_s, silent_s = partial(lag_of, config, replicas), partial(silence_of, config)
        waiting = Waiting(settle_s, time.sleep, time.monotonic, lag_s, silent_s)
        found = compared_tables(pair.tables, tables[0], tables[1], waiting, ignored=pair.ignored)
    left_out = () if named else tuple(sorted((first.tables | second.tables) - both))
    names = first.name, second.name
    return ReplicaComparison(
        *names, tuple(found), _known(config, sides), left_out, pair.lacking_names, pair.archive
    )


def _known(config: Config, sides: tuple[ComparedSide, ComparedSide]) -> dict[tuple[str, str], str]:
    """The rows that are listed as differing at one of these; nobody lists them without a hub."""
    try:
        reader = reader_if_any(config.hub.state)
    except StateError:
        return {}
    replicas = [one.replica for one in sides if one.replica is not None]
    return {} if reader is None else known_rows(divergent_rows(config, reader), replicas)


def _show(found: ReplicaComparison, limit: int) -> None:
    write_table(found.table_heads, found.table_lines())
    if found.left_out:
        write_sentence(
            f"not compared, because only one of them has them: {', '.join(found.left_out)}"
        )
    if found.archive:
        write_sentence(
            f"rows that {found.archive} alone has are no difference, for it keeps what others"
            " delete"
        )
    if found.lacking:
        write_sentence(
            "columns that are not compared, because the database of one of them lacks them:"
            f" {', '.join(found.lacking)}"
        )
    rows = found.rows
    if rows:
        write_line()
        write_table(found.row_heads, found.row_lines(rows[:limit]))
        if len(rows) > limit:
            write_line(f"{limit} of {as_count(len(rows), 'row')}")
    write_sentence(found.conclusion())
