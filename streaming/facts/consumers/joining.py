"""What filling a new replica from the hub's rows takes, and whether the log outlives it."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from checkpoints.reading.reader import Reader
from streaming.config.config import Config
from streaming.core.model.errors import ConfigError, HubError
from streaming.core.model.statuses import remedy_of
from streaming.core.records.retained import Retained
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.hub_state import HubState
from streaming.core.state.replica_state import ReplicaState
from streaming.facts.consumers.resync import orderable, ordered_resyncs
from streaming.facts.names import committed

ROOM = 3
"""How many times as long as the copy takes at least, a topic must keep its records."""

Ask = Callable[[Collection[str]], Mapping[str, Retained]]
"""Asks for topics: topic -> what it retains."""


@dataclass(frozen=True, slots=True)
class PlannedInit:
    """What `init` does if it is ordered now.

    `rows`: table -> how many rows of it the hub has at most. `batches`: that the copy is sent in.
    `least_s`: how long it takes at least, at one batch each `hub.trigger_ms`. `is_ordered`: an
    earlier order waits for the hub or for the agent. `short`: what deletes records too early.
    """

    replica: str
    agreements: tuple[str, ...]
    rows: dict[str, int]
    batches: int
    least_s: float
    is_ordered: bool
    short: tuple[str, ...]


def planned_init(config: Config, reader: Reader, replica: str, ask: Ask) -> PlannedInit:
    """Foretell how a replica is filled; HubError if it was heard already, with what fits then.

    `ask` is asked for the topics from which the replica reads what it is sent.
    """
    rid, state = config.replica(replica).rid, committed(reader)
    agreements = [one for one in config.agreements if one.consumer == replica]
    if not agreements:
        raise ConfigError(f"{replica} is sent nothing: no agreement names it as its consumer")
    known = {one.name: orderable(reader, one) for one in agreements}
    _check_is_new(replica, state, rid, known)
    tables = {table for one in agreements for table in config.tables_of(one)}
    counts = reader.row_counts()
    rows = {table: counts.get(table, 0) for table in sorted(tables)}
    limits = config.limits
    batches = -(-sum(rows.values()) // (limits.resync_page_rows * limits.resync_pages))
    least_s = batches * config.hub.trigger_ms / 1_000
    ordered = ordered_resyncs(reader)
    return PlannedInit(
        replica=replica,
        agreements=tuple(known),
        rows=rows,
        batches=batches,
        least_s=least_s,
        is_ordered=any(name in ordered or one.is_full for name, one in known.items()),
        short=tuple(_short(ask([config.updates_topic(name) for name in known]), least_s)),
    )


def _check_is_new(
    replica: str, state: HubState, rid: int, known: Mapping[str, AgreementState]
) -> None:
    """HubError for a replica that is not new: it has rows of this hub, or of another one."""
    found = state.replicas.get(rid, ReplicaState(rid))
    if found.is_stopped:
        remedy = remedy_of(found.status, found.detail, replica, next(iter(known), replica))
        raise HubError(f"{replica} is {found.status_text}: {remedy}")
    if any(one.session is not None for one in known.values()):
        raise HubError(
            f"{replica} is no new replica, the hub knows its position: `slackwater resync"
            f" {next(iter(known))}` brings what it lacks, with --full all rows;"
            " `slackwater reinit` empties its database first"
        )


def _short(retained: Mapping[str, Retained], least_s: float) -> list[str]:
    """One sentence for each topic that may delete records before the new replica has read them."""
    found = []
    for topic, one in retained.items():
        if one.ms is not None and one.ms < ROOM * least_s * 1_000:
            found.append(
                f"{topic} keeps records for {one.ms / 1_000:g} s, and the copy takes at least"
                f" {least_s:g} s: set its retention.ms=-1 until the replica is in sync"
            )
        if one.bytes is not None:
            found.append(
                f"{topic} keeps {one.bytes} bytes, however much the copy is: set"
                "  its retention.bytes=-1 until the replica is in sync"
            )
    return found
