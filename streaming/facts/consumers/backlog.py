"""How far a consumer lags in seconds and in changes, over all and of each origin."""

from dataclasses import dataclass

from checkpoints.reading.epoch_history import epoch_history
from checkpoints.reading.reader import Reader
from streaming.config.cluster import AgreementConfig
from streaming.config.config import Config
from streaming.core.delivery.epoch_history import EpochHistory, LagBehind
from streaming.core.state.hub_state import HubState
from streaming.core.state.sending_times import SendingTimes
from streaming.facts.names import serving


@dataclass(frozen=True, slots=True)
class OriginBacklog:
    """What a consumer has not acknowledged of one replica's changes; `unsent`: nor was sent."""

    origin: str
    lag_s: float
    changes: int
    unsent: int


@dataclass(frozen=True, slots=True)
class Backlog:
    """What the consumer of an agreement has not acknowledged; None: that cannot be said.

    `lag_s`: since the first hub epoch that it has not acknowledged was due. `changes`: of others,
    accepted, of its tables. `unsent`: those of them that are not sent either. `origins`: all other
    replicas.
    """

    lag_s: float | None = None
    changes: int | None = None
    unsent: int | None = None
    origins: tuple[OriginBacklog, ...] = ()


def backlog(
    config: Config,
    hub: HubState | None,
    agreement: AgreementConfig,
    epochs: EpochHistory,
    now_s: float,
) -> Backlog:
    """What the consumer of an agreement lags; unknown before its hello, and elsewhere."""
    known = hub.agreements.get(agreement.name) if hub else None
    if known is None or not known.has_position:
        return Backlog()
    tables, acked = config.tables_of(agreement), known.acked_covers
    behind = epochs.behind(acked, tables, known.consumer)
    sent = max(acked, known.scanned)
    unsent = epochs.behind(sent, tables, known.consumer)
    if behind is None or unsent is None:
        return Backlog()
    others = {one.rid: one.name for one in config.replicas if one.rid != known.consumer}
    times = agreement.times
    lacking = {name: epochs.lacking(acked, tables, rid) for rid, name in others.items()}
    left = {name: epochs.lacking(sent, tables, rid) for rid, name in others.items()}
    return Backlog(
        _age_s(behind, now_s, times),
        behind.changes,
        unsent.changes,
        tuple(
            OriginBacklog(name, _age_s(one, now_s, times), one.changes, unsent_of.changes)
            for name, one in lacking.items()
            if one is not None and (unsent_of := left[name]) is not None
        ),
    )


def unacknowledged(config: Config, reader: Reader) -> EpochHistory:
    """The hub epochs that a consumer has not acknowledged which is served and known."""
    return epoch_history(reader, acknowledged_by_all(config, reader))


def acknowledged_by_all(config: Config, reader: Reader) -> int:
    """The hub epoch up to which all consumers that are served and known have everything."""
    hub = reader.commit.state if reader.commit else None
    if hub is None:
        return 0
    names = {one.name for one in serving(config, reader).agreements}
    known = (one for name, one in hub.agreements.items() if name in names)
    heard = (one.acked_covers for one in known if one.has_position)
    return min(heard, default=hub.hub_epoch)


def _age_s(behind: LagBehind, now_s: float, times: SendingTimes) -> float:
    """How long ago the first was due."""
    if behind.since_ms is None:
        return 0.0
    return max(0.0, round(now_s - times.due_ms(behind.since_ms) / 1000, 3))
