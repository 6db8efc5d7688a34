"""`pause`: send nothing more to a consumer until an operator orders a resync."""

from typing import Annotated

import typer

from streaming.cli.appends import appends
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, now, opened
from streaming.core.model.command import CommandName
from streaming.core.model.errors import HubError
from streaming.core.model.statuses import AgreementStatus, AwayReason
from streaming.core.state.agreement_state import AgreementState
from streaming.facts.consumers.resync import orderable
from streaming.facts.names import agreement_named
from streaming.terminal.output import write_json, write_line

PausedAgreement = Annotated[
    str, typer.Argument(metavar="AGREEMENT", help="Its name in the configuration.")
]


@appends(CommandName.PAUSE)
def pause(
    agreement: PausedAgreement, *, config: ConfigPath = DEFAULT_CONFIG, as_json: AsJson = False
) -> None:
    """Send nothing more to a consumer; what it writes still reaches the others.

    `slackwater resync` ends the pause: it brings the last version of each row that it lacks.
    """
    from streaming.cli.command import append_command  # noqa: PLC0415  # a refusal does without

    configured, reader = opened(config)
    one = agreement_named(configured, agreement)
    _check(orderable(reader, one))
    number = append_command(reader, CommandName.PAUSE, agreement, now())
    if as_json:
        write_json({"command": CommandName.PAUSE, "agreement": agreement, "number": number})
        return
    write_line(
        f"pause {agreement}: command {number}; a running hub executes it with its next batch"
    )
    write_line(f"then {one.consumer} is sent nothing until `slackwater resync {agreement}`")


def _check(known: AgreementState) -> None:
    """HubError if nothing is sent to the consumer anyway."""
    if known.status is AgreementStatus.REFUSED:
        raise HubError(
            f"{known.name} is {known.status_text}: it is sent nothing until `slackwater resume`"
        )
    if known.detail == AwayReason.PAUSED:
        raise HubError(f"{known.name} is paused already: `slackwater resync {known.name}` ends it")
