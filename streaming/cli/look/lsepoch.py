"""`lsepoch`: the epoch number matrix, in the layout of ClearCase MultiSite."""

from dataclasses import asdict
from typing import Annotated, Any

import typer

from streaming.cli.exit_codes import cannot_say
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, opened
from streaming.cli.past.rows import AsOf
from streaming.core.model.errors import ConfigError
from streaming.core.replay.span import parse_moment
from streaming.core.text.wording import as_range
from streaming.facts.matrix.as_of import reader_as_of
from streaming.facts.matrix.rows import Matrix, MatrixRow, Word, matrix
from streaming.terminal.output import write_json, write_line

RowName = Annotated[
    str | None,
    typer.Argument(metavar="[NAME]", help="Only the row of this replica, or of the hub."),
]
At = Annotated[
    str | None,
    typer.Option(
        "--at", metavar="NAME", help="The row of this replica by its own word, as it sees itself."
    ),
]
Actual = Annotated[
    bool, typer.Option("--actual", help="By the replicas' own words instead of the estimates.")
]


@cannot_say()
def lsepoch(
    name: RowName = None,
    *,
    at: At = None,
    actual: Actual = False,
    as_of: AsOf = None,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
) -> None:
    """Show the epoch number matrix: who has how many changes of whom.

    The hub's own row is fact. The row of a replica is an estimate, raised when something is sent to
    it; --actual shows what it has acknowledged. Where a row is behind the hub's own, the numbers
    that are lacking stand behind the origin's name.
    """
    configured, reader = opened(config)
    if as_of is not None:
        reader = reader_as_of(reader, parse_moment(as_of))
    if at is not None and name is not None:
        raise ConfigError("--at names the row: leave the other name out")
    wanted, word = at or name, Word.ACTUAL if actual or at else Word.ESTIMATE
    found = matrix(configured, reader, word)
    row = None if wanted is None else found.row_of(wanted)
    if wanted is not None and row is None:
        known = ", ".join(one.replica for one in found.rows)
        raise ConfigError(f"the matrix has no row {wanted!r}: use one of {known}")
    rows = found.rows if row is None else (row,)
    if as_json:
        write_json(_document(found, rows))
        return
    write_line(f'For hub "{found.hub}":')
    for one in rows:
        _show(found, one)


def _show(found: Matrix, row: MatrixRow) -> None:
    host = f" (@ {row.host})" if row.host else ""
    what = "Actual oplog IDs" if row.word is Word.ACTUAL else "Oplog IDs"
    elsewhere = ", which reads the updates of another hub" if row.is_elsewhere else ""
    write_line(f'{what} for row "{row.replica}"{host}{elsewhere}:')
    cells = [f" oid:{one.oid}={row.numbers[one.name]}" for one in found.origins]
    width = max(map(len, cells), default=0)
    lacking = found.lacking(row)
    for one, cell in zip(found.origins, cells, strict=True):
        numbers = lacking.get(one.name)
        behind = f"  lacks {as_range(*numbers)}" if numbers else ""
        write_line(f"{cell:<{width}}    ({one.name}){behind}")


def _document(found: Matrix, rows: tuple[MatrixRow, ...]) -> dict[str, Any]:
    return {
        "hub": found.hub,
        "origins": [asdict(one) for one in found.origins],
        "rows": [
            {
                **asdict(row),
                "lacks": found.lacking(row),
            }
            for row in rows
        ],
    }
