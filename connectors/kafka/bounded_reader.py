"""Reads a range of a topic within a bound of memory: what Java and the other clients cannot.

They decompress a batch whole, so one record of some kB on the wire can end them, at every start.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kafka import TopicPartition
from kafka.errors import for_code
from kafka.protocol.consumer import FetchRequest, FetchResponse
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.memory_records import MemoryRecords

from connectors.kafka.record_stream import FoundRecord, RecordsError, records_of
from connectors.kafka.source_errors import AdminConnection, source_errors
from streaming.core.model.errors import SourceError

FETCH_BYTES = 2**22
"""What is fetched at once; of a larger batch the broker sends all."""
_WAIT_MS = 500
_VERSION = 12
"""The last version of the request that names topics by their name."""


class UnreadableRecords(NamedTuple):
    """The offsets at which a topic has records that cannot be read, and why."""

    offsets: range
    reason: str


class BoundedReader(AdminConnection):
    """An open connection that reads topics record by record; SourceError if Kafka does not answer.

    `bound`: the largest value, in bytes, that is kept whole (record_stream.py).
    """

    def __init__(self, bootstrap: str, options: Mapping[str, str], bound: int) -> None:
        super().__init__(bootstrap, options)
        self._bound = bound

    def read(self, topic: str, first: int, end: int) -> Iterator[FoundRecord | UnreadableRecords]:
        """The records at offsets [first, end) in their order, and which of them cannot be read.

        A transaction's marker is no record, and left out.
        """
        at = first
        while at < end:
            before = at
            for batch, payload in self._batches(topic, at):
                if batch.base_offset >= end:
                    return
                if batch.next_offset <= at:
                    continue
                yield from self._of_batch(batch, payload, range(at, min(end, batch.next_offset)))
                at = batch.next_offset
            if at == before:
                raise SourceError(
                    f"{topic}: Kafka at {self._bootstrap} sends nothing from offset {at} on, though"
                    f" it should have records up to {end}: look at the broker's log"
                )

    def _of_batch(
        self, batch: DefaultRecordBatch, payload: memoryview, wanted: range
    ) -> Iterator[FoundRecord | UnreadableRecords]:
        """What the batch has at the wanted offsets."""
        if batch.is_control_batch:
            return
        at, why = wanted.start, "no record has this offset"
        try:
            for record in records_of(batch, payload, self._bound):
                if record.offset == at and at in wanted:
                    yield record
                    at += 1
        except RecordsError as error:
            why = str(error)
        if at in wanted:
            yield UnreadableRecords(range(at, wanted.stop), why)

    def _batches(self, topic: str, at: int) -> Iterator[tuple[DefaultRecordBatch, memoryview]]:
        """The whole batches of one answer, from the one of this offset on."""
        data = memoryview(self._fetched(topic, at) or b"")
        place = 0
        header = MemoryRecords.LOG_OVERHEAD
        while len(data) - place > header:
            size = header + int.from_bytes(data[place + 8 : place + header])
            if len(data) - place < size:
                return
            batch = DefaultRecordBatch(data[place : place + size])
            yield batch, data[place + DefaultRecordBatch.HEADER_STRUCT.size : place + size]
            place += size

    def _fetched(self, topic: str, at: int) -> bytes | None:
        wanted = FetchRequest.FetchTopic.FetchPartition(
            partition=0,
            current_leader_epoch=-1,
            fetch_offset=at,
            last_fetched_epoch=-1,
            partition_max_bytes=FETCH_BYTES,
        )
        request = FetchRequest(
            max_wait_ms=_WAIT_MS,
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            isolation_level=0,
            session_id=0,
            session_epoch=-1,
            topics=[FetchRequest.FetchTopic(topic=topic, partitions=[wanted])],
            forgotten_topics_data=[],
            rack_id="",
            max_version=_VERSION,
        )
        with source_errors(self._bootstrap, f" for offset {at} of {topic}"):
            response = self._sent(request, TopicPartition(topic, 0))
            error = response.error_code or response.responses[0].partitions[0].error_code
            if error:
                raise for_code(error)
        found: bytes | None = response.responses[0].partitions[0].records
        return found

    def _sent(self, request: FetchRequest, partition: TopicPartition) -> FetchResponse:
        """The answer of the partition's leader."""
        manager = self._admin._manager  # noqa: SLF001 no public call of the client fetches batches

        async def send() -> FetchResponse:
            await manager.cluster.request_update()
            leader = manager.cluster.leader_for_partition(partition)
            return await manager.send(request, node_id=leader)

        found: FetchResponse = manager.run(send)
        return found
