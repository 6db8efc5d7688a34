"""Items come in chunks of bounded size, whole and in order."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from checkpoints.tables import CHANGELOG
from streaming.core.batch.sending import Refresh
from streaming.core.conflict.judge import Judged, Verdict
from streaming.core.model.change import Change, Op
from streaming.core.model.row import Arrived, Floor, RowState
from streaming.core.model.ruv import NOTHING_KNOWN
from streaming.core.state.topology import Subscription
from streaming.stages.publish import ChunkLimits, Outgoing, cuts
from streaming.stages.recipients import Recipients, sent_rows
from tests.harness.builders import csn, send_range
from tests.reference.sending import RowEntry, is_for, last_of_rows, row_of

ITEMS = st.lists(st.binary(min_size=1, max_size=9).map(lambda b: b.replace(b",", b".")))


@given(ITEMS, st.integers(1, 4), st.integers(1, 20))
def test_chunks_hold_every_item_once_and_are_as_large_as_may_be(
    items: list[bytes], count: int, size: int
) -> None:
    """A record that is too large would stop the hub; a small one costs every consumer."""
    sizes = np.array([len(item) for item in items], dtype=np.int64)

    parts = [items[start:end] for start, end in pairwise(cuts(sizes, ChunkLimits(count, size)))]

    chunks = [b",".join(part) for part in parts]
    assert [item for part in parts for item in part] == items
    assert chunks == [b""] or all(parts)
    for chunk, part in zip(chunks, parts, strict=True):
        assert len(part) <= count
        assert len(chunk) <= size or len(part) == 1
    for chunk, part, following in zip(chunks, parts, parts[1:], strict=False):
        assert len(part) == count or len(chunk) + 1 + len(following[0]) > size


WRITERS = (1, 2, 3)
CSNS = st.builds(csn, st.integers(1, 6), st.sampled_from(WRITERS))
FLOORS = st.lists(
    st.builds(Floor, st.just(1), st.just(0), st.just("") | CSNS, CSNS), max_size=2
).map(tuple)


@st.composite
def entries(draw: st.DrawFn) -> RowEntry:
    """A judged change of some replica, or a refresh for some replica."""
    table, rid = draw(st.sampled_from(["t", "u"])), draw(st.sampled_from(WRITERS))
    key = draw(st.sampled_from(['{"k":"1"}', '{"k":"2"}']))
    number = csn(draw(st.integers(1, 6)), rid)
    if draw(st.booleans()):
        row = RowState(rid, 1, number, exists=True, image="{}")
        return Refresh(draw(st.sampled_from(WRITERS)), table, key, row, "conflict")
    change = Change(number, rid, 1, table, key, Op.UPDATE, "{}")
    row = RowState(rid, 1, number, exists=True, image="{}")
    verdict = draw(st.sampled_from(Verdict))
    return Judged(Arrived(change, "", "", 0, 0, 0, 0), verdict, None, 0, RowState(), row)


def log_of(found: list[RowEntry]) -> pa.Table:
    """Entries as rows of the changelog, one behind the other."""
    rows = [
        {
            "hub_epoch": 1 + place // 4,
            "place": place % 4,
            "kind": "refresh" if isinstance(one, Refresh) else "change",
            "rid": one.row.author if isinstance(one, Refresh) else one.arrived.change.rid,
            "csn": one.row.csn if isinstance(one, Refresh) else one.arrived.change.csn,
            "table": row_of(one)[0],
            "verdict": None if isinstance(one, Refresh) else one.verdict.value,
            "to": one.to if isinstance(one, Refresh) else None,
            "key": row_of(one)[1],
            "op": "update",
        }
        for place, one in enumerate(found)
    ]
    return pa.Table.from_pylist(rows, schema=CHANGELOG)


@given(
    st.lists(entries(), min_size=1, max_size=12),
    st.sampled_from(WRITERS),
    st.sets(st.sampled_from(["t", "u"])),
    st.dictionaries(st.sampled_from(WRITERS), st.integers(1, 6)),
    FLOORS,
    st.integers(1, 3),
)
def test_columns_and_core_agree_on_who_is_sent_what(
    found: list[RowEntry],
    consumer: int,
    tables: set[str],
    known: dict[int, int],
    floors: tuple[Floor, ...],
    epochs: int,
) -> None:
    """A row that only one of them sends is lost, or sent back to a replica that has it.

    Of several hub epochs the last of each row is sent, whatever order the log is read in.
    """
    ruv = NOTHING_KNOWN
    for rid, number in known.items():
        ruv = ruv.with_csn(csn(number, rid))
    log, subscription = log_of(found), Subscription("a", consumer, frozenset(tables))

    outgoing = Outgoing(log)
    marked = Recipients(log).of(subscription, ruv, floors)
    backwards = np.arange(len(found))[::-1]
    sent = sent_rows(log.take(backwards), subscription, send_range(0, epochs, 0, ruv), floors)

    mine = [one for one in found if is_for(one, consumer, tables, ruv, floors)]
    assert [found[place] for place in np.flatnonzero(marked)] == mine
    assert outgoing.sends(subscription, ruv, floors) == bool(mine)
    expected = last_of_rows(mine) if epochs > 1 else mine
    assert [id(found[backwards[place]]) for place in sent] == [id(one) for one in expected]
