"""`conflicts`: every change that lost a conflict, with its winner; every refused row."""

from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from checkpoints.reading.reader import Reader
from streaming.cli.appends import appends
from streaming.cli.exit_codes import cannot_say
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, Limit, Seen, opened
from streaming.cli.past.replay import From, To
from streaming.config.config import Config
from streaming.core.conflict.judge import Cause, ConflictKind
from streaming.core.model.command import CommandName
from streaming.core.replay.span import parse_moment, span_of
from streaming.core.text.wording import as_count, as_numbered
from streaming.facts.consumers.divergent import DivergenceKind, DivergentRow, differing_text
from streaming.facts.history.avoidable import avoidable as avoidable_conflicts
from streaming.facts.history.conflicts import (
    check_can_win,
    conflicts,
    conflicts_of,
    open_conflict,
    refused_rows,
)
from streaming.facts.history.uncarried import KeptImage, described, uncarried_rows
from streaming.facts.names import author_name, history_of, names_of, rid_of_any
from streaming.terminal.output import (
    write_json,
    write_line,
    write_pairs,
    write_sentence,
    write_table,
)

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Changes that lost, and refused rows."
)

OfTable = Annotated[str | None, typer.Option("--table", help="Of this table.")]
OfKey = Annotated[str | None, typer.Option("--key", help='Of this key: {"id":"1"}.')]
ListedKind = StrEnum(  # type: ignore[misc]  # made of another, and one that is no conflict
    "ListedKind", {one.name: one.value for one in (*ConflictKind, DivergenceKind.UNCARRIED)}
)
OfKind = Annotated[
    ListedKind | None,
    typer.Option(
        "--kind",
        help="Of this kind; `uncarried`: rows that stand at their writer only, for nobody else can"
        " take them.",
    ),
]
OfLoser = Annotated[
    str | None,
    typer.Option("--loser", help="Of this replica's changes, or refused by its database."),
]
OnlyOpen = Annotated[bool, typer.Option("--open", help="Only unresolved ones.")]
OfReplica = Annotated[str | None, typer.Option("--replica", help="Refused by this replica.")]
Everything = Annotated[bool, typer.Option("--all", help="Every refused row.")]
RefusedIds = Annotated[
    list[str] | None, typer.Argument(metavar="[ID...]", help="As listed, like r2-17.")
]
Ids = Annotated[list[str], typer.Argument(metavar="ID...", help="As listed, like 17-3.")]
Which = Annotated[
    str,
    typer.Argument(
        metavar="ID|CSN", help="An id as listed, like 17-3, or the CSN of a loser or winner."
    ),
]


@app.command("list")
@cannot_say()
def list_(
    *,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
    table: OfTable = None,
    key: OfKey = None,
    kind: OfKind = None,
    loser: OfLoser = None,
    only_open: OnlyOpen = False,
    limit: Limit = 100,
) -> None:
    """List conflicts in hub order, the newest last; or, by their kind, the uncarried rows."""
    configured, reader = opened(config)
    rid = None if loser is None else rid_of_any(configured, loser)
    if kind is not None and kind.value == DivergenceKind.UNCARRIED:
        chosen = uncarried_rows(configured, reader, rid=rid, table=table, key=key)
        _show_uncarried(reader, chosen, limit, as_json=as_json)
        return
    resolution = "open" if only_open else None
    equal = {"table": table, "key": key, "kind": kind, "loser_rid": rid, "resolution": resolution}
    found = conflicts(reader, equal, newest=limit)
    if as_json:
        write_json(found)
        return
    names = names_of(configured)
    write_table(
        (
            "conflict",
            "time",
            "kind",
            "table",
            "key",
            "loser",
            "loser epoch",
            "winner",
            "winner hub epoch",
            "MRE",
            "resolution",
        ),
        (
            (
                row["id"],
                _time(row),
                row["kind"],
                row["table"],
                row["key"] or "all rows",
                _change(row, "loser", names),
                _epoch_of_loser(row),
                _change(row, "winner", names),
                row["winner_hub_epoch"],
                row["mre"],
                row["resolution"],
            )
            for row in found
        ),
    )
    _show_refused([row for row in found if row["kind"] == ConflictKind.REFUSED], names)
    total = sum(reader.conflict_counts().values())
    write_line(f"{len(found)} of {as_count(total, 'conflict')}")


@app.command()
@cannot_say()
def show(which: Which, *, config: ConfigPath = DEFAULT_CONFIG, as_json: AsJson = False) -> None:
    """Show a conflict, or those that a change lost or won, with the images."""
    configured, reader = opened(config)
    found = conflicts_of(reader, which)
    if as_json:
        write_json(found)
        return
    for row in found:
        is_refused = row["kind"] == ConflictKind.REFUSED
        write_pairs((_refused_pairs if is_refused else _pairs)(row, configured))
        write_line()


