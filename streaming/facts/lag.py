"""How far each consumer is behind the hub, and whether all of them are level."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from checkpoints.reader import Reader
from streaming.config.config import Config
from streaming.config.sections import AgreementConfig
from streaming.core.delivery.lack import lack, own_counted
from streaming.core.model.ruv import Ruv
from streaming.core.model.state import AgreementState, HubState
from streaming.facts.names import age_s, names_of

NO_COMMIT = "no commit yet"


@dataclass(frozen=True, slots=True)
class Lag:
    """How far a consumer's last acknowledgement is behind the hub.

    `state`: the agreement's status as text. `is_stopped`: nothing is sent to the consumer.
    `epochs`: hub epochs. `lacking`: the replicas of which it lacks a change. `has_hello`: the
    hub has received its hello, without which its position is unknown.
    """

    agreement: str
    consumer: str
    state: str
    is_stopped: bool
    has_hello: bool
    acked_covers: int
    epochs: int
    lacking: tuple[int, ...]

    @property
    def is_level(self) -> bool:
        """Return whether it has everything: the same covers and the same RUV."""
        has_all = self.epochs == 0 and not self.lacking
        return self.has_hello and has_all and not self.is_stopped


@dataclass(frozen=True, slots=True)
class AgreementLevel:
    """A Lag for output: `lacking` holds the names of the replicas."""

    name: str
    consumer: str
    state: str
    level: bool
    acked_covers: int
    lag_epochs: int
    lacking: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HubLevel:
    """Whether all consumers are level; `age_s` is None before the first commit."""

    level: bool
    hub_epoch: int
    age_s: float | None
    agreements: tuple[AgreementLevel, ...]

    def document(self) -> dict[str, Any]:
        """The facts as one JSON document, in the order of the fields."""
        return asdict(self)


def lags(config: Config, reader: Reader) -> list[Lag]:
    """The lag of each configured agreement."""
    return [
        lag_of(reader, a, config.replica(a.consumer).rid, config.dataset_of(a))
        for a in config.agreements
    ]


def lag_of(reader: Reader, agreement: AgreementConfig, rid: int, dataset: str) -> Lag:
    """The lag of one agreement, by the consumer's last acknowledgement in its data set.

    `rid`: the consumer's; `dataset`: the agreement's.
    """
    if reader.commit is None:
        return Lag(
            agreement=agreement.name,
            consumer=agreement.consumer,
            state=NO_COMMIT,
            is_stopped=False,
            has_hello=False,
            acked_covers=0,
            epochs=0,
            lacking=(),
        )
    hub = reader.commit.state
    known = hub.agreements.get(agreement.name, AgreementState(agreement.name, rid))
    return Lag(
        agreement=agreement.name,
        consumer=agreement.consumer,
        state=known.status_text,
        is_stopped=known.is_stopped,
        has_hello=known.session is not None,
        acked_covers=known.acked_covers,
        epochs=hub.hub_epoch - known.acked_covers,
        lacking=tuple(lack(hub.ruv_of(dataset), acked(hub, known, rid, dataset)).starts),
    )


def acked(hub: HubState, agreement: AgreementState, rid: int, dataset: str) -> Ruv:
    """What the consumer has acknowledged; its own changes count as known to it."""
    own = hub.ruv_of(dataset).max_of(rid)
    return own_counted(agreement.acked_ruv, rid, own) if own else agreement.acked_ruv


def level(config: Config, reader: Reader, found: Sequence[Lag], now_s: float) -> HubLevel:
    """The levels of these consumers, with the age of the commit that they are taken from."""
    names = names_of(config)
    return HubLevel(
        level=all(lag.is_level for lag in found),
        hub_epoch=reader.commit.state.hub_epoch if reader.commit else 0,
        age_s=age_s(reader, now_s),
        agreements=tuple(
            AgreementLevel(
                lag.agreement,
                lag.consumer,
                lag.state,
                lag.is_level,
                lag.acked_covers,
                lag.epochs,
                tuple(names.get(rid, str(rid)) for rid in lag.lacking),
            )
            for lag in found
        ),
    )
