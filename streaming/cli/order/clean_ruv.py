"""`clean-ruv`: take the rid of a replica that is not configured any more out of the RUV."""

from dataclasses import asdict
from typing import Annotated

import typer

from streaming.cli.appends import appends
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, now, opened
from streaming.core.model.command import CommandName
from streaming.core.text.wording import as_count
from streaming.facts.consumers.cleaning import UnconfiguredRid, readmission, unconfigured_rid
from streaming.facts.consumers.level import TopicEnds
from streaming.facts.names import names_ever
from streaming.terminal.output import write_json, write_line, write_sentence

Rid = Annotated[int, typer.Argument(metavar="RID", help="Its rid, as `slackwater ruv` shows it.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do it; without it only say what it does.")]
Readmit = Annotated[
    bool, typer.Option("--readmit", help="Let a new replica have a rid that was taken out.")
]


@appends(CommandName.RETIRE, CommandName.READMIT, when="with --yes")
def clean_ruv(
    rid: Rid,
    *,
    readmit: Readmit = False,
    config: ConfigPath = DEFAULT_CONFIG,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Take a rid out of the RUV whose replica is configured no more, or let a new one have it.

    What the hub has of it stays, and reaches all others first. A replica that is configured is
    taken out by `slackwater retire`.
    """
    from streaming.cli.command import append_command, queued_text  # noqa: PLC0415  # a refusal does without

    configured, reader = opened(config)
    names, now_ms = names_ever(configured, reader), round(now().timestamp() * 1_000)
    if readmit:
        ends = TopicEnds()
        order = readmission(configured, reader, rid, names, now_ms, lambda: ends.ask(configured))
        facts, name, argument = asdict(order), CommandName.READMIT, order.text()
        lines = [
            f"{names[rid]} gets rid {rid} as a new replica",
            f"  its topic is read from offset {order.offset} on",
            "  what it writes is concurrent with all rows until it has a full copy of them",
        ]
    else:
        ends = TopicEnds()
        found = unconfigured_rid(
            configured, reader, rid, names, now_ms, lambda name: ends.ask(configured, name)
        )
        facts, name, argument = asdict(found), CommandName.RETIRE, str(rid)
        lines = _lines(found)
    number = append_command(reader, name, argument) if yes else None
    if as_json:
        write_json({**facts, "command": number and name, "number": number})
        return
    for line in lines:
        write_line(line)
    if number is None:
        flag = " --readmit" if readmit else ""
        write_sentence(f"Nothing is done yet: `slackwater clean-ruv {rid}{flag} --yes` does it.")
        return
    write_sentence(f"{queued_text(name, str(rid), number)}.")


def _lines(found: UnconfiguredRid) -> list[str]:
    lines = [f"rid {found.rid} was {found.name}, which is configured no more"]
    known = found.max_csn and f"the hub has its changes up to {found.max_csn}: they stay"
    lines.append(f"  {known or 'the hub has no change of it'}")
    if found.unread is None:
        lines.append(f"  how many of its records are not read cannot be said: {found.why_unknown}")
    elif found.unread:
        lines.append(
            f"  {as_count(found.unread, 'record')} in its topic never read: what they hold is in"
            " its database only"
        )
    if found.open_changes:
        lines.append(f"  {as_count(found.open_changes, 'change')} of it did not become eligible")
    waits = ", ".join(found.waits_for)
    lines.append(f"  it leaves the RUV once {waits} have all of that" if waits else "")
    lines.append("  nothing more of it is taken, also if it is configured again")
    return [line for line in lines if line]
