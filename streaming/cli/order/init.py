"""`init`: fill a new, empty replica with the rows of the hub."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated

import typer

from streaming.cli.appends import appends
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, ReplicaName, opened
from streaming.config.config import Config
from streaming.core.model.command import CommandName, ResyncOrder
from streaming.core.model.errors import HubError
from streaming.core.records.retained import Retained
from streaming.core.text.wording import as_count
from streaming.facts.consumers.joining import Ask, PlannedInit, planned_init
from streaming.terminal.output import write_json, write_line, write_sentence

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only check, and say what it would do.")]
Force = Annotated[
    bool, typer.Option("--force", help="Order it though a topic may delete records too early.")
]


@appends(CommandName.RESYNC, when="without --dry-run")
def init(
    replica: ReplicaName,
    *,
    config: ConfigPath = DEFAULT_CONFIG,
    dry_run: DryRun = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Fill a new, empty replica with every row as it stands, once its agent is started.

    It checks that the replica's topic keeps the copy for long enough. Without this command the
    replica is sent the changes since the first one, each row once. `resync status` shows how far
    the copy is; a hub or an agent that dies goes on where the copy was.
    """
    from streaming.cli.command import append_command  # noqa: PLC0415  # a refusal does without

    configured, reader = opened(config)
    found = planned_init(configured, reader, replica, _asking(configured))
    if found.short and not (force or dry_run):
        raise HubError(
            "; ".join([*found.short, "nothing is ordered, --force does it nevertheless"])
        )
    numbers = []
    if not (dry_run or found.is_ordered):
        for name in found.agreements:
            order = ResyncOrder(name, is_full=True).text()
            numbers.append(append_command(reader, CommandName.RESYNC, order))
    if as_json:
        write_json({**asdict(found), "command": CommandName.RESYNC, "numbers": numbers})
        return
    _show(found, numbers)


def _asking(config: Config) -> Ask:
    """Ask the broker what topics retain."""
    from connectors.kafka.topics import Topics  # noqa: PLC0415  # it imports a client of Kafka

    kafka = config.kafka

    def ask(names: Collection[str]) -> Mapping[str, Retained]:
        with Topics(kafka.bootstrap_servers, kafka.options) as connected:
            return connected.retained(names)

    return ask


def _show(found: PlannedInit, numbers: Sequence[int]) -> None:
    for table, count in found.rows.items():
        write_line(f"  {table}: at most {as_count(count, 'row')}")
    for text in found.short:
        write_sentence(f"  {text}")
    total = as_count(sum(found.rows.values()), "row")
    batches = as_count(found.batches, "batch", "batches")
    least = f", in {found.least_s:.0f} s or more" if found.least_s >= 1 else ""
    write_sentence(f"{found.replica} gets at most {total} in {batches}{least}")
    if numbers:
        listed = ", ".join(f"command {number}" for number in numbers)
        write_sentence(
            f"init {found.replica}: {listed}; the copy begins when its agent is started, and"
            " `slackwater resync status` shows how far it is"
        )
    elif found.is_ordered:
        write_sentence(f"It is ordered already: start the agent of {found.replica}.")
    else:
        write_sentence(f"Nothing is done yet: `slackwater init {found.replica}` does it.")
