"""What the agent writes into the log is what it reads from it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.postgres.messages import (
    AppliedMessage,
    EpochMessage,
    OwnMessage,
    SnapshotRows,
    decode,
    encode,
)
from streaming.core.model.errors import StateError
from streaming.core.model.ruv import Ruv
from streaming.core.records.record import Applied, Refused, Snapshot

RUV = Ruv("5f00").with_csn("6b49d200000500020000")
NUMBERS = st.integers(0, 2**53)
TEXTS = st.text()
MESSAGES: st.SearchStrategy[OwnMessage] = st.one_of(
    st.builds(
        AppliedMessage,
        st.builds(Applied, NUMBERS, NUMBERS, NUMBERS, st.just(RUV), NUMBERS),
        TEXTS,
        st.tuples(NUMBERS, st.integers(-1, 65_535)),
    ),
    st.builds(Refused, NUMBERS, TEXTS, TEXTS, TEXTS, TEXTS, TEXTS),
    st.builds(Snapshot, st.sampled_from(["begin", "end"]), TEXTS, st.none() | TEXTS, NUMBERS),
    st.builds(SnapshotRows, TEXTS, TEXTS, st.lists(st.tuples(TEXTS, TEXTS)).map(tuple)),
    st.builds(EpochMessage, NUMBERS),
)


@given(MESSAGES)
def test_a_message_is_read_as_it_was_written(message: OwnMessage) -> None:
    """The fold over the log takes epoch, position and refusals from nowhere else."""
    assert decode(encode(message)) == message
    assert decode(encode(message).encode()) == message


@pytest.mark.parametrize(
    "content",
    [
        *("", "{", "[]", "1", '"applied"', "{}", '{"kind":"merged"}', '{"kind":"applied"}'),
        *('{"kind":"epoch"}', '{"kind":"epoch","epoch":1,"more":2}', '{"kind":"refused","csn":""}'),
        '{"kind":"snapshot","phase":"rows","id":"1","table":"t","rows":[["a"]]}',
        '{"kind":"applied","epoch":1,"covers":1,"generation":1,"ruv":["x"],"session":"","seen":[0,0]}',
    ],
)
def test_what_no_version_wrote_is_named(content: str) -> None:
    """A message that is left out would leave the epoch behind for ever."""
    with pytest.raises(StateError, match="cannot be read"):
        decode(content)
