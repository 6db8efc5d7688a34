"""What a consumer lacks by its last acknowledgement, and where sending starts."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from checkpoints.reading.reader import Reader
from streaming.config.cluster import AgreementConfig
from streaming.config.config import Config
from streaming.core.delivery.lack import Anchor, Lack, LogGap, epochs_purged, lack, refused
from streaming.core.model.csn import rid_of
from streaming.core.model.ruv import Ruv
from streaming.core.state.agreement_state import AgreementState
from streaming.facts.consumers.lag import acked
from streaming.facts.consumers.ruvs import state_of
from streaming.facts.names import committed, names_of


@dataclass(frozen=True, slots=True)
class PositionText:
    """A position: the hub epoch that it covers, and its RUV, an element a line."""

    covers: int
    ruv: list[str]


@dataclass(frozen=True, slots=True)
class StartPoint:
    """A CSN, and whether sending starts `at` it or `after` it."""

    csn: str
    start: str


@dataclass(frozen=True, slots=True)
class AnchorPoint:
    """The start of all sending: the replica whose start it is, and why that replica has one."""

    csn: str
    start: str
    replica: str
    need: str


@dataclass(frozen=True, slots=True)
class LackOfReplica:
    """What the consumer lacks of one replica's changes; `is_own`: it is that replica itself.

    `stop`: the last CSN to send; `changes`: the number of fresh ones.
    """

    rid: int
    replica: str
    need: str
    is_own: bool
    start: StartPoint | None
    stop: str | None
    changes: int


@dataclass(frozen=True, slots=True)
class RefusedStart:
    """Why nothing can be sent without a gap; `csn` None: hub epochs are purged, not a CSN."""

    gap: str
    csn: str | None
    why: str


@dataclass(frozen=True, slots=True)
class ConsumerLacks:
    """What a consumer lacks; `replicas`: by rid, all that either side knows."""

    agreement: str
    consumer: str
    state: str
    supplier: PositionText
    acked: PositionText
    replicas: tuple[LackOfReplica, ...]
    anchor: AnchorPoint | None
    stop: list[str]
    refused: RefusedStart | None
    changes: int
    refreshes: int

    def document(self) -> dict[str, Any]:
        """The facts as one JSON document, in the order of the fields."""
        found = asdict(self)
        if self.refused is not None and self.refused.csn is None:
            del found["refused"]["csn"]
        return found


def consumer_lacks(config: Config, reader: Reader, agreement: AgreementConfig) -> ConsumerLacks:
    """What the consumer of an agreement lacks; StateError before the first commit."""
    hub = committed(reader)
    rid = config.replica(agreement.consumer).rid
    state = state_of(hub, agreement.name)
    dataset = config.dataset_of(agreement)
    known, consumer = hub.ruv_of(dataset), acked(hub, state, rid, dataset)
    lacking = lack(known, consumer)
    changes, refreshes = _to_be_sent(config, reader, agreement, state.acked_covers, consumer)
    names = names_of(config)
    return ConsumerLacks(
        agreement=agreement.name,
        consumer=agreement.consumer,
        state=state.status_text,
        supplier=PositionText(hub.hub_epoch, known.text()),
        acked=PositionText(state.acked_covers, state.acked_ruv.text()),
        replicas=tuple(
            LackOfReplica(
                rid=of,
                replica=names.get(of, str(of)),
                need=need,
                is_own=of == rid,
                start=_start(lacking.starts.get(of)),
                stop=lacking.stop.max_of(of),
                changes=changes.get(of, 0),
            )
            for of, need in lacking.needs.items()
        ),
        anchor=_anchor(lacking, names),
        stop=lacking.stop.text(),
        refused=_refused(reader, lacking, state, dataset),
        changes=sum(changes.values()),
        refreshes=refreshes,
    )


def _to_be_sent(
    config: Config, reader: Reader, agreement: AgreementConfig, after: int, acked_ruv: Ruv
) -> tuple[Counter[int], int]:
    """How many fresh changes the consumer lacks, by the rid that made them; how many refreshes.

    Refreshes are of any table that is configured: a removed one is sent to nobody.
    """
    from streaming.stages.filtered import with_filter_columns  # noqa: PLC0415  # only a count needs the stages
    from streaming.stages.recipients import COLUMNS, Recipients  # noqa: PLC0415  # only a count needs the stages

    subscription = config.subscription(agreement)
    configured = [table.name for table in config.tables]
    replica = committed(reader).replicas.get(subscription.consumer)
    floors = replica.floors if replica else ()
    changes, refreshes = Counter[int](), 0
    columns = with_filter_columns(COLUMNS, subscription)
    for part in reader.scan_changelog(columns, after=after, tables=configured):
        rows = Recipients(part)
        is_sent = rows.of(subscription, acked_ruv, floors)
        changes.update(rows.rid[is_sent & rows.is_change].tolist())
        refreshes += int((is_sent & ~rows.is_change).sum())
    return changes, refreshes


def _start(start: Anchor | None) -> StartPoint | None:
    return StartPoint(start.csn, "at" if start.at else "after") if start else None


def _anchor(lacking: Lack, names: Mapping[int, str]) -> AnchorPoint | None:
    start = _start(lacking.anchor)
    if start is None:
        return None
    rid = rid_of(start.csn)
    return AnchorPoint(start.csn, start.start, names.get(rid, str(rid)), lacking.needs[rid])


def _refused(
    reader: Reader, lacking: Lack, state: AgreementState, dataset: str
) -> RefusedStart | None:
    """Why nothing can be sent without a gap: purged and missing are repaired differently."""
    hub = committed(reader)
    gap = refused(lacking, hub.purge_ruv_of(dataset), lambda csn: _in_log(reader, csn))
    if gap is not None:
        return RefusedStart(gap.gap, gap.start.csn, str(gap))
    epochs = epochs_purged(state.acked_covers, hub.gone_epoch)
    return RefusedStart(LogGap.PURGED, None, str(epochs)) if epochs else None


def _in_log(reader: Reader, csn: str) -> bool:
    found = reader.changelog({"csn": csn, "kind": "change"}, columns=["csn"])
    return bool(found.num_rows)
