"""Which rids are on their way out of the RUV, and whether one may be taken out or given again."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from checkpoints.reading.reader import Reader
from streaming.config.config import Config
from streaming.core.model.command import ReadmitOrder
from streaming.core.model.errors import HubError, QuestionError
from streaming.core.retention.departure import waited_for
from streaming.core.state.hub_state import HubState
from streaming.facts.consumers.level import Ends, unread_of
from streaming.facts.freshness import as_read
from streaming.facts.names import committed, names_of


@dataclass(frozen=True, slots=True)
class LeavingRid:
    """A rid that is retired for good, and in the RUV until all have this hub epoch.

    `waits_for`: the agreements whose consumers have not.
    """

    rid: int
    name: str
    hub_epoch: int
    waits_for: tuple[str, ...]

    @property
    def text(self) -> str:
        """The same as a sentence, but for its end."""
        waits = ", ".join(self.waits_for) or "the next batch"
        return (
            f"rid {self.rid} ({self.name}) leaves the RUV once hub epoch {self.hub_epoch} is"
            f" acknowledged: waiting for {waits}"
        )


@dataclass(frozen=True, slots=True)
class UnconfiguredRid:
    """A rid of the RUV that is of no configured replica.

    `max_csn`: its largest change. `open_changes`: of transactions without a commit, which end.
    `waits_for`: the agreements whose consumers hold it in the RUV until they have all of it.
    `unread`: records of its topic that are never read; None: `why_unknown` says why.
    """

    rid: int
    name: str
    max_csn: str | None
    open_changes: int
    waits_for: tuple[str, ...]
    unread: int | None
    why_unknown: str | None


def leaving_rids(
    state: HubState, names: Mapping[int, str], now_ms: int, max_away_ms: int
) -> tuple[LeavingRid, ...]:
    """The rids that are to leave the RUV, with whom each waits for."""
    return tuple(
        LeavingRid(
            rid,
            names.get(rid, str(rid)),
            hub_epoch,
            tuple(waited_for(state, hub_epoch, now_ms, max_away_ms)),
        )
        for rid, hub_epoch in sorted(state.to_leave.items())
    )


def check_not_last(state: HubState, rid: int, name: str) -> None:
    """HubError if no other replica would be left."""
    if all(one.is_retired for other, one in state.replicas.items() if other != rid):
        raise HubError(
            f"{name} is the last replica that this hub has: stop the hub instead; its state keeps"
            " what all had"
        )


def unconfigured_rid(
    config: Config,
    reader: Reader,
    rid: int,
    names: Mapping[int, str],
    now_ms: int,
    ask: Callable[[str], Ends],
) -> UnconfiguredRid:
    """What becomes of a rid that is taken out of the RUV now; HubError if it may not be.

    QuestionError: no replica has it.
    `ask`: the ends of the topics, that of this replica among them, or why Kafka does not answer.
    """
    reader = as_read(reader)
    state = committed(reader)
    known, name = state.replicas.get(rid), names.get(rid, str(rid))
    if rid == config.hub.rid:
        raise HubError(f"rid {rid} is the hub's own: what operators write here is under it")
    if known is None:
        raise QuestionError(f"rid {rid} is of no replica that this hub knows: see `slackwater ruv`")
    if known.is_retired_for_good:
        raise HubError(_taken_out(config, state, rid, names, now_ms))
    configured = names_of(config).get(rid)
    if configured is not None:
        raise HubError(
            f"rid {rid} is of {configured}, which is configured: `slackwater retire {configured}`"
            " takes it out, and its rid leaves the RUV by itself"
        )
    if not known.is_retired:
        raise HubError(
            f"the hub works with a configuration that has rid {rid}: run `slackwater config apply"
            " --yes` first, or start the hub with this one"
        )
    check_not_last(state, rid, name)
    max_away_ms = config.retention.max_away_ms
    unread, why_unknown = unread_of(reader, config.changes_topic(name), ask(name))
    return UnconfiguredRid(
        rid,
        name,
        state.largest.get(rid),
        sum(one.count for (of, _), one in reader.open_changes().items() if of == rid),
        tuple(waited_for(state, state.hub_epoch, now_ms, max_away_ms)),
        unread,
        why_unknown,
    )


def readmission(
    config: Config,
    reader: Reader,
    rid: int,
    names: Mapping[int, str],
    now_ms: int,
    ask: Callable[[], Ends],
) -> ReadmitOrder:
    """The order that lets a new replica have a rid; HubError if it may not.

    It is read from the present end of its topic on. `ask`: the ends of the configured topics, or
    why Kafka does not answer.
    """
    state = committed(as_read(reader))
    known = state.replicas.get(rid)
    if known is None or not known.is_retired_for_good:
        raise HubError(f"rid {rid} was not taken out, so there is nothing to readmit")
    if rid in state.to_leave:
        raise HubError(_taken_out(config, state, rid, names, now_ms))
    configured = names_of(config).get(rid)
    if configured is None:
        name = names.get(rid, str(rid))
        raise HubError(
            f"rid {rid} is not configured: add {name} and its agreement to the configuration, as"
            " they were, and have the hub take that over first"
        )
    ends = ask()
    if isinstance(ends, str):
        raise HubError(f"where the topic of {configured} ends cannot be said: {ends}")
    return ReadmitOrder(rid, ends.get(config.changes_topic(configured), 0))


def _taken_out(
    config: Config, state: HubState, rid: int, names: Mapping[int, str], now_ms: int
) -> str:
    for one in leaving_rids(state, names, now_ms, config.retention.max_away_ms):
        if one.rid == rid:
            return one.text
    return f"rid {rid} has left the RUV already"
