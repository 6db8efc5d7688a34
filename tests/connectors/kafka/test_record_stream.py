"""Records of a batch are read one by one, within a bound, and as kafka-python reads them."""

from collections.abc import Sequence
from contextlib import suppress
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from kafka.record.util import calc_crc32c

from connectors.kafka import record_stream
from connectors.kafka.record_stream import FoundRecord, RecordsError, records_of
from streaming.core.records.kept_bytes import HEAD_BYTES, KeptBytes, kept_bytes

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
BOUND = 100_000
Values = Sequence[bytes | None]


def batch_of(values: Values, codec: int) -> bytearray:
    """A batch as kafka-python writes it, with a key and a header at each record."""
    builder = DefaultRecordBatchBuilder(
        2,
        codec,
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=2**31 - 1,
    )
    for offset, value in enumerate(values):
        builder.append(offset, 1_700_000_000_000 + offset, b"key", value, [("name", b"value")])
    return bytearray(builder.build())


def sign(data: bytearray) -> None:
    """Give a batch the checksum of what it holds."""
    crc = DefaultRecordBatch.CRC_OFFSET
    body = memoryview(data)[DefaultRecordBatch.ATTRIBUTES_OFFSET :]
    data[crc : crc + 4] = calc_crc32c(body).to_bytes(4)


def read(data: bytes | bytearray, bound: int = BOUND) -> list[FoundRecord]:
    """The records of a batch."""
    payload = memoryview(data)[DefaultRecordBatch.HEADER_STRUCT.size :]
    return list(records_of(DefaultRecordBatch(data), payload, bound))


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
@given(values=st.lists(st.none() | st.binary(max_size=200), min_size=1, max_size=20))
def test_each_record_is_read_as_it_was_written(codec: int, values: Values) -> None:
    """An agent may use any client and any of Kafka's compressions."""
    found = read(batch_of(values, codec))

    kept = [KeptBytes() if v is None else KeptBytes(v, len(v)) for v in values]
    assert found == [
        FoundRecord(offset, 1_700_000_000_000 + offset, one) for offset, one in enumerate(kept)
    ]


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_of_a_value_beyond_the_bound_head_length_and_hash_are_kept(codec: int) -> None:
    """So much is enough to know it again, and the records beside it are read as ever."""
    large = bytes(3_000_000) + b"end"

    found = read(batch_of([b"before", large, b"behind"], codec))

    assert [one.kept for one in found] == [
        *(KeptBytes(b"before", 6), kept_bytes(large, BOUND), KeptBytes(b"behind", 6)),
    ]
    assert len(kept_bytes(large, BOUND).value or b"") == HEAD_BYTES


@given(
    codec=st.sampled_from(list(CODECS.values())),
    changes=st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 255)), min_size=1),
    cut=st.integers(0, 100),
    has_sum=st.booleans(),
)
def test_whatever_is_in_a_batch_it_is_read_or_refused(
    codec: int, changes: list[tuple[int, int]], cut: int, *, has_sum: bool
) -> None:
    """Who writes a batch himself may put anything into it, with the right checksum."""
    data = batch_of([b"a" * 300, None, b"b" * 300], codec)
    header = DefaultRecordBatch.HEADER_STRUCT.size
    del data[max(header, len(data) - cut) :]
    for place, byte in changes:
        if header + place < len(data):
            data[header + place] = byte
    if has_sum:
        sign(data)

    with suppress(RecordsError):
        assert len(read(data)) == 3


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_a_batch_that_is_cut_off_is_refused(codec: int) -> None:
    """Its checksum is right, and who waits for the rest waits for ever."""
    data = batch_of([Random(1).randbytes(3_000)] * 2, codec)
    header = DefaultRecordBatch.HEADER_STRUCT.size
    del data[(header + len(data)) // 2 :]
    sign(data)

    with pytest.raises(RecordsError, match=r"ends before|cannot be decompressed"):
        read(data)


def test_a_batch_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some kB may hold terabytes, at which a hub would read for hours."""
    monkeypatch.setattr(record_stream, "BATCH_BYTES", 2_000_000)

    with pytest.raises(RecordsError, match="more than 2000000 bytes"):
        read(batch_of([bytes(4_000_000)], CODECS["zstd"]))
