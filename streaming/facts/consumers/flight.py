"""The hub epochs that a replica has not reflected yet, by stage."""

from dataclasses import dataclass

from checkpoints.reading.reader import Reader
from streaming.config.cluster import AgreementConfig
from streaming.config.config import Config
from streaming.core.batch.flight import applied_in, flight
from streaming.core.model.errors import SourceError
from streaming.core.state.replica_state import ReplicaState
from streaming.core.text.wording import as_count
from streaming.facts.consumers.ruvs import state_of
from streaming.facts.names import age_s, committed

CONNECT_MS = 3_000
READ_MS = 5_000
"""Time limits: an operator waits for the answer, and most of it needs no broker."""


@dataclass(frozen=True, slots=True)
class EpochRange:
    """Consecutive hub epochs, both ends included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class ReplicaFlight:
    """The hub epochs in flight to a replica and back; a range without any epoch is None.

    `agreement` None: nothing is sent to it. `mre` was reflected in the replica's epoch
    `mre_epoch`, and counts for its changes from epoch `mre_counts_from` on. `nothing_for_it`:
    those of `unsent` that hold nothing for it. `unread`: applied, but the hub has not read the
    acknowledgement yet. `doubt`: why some of `sent` may be `unread`, if there is a reason.
    """

    replica: str
    rid: int
    state: str
    age_s: float
    agreement: str | None
    hub_epoch: int
    mre: int
    mre_epoch: int | None
    mre_counts_from: int | None
    unsent: EpochRange | None
    nothing_for_it: EpochRange | None
    sent: EpochRange | None
    unread: EpochRange | None
    doubt: str | None


def replica_flight(config: Config, reader: Reader, name: str, now_s: float) -> ReplicaFlight:
    """The hub epochs in flight to and from a replica; ConfigError if there is no such replica.

    Reads what the hub has not read of the replica's topic, for some seconds at most.
    """
    hub, rid = committed(reader), config.replica(name).rid
    agreement = next((a for a in config.agreements if a.consumer == name), None)
    replica = hub.replicas.get(rid, ReplicaState(rid))
    of = agreement.name if agreement else ""
    sent = state_of(hub, of)
    applied, doubt = _applied(config, reader, name, agreement)
    found = flight(hub.hub_epoch, replica.mre, sent.sent_covers, applied)
    reflected_in = replica.session.epochs[-1] if replica.session else None
    return ReplicaFlight(
        replica=name,
        rid=rid,
        state=replica.status_text,
        age_s=round(age_s(reader, now_s) or 0, 3),
        agreement=of or None,
        hub_epoch=found.hub_epoch,
        mre=found.mre,
        mre_epoch=reflected_in,
        mre_counts_from=None if reflected_in is None else reflected_in + 1,
        unsent=_range(found.unsent),
        nothing_for_it=_range(range(found.unsent.start, sent.scanned + 1)),
        sent=_range(found.sent),
        unread=_range(found.unread),
        doubt=doubt,
    )


def _applied(
    config: Config, reader: Reader, name: str, agreement: AgreementConfig | None
) -> tuple[int, str | None]:
    """The largest covers in the part of its topic that the hub has not read; why that may be less.

    Without a broker it is 0: unread acknowledgements cannot be told from missing ones.
    """
    from connectors.kafka.unread import unread  # noqa: PLC0415  # plain `status` needs no Kafka

    if agreement is None or reader.commit is None:
        return 0, None
    topic = config.changes_topic(name)
    offset = reader.commit.offsets.get(topic, 0)
    try:
        kafka = config.kafka
        found = unread(kafka.bootstrap_servers, kafka.options, topic, offset, CONNECT_MS, READ_MS)
    except SourceError as error:
        return 0, str(error)
    rid, dataset = config.replica(name).rid, config.dataset_of(agreement)
    applied = applied_in(found.records, reader.commit.state, rid, agreement.name, dataset)
    left = found.end - found.read_to
    return applied, f"not read in time: {as_count(left, 'record')} of {topic}" if left > 0 else None


def _range(epochs: range) -> EpochRange | None:
    return EpochRange(epochs[0], epochs[-1]) if epochs else None
