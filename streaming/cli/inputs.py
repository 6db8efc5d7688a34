"""What every command takes: the configuration, the state that it names, the output format."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from checkpoints.query import open_table
from checkpoints.reading.reader import Reader, open_state
from checkpoints.tables import TableName
from streaming.cli.exit_codes import cannot_say
from streaming.config.config import ENV_PREFIX, Config
from streaming.config.sources.load import load
from streaming.core.access.root import StateRoot
from streaming.core.model.csn import Csn, named_csn
from streaming.core.model.errors import QuestionError, StateError
from streaming.terminal.output import write_line

DEFAULT_CONFIG = Path("hub.toml")

ConfigPath = Annotated[
    Path,
    typer.Option(
        "--config", envvar=f"{ENV_PREFIX}CONFIG", help="The configuration.", metavar="FILE"
    ),
]
ReplicaName = Annotated[
    str, typer.Argument(metavar="REPLICA", help="Its name in the configuration.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Limit = Annotated[int, typer.Option("--limit", min=1, help="Show at most this many, the newest.")]

Seen = Annotated[
    int | None,
    typer.Option(
        "--seen", min=0, help="The hub epoch that you base this on; the last one by default."
    ),
]


def opened(path: Path) -> tuple[Config, Reader]:
    """The configuration and the state that it names, as of its last commit.

    Without them nothing can be asked or ordered: the command ends with `NOT_ASKED`.
    """
    with cannot_say():
        config = load(path)
        return config, open_state(config.hub.state)


def reader_if_any(root: StateRoot) -> Reader | None:
    """The state as of its last commit; None: no hub has run yet."""
    return None if open_table(root, TableName.EPOCHS) is None else open_state(root)


def csn_argument(text: str) -> Csn:
    """The CSN that an argument names, in lower case; QuestionError if it names none."""
    csn = named_csn(text)
    if csn is None:
        raise QuestionError(f"{text!r} is no CSN: it has 20 hexadecimal digits")
    return csn


def now() -> datetime:
    """The clock by which ages are shown."""
    return datetime.now(UTC)


def confirm(question: str) -> None:
    """Ask; StateError unless somebody says yes. Ctrl-C, and the end of the input, is no."""
    try:
        is_wanted = typer.confirm(question, default=False)
    except typer.Abort:
        write_line("")  # the question's line ends here
        is_wanted = False
    if not is_wanted:
        raise StateError("nothing is done: it was not confirmed")
