"""`wait`: until a change, or all that there is now, is acknowledged everywhere."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from streaming.cli.appends import appends
from streaming.cli.exit_codes import ExitCode, cannot_say
from streaming.cli.inputs import DEFAULT_CONFIG, ConfigPath, csn_argument, now, opened
from streaming.core.model.command import CommandName
from streaming.core.model.errors import ConfigError, SourceError
from streaming.facts.consumers.level import TopicEnds
from streaming.facts.matrix.waited_for import (
    WaitedFor,
    doubt_of,
    unread_behind,
    waiting_for_change,
    waiting_for_epoch,
)
from streaming.terminal.output import write_line, write_sentence

POLL_S = 0.2

Csn = Annotated[
    str | None, typer.Argument(metavar="[CSN]", help="The change, as `blame` and `rows` show it.")
]
Now = Annotated[bool, typer.Option("--now", help="All that the topics hold now.")]
Timeout = Annotated[
    float | None,
    typer.Option("--timeout", min=0, metavar="SECONDS", help="Give up then; by default never."),
]


@appends(CommandName.LEVEL, when="once, if somebody is waited for")
@cannot_say()
def wait(
    csn: Csn = None,
    *,
    at_now: Now = False,
    timeout: Timeout = None,
    config: ConfigPath = DEFAULT_CONFIG,
) -> None:
    """Wait until a change, or all that there is now, is acknowledged everywhere; exit 0 then.

    Exit 1 when the time is over, with who is waited for. What an agent has not published yet is in
    no topic, so --now does not wait for it. A replica that is away is waited for too; one that is
    retired is not.
    """
    if at_now == (csn is not None):
        raise ConfigError("give either a CSN or --now")
    ask = _asks_for_all(config) if csn is None else _asks_for_change(csn_argument(csn), config)
    found = _awaited(ask, config, timeout)
    if found.is_over:
        write_line("acknowledged everywhere")
        return
    _show(found)
    raise typer.Exit(ExitCode.NO)


def _awaited(ask: Callable[[], WaitedFor], config: Path, timeout_s: float | None) -> WaitedFor:
    """The answer once it is over, or the last one when the time is."""
    started_s, is_requested, doubt = time.monotonic(), False, None
    while True:
        found = ask()
        if found.is_over:
            return found
        if timeout_s is not None and time.monotonic() - started_s >= timeout_s:
            return found
        if found.by and not is_requested:
            from streaming.cli.command import append_command  # noqa: PLC0415  # only a lag needs it

            append_command(opened(config)[1], CommandName.LEVEL, None)
            is_requested = True
        if found.doubt is not None and doubt is None:
            write_sentence(f"waiting, though {found.doubt}")
        doubt = found.doubt
        time.sleep(POLL_S)


def _asks_for_change(csn: str, path: Path) -> Callable[[], WaitedFor]:
    def ask() -> WaitedFor:
        return waiting_for_change(*opened(path), csn, now().timestamp())

    return ask


def _asks_for_all(path: Path) -> Callable[[], WaitedFor]:
    """Asks for what the topics hold now: first that the hub reads it, then that all have that."""
    configured, _ = opened(path)
    ends = TopicEnds().ask(configured)
    if isinstance(ends, str):
        raise SourceError(ends)
    epoch: int | None = None

    def ask() -> WaitedFor:
        nonlocal epoch
        config, reader = opened(path)
        now_s = now().timestamp()
        if epoch is None:
            unread = unread_behind(reader, ends)
            if unread:
                why = f"the hub has not read {', '.join(unread)}"
                return WaitedFor({}, why, doubt_of(reader, now_s))
            epoch = reader.commit.state.hub_epoch if reader.commit else 0
        return waiting_for_epoch(config, reader, epoch, now_s)

    return ask


def _show(found: WaitedFor) -> None:
    if found.doubt is not None:
        write_sentence(f"cannot say: {found.doubt}")
        return
    if found.hub is not None:
        write_sentence(found.hub)
    for name, state in found.by.items():
        write_sentence(f"not acknowledged by {name}, {state}")
