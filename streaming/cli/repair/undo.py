"""`undo`: rows of a table as they stood, written back for everybody by the hub."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streaming.cli.appends import appends
from streaming.cli.exit_codes import ExitCode, cannot_say
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, opened
from streaming.cli.look.repairing import user_name
from streaming.cli.past.replay import MOMENT
from streaming.cli.past.rows import AtMost, other_values
from streaming.core.model.change import Op
from streaming.core.model.command import CommandName, app_of
from streaming.core.model.errors import QuestionError
from streaming.core.model.foreign_json import loads
from streaming.core.replay.undo import TouchedRow, UndoneRow, UndoPlan
from streaming.core.text.wording import as_count, as_numbered
from streaming.facts.names import author_name, committed, names_of
from streaming.terminal.output import write_json, write_line, write_sentence, write_table

if TYPE_CHECKING:
    from streaming.facts.history.undo_outcome import UndoOutcome

OfTable = Annotated[str, typer.Option("--table", help="Its name in the configuration.")]
To = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar=MOMENT,
        help="Undo changes that were judged after this hub epoch, change or time.",
    ),
]
Between = Annotated[
    tuple[str, str] | None,
    typer.Option(
        "--written-between",
        metavar=f"{MOMENT} {MOMENT}",
        help="Only those that were judged from the first moment to the second one.",
    ),
]
By = Annotated[
    str | None,
    typer.Option(
        "--by", metavar="REPLICA|APP", help="Only those of this replica, or of this application."
    ),
]
OnlyOp = Annotated[Op | None, typer.Option("--op", help="Only those that did this to a row.")]
Transaction = Annotated[
    str | None,
    typer.Option("--transaction", metavar="CSN", help="Only those of this transaction."),
]
Key = Annotated[
    str | None, typer.Option("--key", help='Only this row, like {"id":"1"}, or its value.')
]
Where = Annotated[
    str | None,
    typer.Option(
        "--where",
        metavar="SQL",
        help="Only rows for which this holds, as they stood; of a row that did not, as it stands.",
    ),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Also rows that other changes have written since.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do it.")]
Why = Annotated[str, typer.Option("--why", metavar="TEXT", help="Why, for the record.")]
Who = Annotated[
    str, typer.Option("--who", metavar="NAME", help="Who orders it; by default who runs this.")
]


WaitSeconds = Annotated[
    float,
    typer.Option(
        "--wait",
        min=0,
        metavar="SECONDS",
        help="With --yes: wait for up to this many seconds until the hub has written the rows.",
    ),
]


@appends(CommandName.UNDO, when="with --yes")
def undo(
    *,
    table: OfTable,
    to: To = None,
    between: Between = None,
    by: By = None,
    op: OnlyOp = None,
    transaction: Transaction = None,
    key: Key = None,
    where: Where = None,
    overwrite: Overwrite = False,
    yes: Yes = False,
    why: Why = "",
    who: Who = "",
    wait: WaitSeconds = 0,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
    limit: AtMost = 100,
) -> None:
    """Write rows of a table as they stood back, for everybody: first what that would do.

    Undone are the changes of the table that were judged after --to, or those of them that
    --written-between, --by, --op and --transaction name; without --to they say how far back to
    look. A row becomes what it was before the first of its changes that is undone; one that did not
    stand then is deleted again. A row that any other change has written since stays and is listed,
    but with --overwrite; one that is written after this command has looked stays in any case.

    Without --yes it only says what would be done. With --yes the hub writes the rows with its next
    batch, in one transaction, whose application is "undo: " and who ordered it; it is undone by
    another undo. More than 100,000 rows are written in several transactions. With --wait it also
    says what came of it. Exit 1 if there is nothing to undo, or with --wait if not all is written.
    """
    with cannot_say():
        configured, reader = opened(config)
        if yes and not why:
            raise QuestionError("--yes needs --why: the reason is recorded with the undo")
        if wait and not yes:
            raise QuestionError("--wait needs --yes: without it nothing is ordered")
        seen = committed(reader).hub_epoch
        from streaming.cli.repair.undo_question import UndoQuestion  # noqa: PLC0415  # imports Arrow

        asked = (table, to, between, by, op, transaction, key, where, overwrite)
        plan = UndoQuestion(*asked, who or user_name(), why).plan(configured, seen)
        numbers = list[int]()
        if yes and plan.rows:
            from streaming.cli.command import appended  # noqa: PLC0415  # a question does without

            parts = plan.parts()
            orders = [replace(plan.order, part=n, parts=parts) for n in range(parts)]
            numbers = appended(reader, CommandName.UNDO, [one.text() for one in orders], seen)
    if not as_json:
        _show(plan, numbers, names_of(configured), limit)
    outcome = _awaited(config, numbers, wait, configured.hub.rid) if numbers and wait else None
    if as_json:
        found = {} if outcome is None else {"outcome": asdict(outcome)}
        write_json(_document(plan, numbers, limit) | found)
    elif outcome is not None:
        for text in outcome.texts():
            write_sentence(text)
    elif numbers and wait:
        write_sentence(f"not written after {wait:g} s; the command stands, and a hub executes it")
    is_done = plan.rows and (not wait or (outcome is not None and outcome.is_whole))
    if not is_done:
        raise typer.Exit(ExitCode.NO)


def _awaited(
    config: Path, numbers: Sequence[int], wait_s: float, hub_rid: int
) -> "UndoOutcome | None":
    """What came of the commands; None: the hub has not taken all of them in time."""
    from checkpoints.store import StateStore  # noqa: PLC0415  # who does not wait does without
    from streaming.cli.taken import taken  # noqa: PLC0415
    from streaming.facts.history.undo_outcome import undo_outcome  # noqa: PLC0415  # imports Arrow

    reader = taken(config, numbers[-1], wait_s)
    return None if reader is None else undo_outcome(StateStore(reader.root), numbers, hub_rid)


def _document(plan: UndoPlan, numbers: Sequence[int], limit: int) -> dict[str, Any]:
    """The undo as JSON; at most so many rows of each kind are in it."""
    return {
        "table": plan.order.table,
        "to_epoch": plan.order.to,
        "seen": plan.seen,
        "rows": len(plan.rows),
        **{op.value: plan.count(op) for op in (Op.INSERT, Op.UPDATE, Op.DELETE)},
        "same": plan.same,
        "kept": len(plan.kept),
        "overwritten": len(plan.overwritten),
        "transactions": plan.parts(),
        "first_rows": [
            {"key": row.key, "now": _values(row.now), "then": _values(row.then)}
            for row in plan.rows[:limit]
        ],
        "first_kept": [_since(row) for row in plan.kept[:limit]],
        "first_overwritten": [_since(row) for row in plan.overwritten[:limit]],
        "numbers": list(numbers),
    }


def _values(image: str | None) -> Mapping[str, Any] | None:
    return None if image is None else loads(image)


def _since(row: TouchedRow) -> dict[str, Any]:
    since = row.since._asdict() if row.since else {}
    names = ("hub_epoch", "csn", "rid", "app")
    return {"key": row.key} | {name: since.get(name) for name in names}


def _show(plan: UndoPlan, numbers: Sequence[int], names: Mapping[int, str], limit: int) -> None:
    if plan.rows:
        lines = (line for row in plan.rows[:limit] for line in _lines(row))
        write_table(("row", "column", "now", "then"), lines)
        write_line()
    _show_written_since("stays", plan.kept, names, limit)
    _show_written_since("is overwritten", plan.overwritten, names, limit)
    for text in _conclusion(plan):
        write_sentence(text)
    if numbers:
        ordered = as_numbered("command", numbers[0], numbers[-1])
        write_sentence(
            f"ordered: {ordered}; a running hub executes each with a batch of its own, as a"
            f" transaction of application {app_of('undo', plan.order.who)!r}"
        )
    elif plan.rows:
        write_sentence("nothing is done yet: add --yes and --why TEXT")


def _lines(row: UndoneRow) -> Iterator[tuple[str, str, Any, Any]]:
    for column, now, then in other_values(_values(row.now) or {}, _values(row.then) or {}):
        yield row.key, column, now, then


def _show_written_since(
    what: str, rows: Sequence[TouchedRow], names: Mapping[int, str], limit: int
) -> None:
    if not rows:
        return
    found = [(row.key, row.since) for row in rows[:limit] if row.since is not None]
    write_table(
        (f"{what}, written since", "by", "app", "hub epoch", "change"),
        (
            (key, author_name(since.rid, names), since.app, since.hub_epoch, since.csn)
            for key, since in found
        ),
    )
    write_line()


def _conclusion(plan: UndoPlan) -> Iterator[str]:
    counts = {op: plan.count(op) for op in (Op.INSERT, Op.UPDATE, Op.DELETE)}
    back = as_count(len(plan.rows), "row")
    yield (
        f"{back} of {plan.order.table} as they stood: {counts[Op.INSERT]} inserted again,"
        f" {counts[Op.UPDATE]} set back, {counts[Op.DELETE]} deleted again"
    )
    if plan.same:
        yield f"{as_count(plan.same, 'row')} of the selection already stand so"
    if plan.kept:
        yield f"{as_count(len(plan.kept), 'row')} written since stay (--overwrite)"
    if plan.overwritten:
        yield f"{as_count(len(plan.overwritten), 'row')} of them were written since"
    if plan.parts() > 1:
        yield f"they are written in {plan.parts()} transactions, one after another"
