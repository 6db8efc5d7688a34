"""`abort`: end an open transaction whose commit nobody waits for any more."""

from typing import Annotated

import typer

from checkpoints.reader import Reader
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, opened
from streaming.core.model.command import CommandName
from streaming.core.model.csn import parse
from streaming.core.model.errors import CsnError, HubError

OpenCsn = Annotated[
    str, typer.Argument(metavar="CSN", help="The transaction's prim_csn, or a CSN of it.")
]


def abort(csn: OpenCsn, *, config: ConfigPath = DEFAULT_CONFIG, as_json: AsJson = False) -> None:
    """Ask the hub to end an open transaction; its rows are refreshed at its origin."""
    from streaming.cli.command import ask_all  # noqa: PLC0415  # it imports what a refusal does not

    try:
        parse(csn)
    except CsnError as error:
        raise typer.BadParameter(str(error)) from None
    _, reader = opened(config)
    _refuse_unless_open(reader, csn)
    ask_all(reader, CommandName.ABORT, [csn], None, as_json=as_json)


def _refuse_unless_open(reader: Reader, csn: str) -> None:
    standing = reader.standing_of(csn)
    if "pending" in standing:
        return
    if "waiting" in standing:
        raise HubError(f"{csn} is committed and waits for what is below it: it holds")
    if "ended" in standing:
        raise HubError(f"{csn} was ended already: {standing['ended']}")
    if "gone" in standing or _is_judged(reader, csn):
        raise HubError(f"{csn} is judged already: it holds")
    raise HubError(f"{csn} is not open here: `slackwater status` shows the oldest that is")


def _is_judged(reader: Reader, csn: str) -> bool:
    found = reader.changelog({"csn": csn, "kind": "change"}, columns=["csn"])
    return bool(found.num_rows)
