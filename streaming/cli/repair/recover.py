"""`recover`: give up the lost input of a replica, or go on from a hub's state that was restored."""

from typing import Annotated

import typer

from streaming.cli.appends import appends
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, opened
from streaming.core.model.command import CommandName
from streaming.core.model.errors import HubError
from streaming.core.model.statuses import ReplicaStatus
from streaming.core.state.restored import is_restored
from streaming.facts.names import committed
from streaming.terminal.output import write_json, write_line

LostReplica = Annotated[
    str | None,
    typer.Argument(
        metavar="[REPLICA]",
        help="Its name in the configuration; none: the hub itself, whose state was restored.",
    ),
]
Lose = Annotated[
    bool,
    typer.Option(
        "--lose", help="Give up what the state had not read and the changes topics no longer hold."
    ),
]


@appends(
    CommandName.RECOVER, CommandName.RECOVER_HUB, when="the first with REPLICA, the other without"
)
def recover(
    replica: LostReplica = None,
    *,
    config: ConfigPath = DEFAULT_CONFIG,
    lose: Lose = False,
    as_json: AsJson = False,
) -> None:
    """Give up the lost input of a replica, or go on from a state that was restored by hand.

    REPLICA: its open transactions end. Its agent's next start brings it a full copy, which
    overwrites the rows that only its database has; `slackwater agent --snapshot` publishes all
    of its rows before that, as inserts.

    No REPLICA: the hub's next start goes on from the state that was restored. It reads the topics
    again from where that was; every replica gets a full copy.
    """
    if replica is None:
        _recover_hub(config, lose=lose, as_json=as_json)
    else:
        _recover_replica(config, replica, as_json=as_json)


def _recover_replica(config: ConfigPath, replica: str, *, as_json: bool) -> None:
    from streaming.cli.command import append_named  # noqa: PLC0415  # a refusal does without

    configured, reader = opened(config)
    rid = configured.replica(replica).rid
    known = committed(reader).replicas.get(rid)
    if known is None or known.status is not ReplicaStatus.INPUT_LOST:
        state = "silent" if known is None else known.status_text
        raise HubError(
            f"{replica} is {state}: no input of it is lost, so there is nothing to recover"
        )
    append_named(reader, CommandName.RECOVER, str(rid), replica, "replica", as_json=as_json)
    if not as_json:
        write_line(
            f"then start the agent of {replica}: a full copy overwrites the rows that only its"
            " database has; with --snapshot the agent publishes all of its rows before that"
        )


def _recover_hub(config: ConfigPath, *, lose: bool, as_json: bool) -> None:
    from connectors.kafka.looking import last_updates  # noqa: PLC0415  # needs a broker
    from connectors.kafka.topics import end_offsets  # noqa: PLC0415
    from streaming.cli.command import append_command  # noqa: PLC0415

    configured, reader = opened(config)
    state, kafka = committed(reader), configured.kafka
    topics = [configured.updates_topic(one.name) for one in configured.agreements]
    ends = end_offsets(kafka.bootstrap_servers, kafka.options, topics)
    sent = last_updates(kafka.bootstrap_servers, kafka.options, ends)
    if not is_restored(state, sent.values()):
        raise HubError(
            f"the state ends at hub epoch {state.hub_epoch}, and nothing later was sent: it was not"
            " restored, so there is nothing to recover"
        )
    number = append_command(reader, CommandName.RECOVER_HUB, "lose" if lose else None)
    if as_json:
        write_json({"command": CommandName.RECOVER_HUB, "number": number, "lose": lose})
        return
    write_line(f"recover: command {number}; the hub's next start carries it out")
    write_line(
        "it reads the topics again from where this state was, and every replica gets a full copy;"
        " `slackwater resync` shows how far they are"
    )
