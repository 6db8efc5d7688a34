"""`resume`: send to an agreement again that stopped at a row which its consumer refused."""

from typing import Annotated

import typer

from streaming.cli.appends import appends
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, now, opened
from streaming.core.model.command import CommandName
from streaming.core.model.errors import HubError
from streaming.core.model.statuses import AgreementStatus
from streaming.core.state.agreement_state import AgreementState
from streaming.facts.names import agreement_named, committed
from streaming.terminal.output import write_json, write_line

StoppedAgreement = Annotated[
    str, typer.Argument(metavar="AGREEMENT", help="Its name in the configuration.")
]


@appends(CommandName.RESUME)
def resume(
    agreement: StoppedAgreement, *, config: ConfigPath = DEFAULT_CONFIG, as_json: AsJson = False
) -> None:
    """Send to an agreement again that stopped at a refused row: first what was refused."""
    from streaming.cli.command import append_command  # noqa: PLC0415  # a refusal does without

    configured, reader = opened(config)
    agreement_named(configured, agreement)
    known = committed(reader).agreements.get(agreement, AgreementState(agreement, 0))
    if known.status is not AgreementStatus.REFUSED:
        raise HubError(
            f"{agreement} is {known.status_text}: it has not stopped at a refused row, so there is"
            " nothing to resume"
        )
    number = append_command(reader, CommandName.RESUME, agreement, now())
    if as_json:
        write_json({"command": CommandName.RESUME, "agreement": agreement, "number": number})
        return
    write_line(
        f"resume {agreement}: command {number}; a running hub executes it with its next batch"
    )
