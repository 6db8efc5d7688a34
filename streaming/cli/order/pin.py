"""`pin`, `unpin`, `pins`: hub epochs whose state stays readable behind the replay window."""

from typing import Annotated

import typer

from checkpoints.times import time_of
from streaming.cli.appends import appends
from streaming.cli.exit_codes import cannot_say
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, opened
from streaming.cli.past.replay import MOMENT
from streaming.core.model.command import CommandName
from streaming.core.model.errors import QuestionError
from streaming.core.replay.pins import Pin, check_pin_name
from streaming.core.replay.span import parse_moment
from streaming.core.text.wording import as_bytes
from streaming.terminal.output import as_time, write_json, write_line, write_table

PinName = Annotated[str, typer.Argument(metavar="NAME", help="The name of the pin.")]
Epoch = Annotated[
    str | None,
    typer.Option("--epoch", metavar=MOMENT, help="Which one to pin; the last by default."),
]


@appends(CommandName.PIN)
def pin(
    name: PinName,
    *,
    epoch: Epoch = None,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
) -> None:
    """Keep the state of a hub epoch readable until `slackwater unpin`.

    It works at once: the hub keeps the files that older versions of `rows` need.
    """
    from streaming.cli.command import append_anew  # noqa: PLC0415
    from streaming.facts.status.pins import pin_of  # noqa: PLC0415  # it imports Spark

    with cannot_say():
        moment = None if epoch is None else parse_moment(epoch)
        configured, reader = opened(config)
        made = pin_of(configured, check_pin_name(name), moment)
        append_anew(reader, CommandName.PIN, made.text())
    if as_json:
        write_json(_document(made))
        return
    write_line(f"{name}: hub epoch {made.hub_epoch} stays readable until `slackwater unpin {name}`")


@appends(CommandName.UNPIN)
def unpin(name: PinName, *, config: ConfigPath = DEFAULT_CONFIG, as_json: AsJson = False) -> None:
    """Release a pinned hub epoch: what only it needs is removed as the replay window says."""
    from streaming.cli.command import append_anew  # noqa: PLC0415
    from streaming.facts.status.pins import pins_there  # noqa: PLC0415  # it imports Spark

    with cannot_say():
        configured, reader = opened(config)
        known = pins_there(configured)
        if name not in known:
            names = f"the pins are {', '.join(known)}" if known else "there are none"
            raise QuestionError(f"there is no pin {name!r}: {names}")
        append_anew(reader, CommandName.UNPIN, name)
    if as_json:
        write_json(_document(known[name]))
        return
    write_line(f"{name}: hub epoch {known[name].hub_epoch} is kept as long as every other")


def pins(*, config: ConfigPath = DEFAULT_CONFIG, as_json: AsJson = False) -> None:
    """List the pins, each with the bytes of files that are kept for readers of the past alone."""
    from streaming.facts.status.pins import listed_pins  # noqa: PLC0415  # it imports Spark

    with cannot_say():
        found = listed_pins(opened(config)[0])
    if as_json:
        write_json([_document(one) | {"bytes": held} for one, held in found])
        return
    write_table(
        ("pin", "hub epoch", "committed", "keeps"),
        (
            (
                one.name,
                one.hub_epoch,
                as_time(time_of(one.at_ms)),
                "nothing: its rows come from the changelog" if held is None else as_bytes(held),
            )
            for one, held in found
        ),
    )
    if not found:
        write_line("no hub epoch is pinned")


def _document(one: Pin) -> dict[str, object]:
    return {"pin": one.name, "hub_epoch": one.hub_epoch, "at": time_of(one.at_ms)}