@app.command()
def avoidable(
    *,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
    begin: From = None,
    end: To = None,
) -> None:
    """Show by table how many conflicts of a period would not have been, and by what.

    With half the lag: the loser's replica would have had the row in time. Without the same-epoch
    rule: a reflection of its own epoch would have counted. By column: both changed other columns,
    as their before-images show; where one is missing nobody knows. One conflict may count in
    several columns.
    """
    from checkpoints.commit.recorded import batch_marks, judged_in  # noqa: PLC0415  # it imports Spark
    from checkpoints.store import StateStore  # noqa: PLC0415

    with cannot_say():
        _, reader = opened(config)
        store = StateStore(reader.root)
        first, last = (None if text is None else parse_moment(text) for text in (begin, end))
        span = span_of(batch_marks(store), first, last, lambda csn: judged_in(store, csn))
        found = avoidable_conflicts(reader, span.from_epoch, span.to_epoch)
    if as_json:
        tables = [asdict(one) for one in found]
        write_json({"from_epoch": span.from_epoch, "to_epoch": span.to_epoch, "tables": tables})
        return
    write_table(
        ("table", "conflicts", "half the lag", "no same-epoch rule", "by column", "unknown"),
        (
            (
                one.table,
                one.conflicts,
                one.half_the_lag,
                one.same_epoch,
                one.by_column,
                one.no_before,
            )
            for one in found
        ),
    )
    epochs = as_numbered("hub epoch", span.from_epoch, span.to_epoch)
    write_line(f"conflicts that would not have been, {epochs}")


@app.command()
@appends(CommandName.ACCEPT)
def accept(ids: Ids, *, config: ConfigPath = DEFAULT_CONFIG, as_json: AsJson = False) -> None:
    """Close conflicts: the winner is right."""
    _append_commands(config, CommandName.ACCEPT, ids, None, as_json=as_json)


@app.command()
@appends(CommandName.OVERRIDE)
def override(
    ids: Ids, *, config: ConfigPath = DEFAULT_CONFIG, as_json: AsJson = False, seen: Seen = None
) -> None:
    """Let losers win after all, by changes of the hub that go to every replica.

    They are judged by the hub epoch given with --seen: a later change of the row wins against
    them.
    """
    _append_commands(config, CommandName.OVERRIDE, ids, seen, as_json=as_json)


@app.command()
@appends(CommandName.RETRY)
def retry(
    *,
    ids: RefusedIds = None,
    replica: OfReplica = None,
    table: OfTable = None,
    key: OfKey = None,
    everything: Everything = False,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
) -> None:
    """Send refused rows again, as they stand at the hub.

    Choose them by ID, with --replica, with --table and --key, or take --all. A row that is refused
    again stays listed, with one attempt more.
    """
    from streaming.cli.command import append_commands  # noqa: PLC0415  # reading does without

    if not (ids or replica or table or key or everything):
        raise typer.BadParameter("name conflicts by ID, --replica, --table and --key, or --all")
    configured, reader = opened(config)
    rid = None if replica is None else rid_of_any(configured, replica)
    chosen = refused_rows(reader, ids=ids or (), rid=rid, table=table, key=key)
    names, is_whole = names_of(configured), not (ids or table or key)
    orders = {
        f"r{row['loser_rid']}" if is_whole else row["id"]: author_name(row["loser_rid"], names)
        for row in chosen
    }
    shown = {order: f"all rows that {of} refused" for order, of in orders.items()}
    append_commands(
        reader, CommandName.RETRY, orders, None, as_json=as_json, shown=shown if is_whole else {}
    )


def _append_commands(
    config: Path, command: CommandName, ids: list[str], seen: int | None, *, as_json: bool
) -> None:
    from streaming.cli.command import append_commands  # noqa: PLC0415  # reading does without

    _, reader = opened(config)
    for id_ in ids:
        found = open_conflict(reader, id_)
        if command is CommandName.OVERRIDE:
            check_can_win(found, history_of(reader).masked_tables)
    append_commands(reader, command, ids, seen, as_json=as_json)


def _show_refused(found: list[dict[str, Any]], names: dict[int, str]) -> None:
    if not found:
        return
    write_line()
    write_table(
        ("refused", "by", "code", "attempts", "what its database said"),
        (
            (
                row["id"],
                names.get(row["loser_rid"], row["loser_rid"]),
                row["code"],
                row["attempts"],
                row["text"],
            )
            for row in found
        ),
    )


