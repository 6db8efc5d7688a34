"""A changes topic that only packets are brought into: what it holds, and how it is written."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from connectors.kafka.placed_records import PlacedRecord, headers_of, placed_records
from connectors.kafka.sink import UpdatesSink
from streaming.core.matrix.packets import Place
from streaming.core.model.errors import PublishError
from streaming.hub.packets.places import TopicPlaces


@dataclass(frozen=True, slots=True)
class FedReplica:
    """A replica that Kafka does not reach: its agreement, its changes topic, its folder."""

    name: str
    rid: int
    agreement: str
    topic: str
    folder: Path


@dataclass(slots=True)
class FedTopic:
    """The topic of one replica; `options()`: [kafka.options] as they are now."""

    replica: FedReplica
    bootstrap: str
    options: Callable[[], Mapping[str, str]]
    places: TopicPlaces = field(default_factory=TopicPlaces)

    def follow(self, first: int) -> None:
        """Read what is new in the topic; the first time from this offset on, or one before it.

        SourceError if it cannot be read.
        """
        begin = self.places.read_to
        begin = max(0, first - 1) if begin is None else begin
        found, end = self._read(begin)
        if end < begin:  # the topic was made anew
            self.places = TopicPlaces()
            found, end = self._read(0)
        self.places.note(found, end)

    def digest_at(self, place: int, outbox: str) -> str | None:
        """The digest of the record at a place of this outbox; None: it is not there any more."""
        last = self.places.last
        if last is not None and last.place == Place(outbox, place):
            return last.digest
        offset = self.places.offset_of(Place(outbox, place))
        if offset is None or offset < 0:
            return None
        found, _ = self._read(offset, offset + 1)
        return next((one.digest for one in found if one.place == Place(outbox, place)), None)

    def produce(self, sink: UpdatesSink, outbox: str, after: int, records: Iterable[bytes]) -> None:
        """Append the records at the places behind `after`, and read them back.

        PublishError, SourceError: some of them may be there, which `follow` finds.
        """
        topic, key = self.replica.topic, self.replica.name.encode()
        for place, record in enumerate(records, after + 1):
            sink.send(topic, key, record, headers_of(Place(outbox, place)))
        if sink.flush():
            raise PublishError(f"{topic} refuses what packets bring: the hub's log says why")
        self.follow(0)

    def _read(self, first: int, end: int | None = None) -> tuple[list[PlacedRecord], int]:
        return placed_records(self.bootstrap, self.options(), self.replica.topic, first, end)
