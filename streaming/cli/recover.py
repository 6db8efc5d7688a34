"""`recover`: give up the input that a replica's topic lost, so that the replica can go on."""

from typing import Annotated

import typer

from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, now, opened
from streaming.cli.output import write_json, write_line
from streaming.core.model.command import CommandName
from streaming.core.model.errors import HubError
from streaming.core.model.statuses import ReplicaStatus
from streaming.facts.names import committed, rid_of_replica

LostReplica = Annotated[
    str, typer.Argument(metavar="REPLICA", help="Its name in the configuration.")
]


def recover(
    replica: LostReplica, *, config: ConfigPath = DEFAULT_CONFIG, as_json: AsJson = False
) -> None:
    """Give up the lost input of a replica; its open transactions end.

    Its agent's next start brings it a full copy, which overwrites the rows that only its database
    has; `slackwater agent --snapshot` tells all of its rows before that, as inserts.
    """
    from streaming.cli.command import append_command  # noqa: PLC0415  # a refusal does without

    configured, reader = opened(config)
    rid = rid_of_replica(configured, replica)
    known = committed(reader).replicas.get(rid)
    if known is None or known.status is not ReplicaStatus.INPUT_LOST:
        state = "silent" if known is None else known.status_text
        raise HubError(
            f"{replica} is {state}: no input of it is lost, so there is nothing to recover"
        )
    number = append_command(reader, CommandName.RECOVER, str(rid), now())
    if as_json:
        write_json({"command": CommandName.RECOVER, "replica": replica, "number": number})
        return
    write_line(
        f"recover {replica}: command {number}; a running hub executes it with its next batch"
    )
    write_line(
        f"then start the agent of {replica}: a full copy overwrites the rows that only its database"
        " has; with --snapshot the agent tells all of its rows before that"
    )
