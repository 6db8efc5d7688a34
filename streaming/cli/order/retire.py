"""`retire`: take a replica out for good, such as an origin that is dead for ever."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated

import typer

from streaming.cli.appends import appends
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, ReplicaName, opened
from streaming.core.model.command import CommandName
from streaming.core.text.wording import as_count
from streaming.facts.consumers.level import TopicEnds
from streaming.facts.consumers.retirement import Retirement, retirement
from streaming.terminal.output import write_json, write_line, write_sentence

Yes = Annotated[bool, typer.Option("--yes", help="Do it; without it only say what it does.")]


@appends(CommandName.RETIRE, when="with --yes")
def retire(
    replica: ReplicaName,
    *,
    config: ConfigPath = DEFAULT_CONFIG,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Take a replica out for good: what the hub has of it reaches all others, the rest is gone.

    Its topic is not read on, its open transactions end, and its rid leaves the RUV.
    """
    from streaming.cli.command import append_command, queued_text  # noqa: PLC0415  # a refusal does without

    configured, reader = opened(config)
    found = retirement(configured, reader, replica, lambda: TopicEnds().ask(configured))
    number = append_command(reader, CommandName.RETIRE, str(found.rid)) if yes else None
    if as_json:
        write_json({**asdict(found), "command": number and CommandName.RETIRE, "number": number})
        return
    _show(found)
    if number is None:
        write_sentence(f"Nothing is done yet: `slackwater retire {replica} --yes` does it.")
        return
    write_sentence(
        f"{queued_text(CommandName.RETIRE, replica, number)}. Then remove {replica} and its"
        " agreement from the configuration."
    )


def _show(found: Retirement) -> None:
    write_line(f"{found.replica} is {found.state}")
    if found.max_csn:
        seen = datetime.fromtimestamp(found.seen_ms / 1000, UTC)
        write_line(f"  the hub has its changes up to {found.max_csn}")
        write_line(f"  its last record is of {seen:%Y-%m-%d %H:%M:%S} UTC")
    else:
        write_line("  the hub has no change of it")
    if found.unread is None:
        write_sentence(
            f"  how many of its records are not read cannot be said: {found.why_unknown}"
        )
    elif found.unread:
        write_line(f"  {as_count(found.unread, 'record')} in its topic never read: gone")
    if found.open_changes:
        write_line(f"  {as_count(found.open_changes, 'change')} without a commit: gone")
    if found.waiting_changes:
        write_line(f"  {as_count(found.waiting_changes, 'change')} that waited: judged")
    for name, count in found.lacking.items():
        write_line(f"  {name} lacks {as_count(count, 'change')} of it: the hub sends them")
    if not found.lacking:
        write_line("  every other consumer has what the hub has of it")
    write_line("  what it wrote and did not publish is in its database only")
