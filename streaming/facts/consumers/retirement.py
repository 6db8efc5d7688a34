"""What the hub has of a replica that is to be retired, what never arrived, and who lacks some."""

from collections.abc import Callable
from dataclasses import dataclass

from checkpoints.reading.reader import NONE_OPEN, Reader
from streaming.config.config import Config
from streaming.core.model.errors import HubError
from streaming.core.state.replica_state import ReplicaState
from streaming.facts.consumers.cleaning import check_not_last
from streaming.facts.consumers.lacks import consumer_lacks
from streaming.facts.consumers.level import Ends, unread_of
from streaming.facts.freshness import as_read
from streaming.facts.names import committed


@dataclass(frozen=True, slots=True)
class Retirement:
    """What becomes of a replica's changes if it is retired now.

    `max_csn`: the largest that the hub has judged or will judge. `unread`: records of its topic
    that are never read; None: Kafka does not answer, `why_unknown` says why. `open_changes`: of
    transactions without a commit, which end. `lacking`: consumer -> changes of it that are still to
    be sent there; only those with some.
    """

    replica: str
    rid: int
    state: str
    max_csn: str | None
    seen_ms: int
    unread: int | None
    why_unknown: str | None
    open_changes: int
    waiting_changes: int
    lacking: dict[str, int]


def retirement(config: Config, reader: Reader, replica: str, ask: Callable[[], Ends]) -> Retirement:
    """Foretell a retirement; HubError if the replica is retired already or was never heard.

    `ask`: the ends of the configured topics, or why Kafka does not answer.
    """
    reader = as_read(reader)
    rid, state = config.replica(replica).rid, committed(reader)
    known = state.replicas.get(rid, ReplicaState(rid))
    if known.is_retired_for_good:
        raise HubError(f"{replica} is retired already: remove it from the configuration")
    check_not_last(state, rid, replica)
    unread, why_unknown = unread_of(reader, config.changes_topic(replica), ask())
    opened = reader.open_changes()
    return Retirement(
        replica=replica,
        rid=rid,
        state=known.status_text,
        max_csn=state.largest.get(rid),
        seen_ms=known.seen_ms,
        unread=unread,
        why_unknown=why_unknown,
        open_changes=opened.get((rid, "pending"), NONE_OPEN).count,
        waiting_changes=opened.get((rid, "waiting"), NONE_OPEN).count,
        lacking=_lacking(config, reader, rid),
    )


def _lacking(config: Config, reader: Reader, rid: int) -> dict[str, int]:
    found = dict[str, int]()
    for agreement in config.agreements:
        if config.replica(agreement.consumer).rid != rid:
            lacking = consumer_lacks(config, reader, agreement).replicas
            found[agreement.consumer] = sum(one.changes for one in lacking if one.rid == rid)
    return {name: count for name, count in found.items() if count}
