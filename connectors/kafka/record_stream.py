"""The records of one of Kafka's record batches, one by one, whatever they are compressed from.

A batch of a few kB may hold a record of a gigabyte, which ends a client that decompresses it whole.
Here a batch is decompressed piece by piece, and of a record that is larger than the bound its head,
length and SHA-256 are kept.

Source: Kafka's record format, https://kafka.apache.org/documentation/#recordbatch.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import lz4.frame
import snappy
import zstandard
from kafka.record.default_records import DefaultRecordBatch

from streaming.core.records.kept_bytes import KeptBytes, kept_of

PIECE_BYTES = 2**20
"""What is decompressed at once."""
BLOCK_BYTES = 2**26
"""The largest block of snappy, which can only be decompressed whole."""
WINDOW_BYTES = 2**27
"""The largest window that zstd's own levels use."""

BATCH_BYTES = 2**32
"""What is read of a decompressed batch: it may hold terabytes."""

_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16


class RecordsError(Exception):
    """The rest of a batch cannot be read, with the reason."""


@dataclass(frozen=True, slots=True)
class FoundRecord:
    """A record of a topic; `kept`: its value if it has one, or the head of one beyond the bound."""

    offset: int
    time_ms: int
    kept: KeptBytes


def records_of(batch: DefaultRecordBatch, payload: memoryview, bound: int) -> Iterator[FoundRecord]:
    """The records of a batch in their order; RecordsError where one cannot be read.

    `payload`: the batch's bytes behind its header. `bound`: the largest value that is kept whole.
    """
    if not batch.validate_crc():
        raise RecordsError("its checksum is wrong")
    decompress = _CODECS.get(batch.compression_type)
    if decompress is None:
        raise RecordsError(f"its compression {batch.compression_type} is none of Kafka's")
    stream = _Stream(decompress(payload))
    for _ in range(batch.records_count):
        yield _record(stream, batch, bound)


class _Stream:
    """Bytes that arrive in pieces."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._piece = b""
        self._at = 0
        self.read_bytes = 0

    def some(self, count: int) -> bytes:
        """At least one and at most so many bytes; RecordsError at the end."""
        while self._at == len(self._piece):
            self._piece, self._at = self._next(), 0
        found = self._piece[self._at : self._at + count]
        self._at += len(found)
        self.read_bytes += len(found)
        return found

    def parts(self, count: int) -> Iterator[bytes]:
        """So many bytes, in pieces."""
        while count > 0:
            found = self.some(count)
            count -= len(found)
            yield found

    def skip(self, count: int) -> None:
        """Leave so many bytes out."""
        for _ in self.parts(count):
            pass

    def varint(self) -> int:
        """A number in Kafka's zigzag encoding."""
        value = 0
        for shift in range(0, 70, 7):
            (byte,) = self.some(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
        raise RecordsError("a number in it has more than ten bytes")

    def _next(self) -> bytes:
        try:
            piece = next(self._pieces, None)
        except _BROKEN as error:
            raise RecordsError(f"it cannot be decompressed ({error})") from error
        if piece is None:
            raise RecordsError("it ends before its last record")
        if self.read_bytes > BATCH_BYTES:
            raise RecordsError(f"decompressed it has more than {BATCH_BYTES} bytes")
        return piece


def _record(stream: _Stream, batch: DefaultRecordBatch, bound: int) -> FoundRecord:
    length = stream.varint()
    end = stream.read_bytes + length
    stream.skip(1)  # attributes
    time_ms = batch.first_timestamp + stream.varint()
    if batch.timestamp_type == DefaultRecordBatch.LOG_APPEND_TIME:
        time_ms = batch.max_timestamp
    offset = batch.base_offset + stream.varint()
    stream.skip(stream.varint())  # the key
    size = stream.varint()
    kept = KeptBytes() if size < 0 else kept_of(stream.parts(size), size, bound)
    if stream.read_bytes > end:
        raise RecordsError(f"the record at offset {offset} is longer than it says")
    stream.skip(end - stream.read_bytes)  # the headers
    return FoundRecord(offset, time_ms, kept)


def _plain(payload: memoryview) -> Iterator[bytes]:
    yield bytes(payload)


def _gzip(payload: memoryview) -> Iterator[bytes]:
    stream, left = zlib.decompressobj(wbits=31), bytes(payload)
    while not stream.eof:
        piece = stream.decompress(left, PIECE_BYTES)
        left = stream.unconsumed_tail
        if not (piece or left):
            return  # it is cut off
        yield piece


def _snappy(payload: memoryview) -> Iterator[bytes]:
    data = bytes(payload)
    if not data.startswith(_XERIAL):
        yield _block(data)
        return
    at = _XERIAL_HEADER_BYTES
    while at < len(data):
        size = int.from_bytes(data[at : at + 4])
        yield _block(data[at + 4 : at + 4 + size])
        at += 4 + size


def _block(block: bytes) -> bytes:
    size = 0
    for place, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            break
    if size > BLOCK_BYTES:
        raise RecordsError(f"a block of snappy in it has {size} bytes")
    return bytes(snappy.decompress(block))


def _lz4(payload: memoryview) -> Iterator[bytes]:
    stream, left = lz4.frame.LZ4FrameDecompressor(), bytes(payload)
    while not stream.eof:
        piece = stream.decompress(left, PIECE_BYTES)
        if not piece and stream.needs_input:
            return
        left = b""
        yield piece


def _zstd(payload: memoryview) -> Iterator[bytes]:
    stream = zstandard.ZstdDecompressor(max_window_size=WINDOW_BYTES)
    with stream.stream_reader(payload, read_across_frames=True) as reader:
        while piece := reader.read(PIECE_BYTES):
            yield piece


_CODECS: Mapping[int, Callable[[memoryview], Iterator[bytes]]] = {
    DefaultRecordBatch.CODEC_NONE: _plain,
    DefaultRecordBatch.CODEC_GZIP: _gzip,
    DefaultRecordBatch.CODEC_SNAPPY: _snappy,
    DefaultRecordBatch.CODEC_LZ4: _lz4,
    DefaultRecordBatch.CODEC_ZSTD: _zstd,
}
_BROKEN = (zlib.error, zstandard.ZstdError, RuntimeError, ValueError, snappy.UncompressError)
"""What the libraries raise for bytes that they did not write."""
