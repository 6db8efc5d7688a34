"""`level`: are all consumers where the hub is? Exit 0: yes."""

import time
from typing import Annotated

import typer

from checkpoints.reader import Reader
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, now, opened
from streaming.cli.output import as_age, write_json, write_line, write_table
from streaming.core.model.command import CommandName
from streaming.facts.lag import HubLevel, lags
from streaming.facts.lag import level as level_of

POLL_S = 0.1

WaitSeconds = Annotated[
    float, typer.Option("--wait", min=0, help="Wait so many seconds for it.", metavar="SECONDS")
]


def level(
    *, config: ConfigPath = DEFAULT_CONFIG, as_json: AsJson = False, wait: WaitSeconds = 0
) -> None:
    """Exit 0 when every consumer has acknowledged all that the hub has; else say who lags.

    A running hub is told to tell lagging consumers at once that they are complete.
    """
    deadline = time.monotonic() + wait
    configured, reader = opened(config)
    found = lags(configured, reader)
    if not all(lag.is_level for lag in found):
        _nudge(reader)
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


def _nudge(reader: Reader) -> None:
    from streaming.cli.command import ask_hub  # noqa: PLC0415  # most often all are level

    ask_hub(reader, CommandName.LEVEL, None, now())


def _show(found: HubLevel) -> None:
    age_s = found.age_s
    when = "no batch is committed yet" if age_s is None else f"last commit {as_age(age_s)}"
    if found.level:
        count = len(found.agreements)
        write_line(f"level: {count} agreements at hub epoch {found.hub_epoch}, {when}")
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
