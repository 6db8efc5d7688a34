"""`abort`: end an open transaction whose commit is not expected any more."""

from typing import Annotated

import typer

from checkpoints.reading.reader import Reader
from streaming.cli.appends import appends
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, csn_argument, opened
from streaming.core.model.command import CommandName
from streaming.core.model.errors import HubError, QuestionError

OpenCsn = Annotated[
    str, typer.Argument(metavar="CSN", help="The transaction's prim_csn, or a CSN of it.")
]


@appends(CommandName.ABORT)
def abort(csn: OpenCsn, *, config: ConfigPath = DEFAULT_CONFIG, as_json: AsJson = False) -> None:
    """End an open transaction; its rows are refreshed at its origin."""
    from streaming.cli.command import append_commands  # noqa: PLC0415  # a refusal does without

    csn = csn_argument(csn)
    _, reader = opened(config)
    _refuse_unless_open(reader, csn)
    append_commands(reader, CommandName.ABORT, [csn], None, as_json=as_json)


def _refuse_unless_open(reader: Reader, csn: str) -> None:
    standing = reader.standing_of(csn)
    if "pending" in standing:
        return
    if "waiting" in standing:
        raise HubError(f"{csn} is committed and waits for smaller CSNs: it cannot be aborted")
    if "ended" in standing:
        raise HubError(f"{csn} has ended already: {standing['ended']}")
    if "gone" in standing or _is_judged(reader, csn):
        raise HubError(f"{csn} is judged already: it cannot be aborted")
    raise QuestionError(
        f"{csn} is not an open transaction: `slackwater status` shows the oldest one"
    )


def _is_judged(reader: Reader, csn: str) -> bool:
    found = reader.changelog({"csn": csn, "kind": "change"}, columns=["csn"])
    return bool(found.num_rows)
