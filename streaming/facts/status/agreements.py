"""Each agreement's state, its positions, and how far its consumer lags."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from checkpoints.reading.reader import Reader
from streaming.config.config import Config
from streaming.core.delivery.recovery_point import Delays
from streaming.core.model.statuses import AgreementStatus, remedy_of
from streaming.core.retention.hold import hold_left_ms
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.hub_state import HubState
from streaming.facts.consumers.backlog import OriginBacklog, backlog
from streaming.facts.consumers.compared import ConsumerComparison, consumer_comparison
from streaming.facts.consumers.delayed import DelayedSending
from streaming.facts.consumers.delays import OriginDelay, delays_now, origin_delays
from streaming.facts.consumers.lag import lags
from streaming.facts.consumers.packets import PacketSummary, packet_summary
from streaming.facts.consumers.resync import ConsumerResync, consumer_resyncs
from streaming.facts.consumers.ruvs import state_of
from streaming.facts.consumers.uncompared import uncompared
from streaming.facts.consumers.unsettled import Unsettled
from streaming.facts.status.recorded import RecordedFacts


@dataclass(frozen=True, slots=True)
class AgreementSummary:
    """The two positions of an agreement, and how far its consumer is behind.

    `remedy`: what to do if it alone is sent nothing, and its replica is not stopped. `lag_s`: since
    the first hub epoch that it has not acknowledged was due. `lag_changes`: changes of others that
    it has not; `unsent_changes`: those of them that are not sent either. None: not known before its
    hello. `origins`: its lag by origin. `delays`: up to when it has everything of each origin.
    `level`: its consumer has everything that was written anywhere. `resync`: its consumer is away,
    or in resync. `packets`: of a consumer that is sent packets. `comparison`: its rows with the
    hub's; `not_compared`: why they are not compared, although they should be. `hold_left_s`: of a
    consumer that is away, in how long what it lacks is kept no longer, 0: it is not. `delayed`:
    what it is not sent yet because of its delay, which is no lag. `paused`: the tables of which an
    operator has it sent nothing. `is_archive`: its consumer keeps what others delete.
    """

    name: str
    consumer: str
    state: str
    remedy: str | None
    sent_covers: int
    acked_covers: int
    lag_epochs: int
    lag_s: float | None = None
    lag_changes: int | None = None
    unsent_changes: int | None = None
    origins: tuple[OriginBacklog, ...] = ()
    delays: tuple[OriginDelay, ...] = ()
    level: bool = False
    resync: ConsumerResync | None = None
    packets: PacketSummary | None = None
    comparison: ConsumerComparison | None = None
    not_compared: str | None = None
    hold_left_s: float | None = None
    delayed: DelayedSending | None = None
    paused: tuple[str, ...] = ()
    is_archive: bool = False

    @property
    def archive_text(self) -> str:
        """Of an archive: what differs from another consumer."""
        return f"{self.consumer} is an archive: it keeps what others delete"


def agreement_summaries(
    config: Config, reader: Reader, recorded: RecordedFacts, open_: Unsettled, now_s: float
) -> tuple[AgreementSummary, ...]:
    """Every agreement that is configured, then those that are not any more.

    `open_`: what keeps a consumer from being level that has all that the hub has.
    """
    hub = reader.commit.state if reader.commit else None
    configured = {one.name: one for one in config.agreements}
    orders = recorded.orders
    resyncs = {one.agreement: one for one in consumer_resyncs(config, reader, now_s, orders)}
    rids = {one.name: one.rid for one in config.replicas}
    found = list[AgreementSummary]()
    silent = uncompared(config, reader, recorded.compared)
    delays = delays_now(config, hub, recorded.delays, recorded.opened, now_s) if hub else Delays()
    for lag in lags(config, reader, orders):
        known = state_of(hub, lag.agreement) if hub else None
        behind = backlog(config, hub, configured[lag.agreement], recorded.epochs, now_s)
        resync = resyncs.get(lag.agreement)
        found.append(
            AgreementSummary(
                name=lag.agreement,
                consumer=lag.consumer,
                state=lag.state,
                remedy=_remedy(known, resync),
                sent_covers=known.sent_covers if known else 0,
                acked_covers=lag.acked_covers,
                lag_epochs=lag.epochs,
                lag_s=behind.lag_s,
                lag_changes=behind.changes,
                unsent_changes=behind.unsent,
                origins=behind.origins,
                delays=origin_delays(delays, rids[lag.consumer], recorded.names),
                level=open_.is_level(lag),
                resync=resync,
                packets=packet_summary(known, now_s),
                comparison=consumer_comparison(recorded.compared, lag.agreement, now_s),
                not_compared=silent.get(lag.agreement),
                hold_left_s=_hold_left_s(config, hub, lag.agreement, now_s),
                delayed=lag.delayed,
                paused=lag.paused,
                is_archive=not configured[lag.agreement].sends_deletes,
            )
        )
    return (*found, *(_retired(configured, hub, recorded) if hub else ()))


def _remedy(known: AgreementState | None, resync: ConsumerResync | None) -> str | None:
    if known is None or known.status not in _ALONE or (resync and resync.is_ordered):
        return None
    return remedy_of(known.status, known.detail, agreement=known.name)


def _hold_left_s(config: Config, hub: HubState | None, name: str, now_s: float) -> float | None:
    if hub is None or name not in hub.agreements:
        return None
    left_ms = hold_left_ms(hub, name, round(now_s * 1_000), config.retention.max_away_ms)
    return None if left_ms is None else left_ms / 1_000


_ALONE = (AgreementStatus.REFUSED, AgreementStatus.CHANGE_TRACKING)
"""The statuses in which an agreement is sent nothing while its consumer's topic is read."""


def _retired(
    configured: Collection[str], hub: HubState, recorded: RecordedFacts
) -> Iterator[AgreementSummary]:
    """The agreements that the hub keeps and that are not configured any more."""
    return (
        AgreementSummary(
            name=one.name,
            consumer=recorded.names.get(one.consumer, str(one.consumer)),
            state=one.status_text,
            remedy=None,
            sent_covers=one.sent_covers,
            acked_covers=one.acked_covers,
            lag_epochs=hub.hub_epoch - one.acked_covers,
        )
        for name, one in hub.agreements.items()
        if name not in configured
    )
