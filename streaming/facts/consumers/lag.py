"""How far each consumer is behind the hub."""

from collections.abc import Mapping
from dataclasses import dataclass

from checkpoints.commit.epochs import Checkpoint
from checkpoints.reading.reader import Reader
from streaming.config.cluster import AgreementConfig
from streaming.config.config import Config
from streaming.core.delivery.lack import lack, own_counted
from streaming.core.model.ruv import Ruv
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.hub_state import HubState
from streaming.facts.consumers.delayed import DelayedSending, delayed_sending
from streaming.facts.consumers.resync import GivenOrder, lacks_rows, ordered_resyncs
from streaming.facts.consumers.ruvs import state_of

NO_COMMIT = "no commit yet"


@dataclass(frozen=True, slots=True)
class Lag:
    """How far a consumer's last acknowledgement is behind the hub.

    `state`: the agreement's status as text. `is_stopped`: nothing is sent to the consumer.
    `is_resyncing`: it is away, or a resync is ordered, to begin or under way, so its rows may be
    others than its position says. `epochs`: hub epochs. `lacking`: the replicas of which it lacks a
    change. `has_hello`: the hub has received its hello, without which its position is unknown.
    `delayed`: what waits by its delay, as of the last commit, which is not counted. `paused`: the
    tables of which it is sent nothing, so it lacks rows whatever its position says.
    """

    agreement: str
    consumer: str
    state: str
    is_stopped: bool = False
    is_resyncing: bool = False
    has_hello: bool = False
    acked_covers: int = 0
    epochs: int = 0
    lacking: tuple[int, ...] = ()
    delayed: DelayedSending | None = None
    paused: tuple[str, ...] = ()

    @property
    def has_all(self) -> bool:
        """Return whether it has all that is due of the hub's: the same covers and the same RUV."""
        has_position = self.epochs == 0 and not (self.lacking or self.paused)
        return self.has_hello and has_position and not (self.is_stopped or self.is_resyncing)


def lags(
    config: Config, reader: Reader, orders: Mapping[str, GivenOrder] | None = None
) -> list[Lag]:
    """The lag of each configured agreement, by its consumer's last acknowledgement.

    `orders`: those of `resync_orders`, if they are at hand.
    """
    if reader.commit is None:
        return [Lag(one.name, one.consumer, NO_COMMIT) for one in config.agreements]
    commit, ordered = reader.commit, ordered_resyncs(reader, orders)
    return [_lag(config, commit, one, is_ordered=one.name in ordered) for one in config.agreements]


def _lag(
    config: Config, commit: Checkpoint, agreement: AgreementConfig, *, is_ordered: bool
) -> Lag:
    """The lag of one agreement; `is_ordered`: a resync of it waits for the hub."""
    rid, dataset = config.replica(agreement.consumer).rid, config.dataset_of(agreement)
    hub = commit.state
    known, delayed = state_of(hub, agreement.name), delayed_sending(commit, agreement)
    waits = delayed is not None and not delayed.are_due
    due_epoch = known.scanned if waits else hub.hub_epoch
    due_ruv = known.sent_ruv if waits else hub.ruv_of(dataset)
    return Lag(
        agreement=agreement.name,
        consumer=agreement.consumer,
        state=known.status_text,
        is_stopped=known.is_stopped,
        is_resyncing=is_ordered or lacks_rows(known),
        has_hello=known.session is not None,
        acked_covers=known.acked_covers,
        epochs=due_epoch - known.acked_covers,
        lacking=tuple(lack(due_ruv, acked(hub, known, rid, dataset)).starts),
        delayed=delayed,
        paused=tuple(sorted(hub.paused_tables.get(agreement.name, ()))),
    )


def acked(hub: HubState, agreement: AgreementState, rid: int, dataset: str) -> Ruv:
    """What the consumer has acknowledged; its own changes count, but for what it lost since."""
    own = hub.ruv_of(dataset).max_of(rid)
    if not own:
        return agreement.acked_ruv
    replica = hub.replicas.get(rid)
    floors = replica.floors if replica else ()
    kept = [floor.after for floor in floors if floor.hub_epoch > agreement.acked_covers]
    return own_counted(agreement.acked_ruv, rid, min([own, *kept]) or None)
