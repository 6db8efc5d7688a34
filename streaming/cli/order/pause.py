"""`pause` and `resume`: send nothing more to a consumer, or send again after a refused row."""

from typing import Annotated

import typer

from streaming.cli.appends import appends
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, opened
from streaming.core.model.command import CommandName
from streaming.core.model.errors import HubError
from streaming.core.model.statuses import AgreementStatus, AwayReason
from streaming.core.state.agreement_state import AgreementState
from streaming.facts.consumers.resync import orderable
from streaming.facts.names import agreement_named, committed
from streaming.terminal.output import write_line

AgreementName = Annotated[
    str, typer.Argument(metavar="AGREEMENT", help="Its name in the configuration.")
]


@appends(CommandName.PAUSE)
def pause(
    agreement: AgreementName, *, config: ConfigPath = DEFAULT_CONFIG, as_json: AsJson = False
) -> None:
    """Send nothing more to a consumer; what it writes still reaches the others.

    `slackwater resync` ends the pause: it brings the last version of each row that it lacks.
    """
    from streaming.cli.command import append_named  # noqa: PLC0415  # a refusal does without

    configured, reader = opened(config)
    one = agreement_named(configured, agreement)
    _check(orderable(reader, one))
    append_named(reader, CommandName.PAUSE, agreement, agreement, "agreement", as_json=as_json)
    if not as_json:
        write_line(f"then {one.consumer} is sent nothing until `slackwater resync {agreement}`")


def _check(known: AgreementState) -> None:
    """HubError if nothing is sent to the consumer anyway."""
    if known.status is AgreementStatus.REFUSED:
        raise HubError(
            f"{known.name} is {known.status_text}: it is sent nothing until `slackwater resume`"
        )
    if known.detail == AwayReason.PAUSED:
        raise HubError(f"{known.name} is paused already: `slackwater resync {known.name}` ends it")


AtOnce = Annotated[
    bool,
    typer.Option(
        "--now", help="Send at once, this time, what waits by the agreement's delay, or a copy."
    ),
]


@appends(CommandName.RESUME, CommandName.SEND_NOW)
def resume(
    agreement: AgreementName,
    *,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
    at_once: AtOnce = False,
) -> None:
    """Send to an agreement again that stopped at a refused row: first what was refused.

    With --now it lets go what a delayed agreement (`delay_s`) holds back: all that is committed
    when a batch takes the command, once. If the consumer needs a copy, that begins.
    """
    from streaming.cli.command import append_named  # noqa: PLC0415  # a refusal does without

    configured, reader = opened(config)
    one = agreement_named(configured, agreement)
    if at_once:
        if not one.delay_s:
            raise HubError(f"{agreement} is not delayed, so nothing waits that could be sent now")
        orderable(reader, one)
        name = CommandName.SEND_NOW
        append_named(reader, name, agreement, agreement, "agreement", as_json=as_json)
        return
    known = committed(reader).agreements.get(agreement, AgreementState(agreement, 0))
    if known.status is not AgreementStatus.REFUSED:
        raise HubError(
            f"{agreement} is {known.status_text}: it has not stopped at a refused row, so there is"
            " nothing to resume"
        )
    append_named(reader, CommandName.RESUME, agreement, agreement, "agreement", as_json=as_json)
