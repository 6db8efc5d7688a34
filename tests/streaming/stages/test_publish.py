"""Items come in chunks of bounded size, whole and in order."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streaming.stages.publish import Chunks, cuts

ITEMS = st.lists(st.binary(min_size=1, max_size=9).map(lambda b: b.replace(b",", b".")))


@given(ITEMS, st.integers(1, 4), st.integers(1, 20))
def test_chunks_hold_every_item_once_and_are_as_large_as_may_be(
    items: list[bytes], count: int, size: int
) -> None:
    """A record that is too large would stop the hub; a small one costs every consumer."""
    sizes = np.array([len(item) for item in items], dtype=np.int64)

    parts = [items[start:end] for start, end in pairwise(cuts(sizes, Chunks(count, size)))]

    chunks = [b",".join(part) for part in parts]
    assert [item for part in parts for item in part] == items
    assert chunks == [b""] or all(parts)
    for chunk, part in zip(chunks, parts, strict=True):
        assert len(part) <= count
        assert len(chunk) <= size or len(part) == 1
    for chunk, part, following in zip(chunks, parts, parts[1:], strict=False):
        assert len(part) == count or len(chunk) + 1 + len(following[0]) > size
