"""`level`: whether all consumers have everything; exit 0 if so."""

import time
from typing import Annotated

import typer

from checkpoints.reader import Reader
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, now, opened
from streaming.cli.output import as_age, as_count, write_json, write_line, write_table
from streaming.core.model.command import CommandName
from streaming.facts.lag import HubLevel, lags
from streaming.facts.lag import level as level_of

POLL_S = 0.1

WaitSeconds = Annotated[
    float,
    typer.Option(
        "--wait", min=0, help="Wait for it for up to this many seconds.", metavar="SECONDS"
    ),
]


def level(
    *, config: ConfigPath = DEFAULT_CONFIG, as_json: AsJson = False, wait: WaitSeconds = 0
) -> None:
    """Exit 0 when every consumer has acknowledged all that the hub has; otherwise list who lags.

    A running hub then sends lagging consumers their completeness at once.
    """
    deadline = time.monotonic() + wait
    configured, reader = opened(config)
    found = lags(configured, reader)
    if not all(lag.is_level for lag in found):
        _request_covers(reader)
    while not all(lag.is_level for lag in found) and time.monotonic() < deadline:
        time.sleep(POLL_S)
        configured, reader = opened(config)
        found = lags(configured, reader)
    answer = level_of(configured, reader, found, now().timestamp())
    if as_json:
        write_json(answer.document())
    else:
        _show(answer)
    if not answer.level:
        raise typer.Exit(1)


def _request_covers(reader: Reader) -> None:
    from streaming.cli.command import append_command  # noqa: PLC0415  # not needed when all are level

    append_command(reader, CommandName.LEVEL, None, now())


def _show(found: HubLevel) -> None:
    age_s = found.age_s
    when = "no batch is committed yet" if age_s is None else f"last commit {as_age(age_s)}"
    if found.level:
        agreements = as_count(len(found.agreements), "agreement")
        write_line(f"level: {agreements} at hub epoch {found.hub_epoch}, {when}")
        return
    write_line(f"not level: hub epoch {found.hub_epoch}, {when}")
    write_table(
        ("agreement", "consumer", "state", "acked", "lag", "lacks changes of"),
        (
            (
                one.name,
                one.consumer,
                one.state,
                one.acked_covers,
                one.lag_epochs,
                ", ".join(one.lacking),
            )
            for one in found.agreements
            if not one.level
        ),
    )
