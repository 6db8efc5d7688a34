"""`local`: rows that were written at one replica only, and that an operator accepts as they are."""

from dataclasses import asdict
from typing import Annotated

import typer

from streaming.cli.appends import appends
from streaming.cli.exit_codes import cannot_say
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, ReplicaName, opened
from streaming.cli.look.repairing import user_name
from streaming.core.model.command import CommandName
from streaming.facts.consumers.compared import recorded_rounds
from streaming.facts.status.local_writes import accepted_writes, local_tables
from streaming.terminal.output import as_time, write_json, write_line, write_table

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Writes that stayed at one replica."
)

OfTables = Annotated[
    list[str] | None,
    typer.Option("--table", metavar="TABLE", help="Only this table; may be repeated."),
]
Why = Annotated[str, typer.Option("--why", metavar="TEXT", help="Why, for the record.")]
Who = Annotated[
    str, typer.Option("--who", metavar="NAME", help="Who accepts them; by default who runs this.")
]


@app.command("list")
@cannot_say()
def list_(*, config: ConfigPath = DEFAULT_CONFIG, as_json: AsJson = False) -> None:
    """List the tables with rows that were written at one replica only.

    A table is listed until a round of a continuous comparison finds no difference in it, or
    somebody accepts the rows as they are.
    """
    configured, reader = opened(config)
    found = local_tables(configured, reader, recorded_rounds(reader))
    if as_json:
        write_json([asdict(one) for one in found])
        return
    write_table(
        ("replica", "table", "rows", "last at"),
        ((one.replica, one.table, one.rows, as_time(one.last_at)) for one in found),
    )
    if not found:
        write_line("no replica has told of writes that stayed there")


@app.command()
@cannot_say()
@appends(CommandName.ACCEPT_LOCAL)
def accept(
    replica: ReplicaName,
    *,
    why: Why,
    table: OfTables = None,
    who: Who = "",
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
) -> None:
    """Leave rows as they were written at one replica: `status` names their tables no more.

    What is written there so later is named again. No row is changed, and a comparison finds what
    differs as before.
    """
    from streaming.cli.command import append_anew  # noqa: PLC0415  # a list does without

    configured, reader = opened(config)
    rounds, who = recorded_rounds(reader), who or user_name()
    order = accepted_writes(configured, reader, rounds, replica, table or (), who, why)
    append_anew(reader, CommandName.ACCEPT_LOCAL, order.text())
    if as_json:
        write_json(asdict(order))
    else:
        write_line(f"{replica}: local writes are accepted of {', '.join(order.tables)}")