def _show_uncarried(
    reader: Reader, rows: Sequence[DivergentRow], limit: int, *, as_json: bool
) -> None:
    """The newest of these rows, what each remedy is for, and the commands that end it."""
    found = described(reader, rows[-limit:])
    if as_json:
        write_json([asdict(one) for one in found])
        return
    write_table(
        ("id", "replica", "table", "key", "reason", "since", "image in", "what is wrong"),
        (
            (
                one.id,
                one.replica,
                one.table,
                one.key or ("all rows" if one.table else None),
                one.reason,
                one.since,
                one.image,
                one.detail,
            )
            for one in found
        ),
    )
    write_line(f"{len(found)} of {differing_text(len(rows), rows)}")
    for reason, remedy in dict.fromkeys((one.reason, one.remedy) for one in found):
        write_sentence(f"{reason}: {remedy}")
    if found:
        write_sentence(
            "`slackwater quarantine release ID` makes the record a change of the hub for everybody;"
            " `slackwater quarantine drop ID` sends the row back as the hub has it"
        )
    alone = sum(one.image is KeptImage.DATABASE for one in found)
    if alone:
        write_sentence(
            f"{as_count(alone, 'image')} of these in the database only: a drop overwrites what"
            " stands there, which the agent saves before"
        )


def _time(row: dict[str, Any]) -> object:
    """When the hub judged it; of a row in an older format, when the change was published."""
    return row["at"] or row["time"]


def _change(row: dict[str, Any], part: str, names: dict[int, str]) -> str:
    """The loser's or winner's replica and CSN; a row that no replica wrote has no CSN."""
    rid, csn = row[f"{part}_rid"], row[f"{part}_csn"]
    name = author_name(rid, names)
    return f"{name} {csn}" if csn else name


def _refused_pairs(row: dict[str, Any], config: Config) -> list[tuple[str, object]]:
    names = names_of(config)
    return [
        ("conflict", row["id"]),
        ("kind", f"{row['kind']}: the database of a replica did not take the hub's row"),
        ("row", f"{row['table']} {row['key']}"),
        ("refused by", _change(row, "loser", names)),
        ("  code", row["code"]),
        ("  text", row["text"]),
        ("  attempts", row["attempts"]),
        ("  last time", _time(row)),
        ("refused change", f"{_change(row, 'winner', names)}, hub epoch {row['hub_epoch']}"),
        ("sent again", f"hub epoch {row['sent_epoch']}" if row["sent_epoch"] else None),
        ("resolution", row["resolution"]),
    ]


def _epoch_of_loser(row: dict[str, Any]) -> str:
    """A change has the epoch of its origin, a row that of the hub."""
    if row["loser_epoch"] is None:
        return f"hub epoch {row['loser_hub_epoch']}"
    return f"epoch {row['loser_epoch']}"


def _pairs(row: dict[str, Any], config: Config) -> list[tuple[str, object]]:
    names = names_of(config)
    return [
        ("conflict", row["id"]),
        ("kind", f"{row['kind']}, by {row['function']}; the {row['lost']} lost"),
        ("cause", _CAUSES[Cause(row["cause"])]),
        ("row", f"{row['table']} {row['key']}"),
        ("time", _time(row)),
        ("at", f"hub epoch {row['hub_epoch']}, place {row['place']}, batch {row['batch']}"),
        ("loser", f"{_change(row, 'loser', names)}, {_epoch_of_loser(row)}"),
        ("  before", row["before"]),
        ("  after", row["after"]),
        (
            "the change had seen",
            f"hub epoch {row['mre']} (MRE); {row['reflected_epoch']} reflected",
        ),
        ("  row as judged", f"hub epoch {row['row_epoch']}"),
        ("  realigned at", row["realign_epoch"] or None),
        ("  same epoch only", row["same_epoch_only"]),
        ("winner", _change(row, "winner", names)),
        ("  hub epoch", row["winner_hub_epoch"]),
        ("  row", row["winner_image"] or "deleted"),
        ("transaction", row["prim_csn"]),
        ("resolution", row["resolution"]),
        ("  by", row["resolved_by"]),
    ]


_CAUSES = {
    Cause.AUTHOR: "another replica wrote the row, and this one had not applied that change",
    Cause.REALIGN: "a refresh of the row was in flight",
    Cause.REFUSED: "the replica's database had refused the row as it stood",
    Cause.FLOOR: "the replica had lost state and not recovered it",
    Cause.TRANSACTION: "another row of its transaction was in conflict",
}
