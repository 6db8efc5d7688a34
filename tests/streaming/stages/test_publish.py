"""Items come in chunks of bounded size, whole and in order."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from checkpoints.tables import CHANGELOG
from connectors.wire import item_text
from streaming.core.batch.sending import Refresh
from streaming.core.conflict.judge import Cause, Judged, Verdict
from streaming.core.model.change import HUB_RID, Change, Op
from streaming.core.model.column_filter import ColumnFilter
from streaming.core.model.mask import ConstantMask
from streaming.core.model.row import Arrived, Floor, RowState
from streaming.core.model.ruv import NOTHING_KNOWN
from streaming.core.model.table import ColumnType, Table
from streaming.core.state.topology import Subscription
from streaming.filters.row_predicate import RowPredicate
from streaming.stages.publish import ChunkLimits, Outgoing, cuts, shown
from streaming.stages.recipients import Recipients, sent_rows
from tests.harness.builders import csn, send_range
from tests.reference.sending import RowEntry, is_for, items_of, last_of_rows, row_of

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
IMAGES = (
    None,
    "{}",
    '{"k":"1","n":1}',
    '{"k":"1","n":2}',
    '{"k":"1","n":null}',
    '{"k":"\\"n\\":"}',
    '{"k":"1","n":1,"o\\"":"n"}',
    '{"k":"{\\"n\\":1,\\"n","o\\"":",\\"n\\":"}',
)
NUMBERED = Table("t", ("k",), {"k": ColumnType.TEXT, "n": ColumnType.INT32})
FILTERED = RowPredicate("n <> 2", NUMBERED)
TABLES = {
    "t": replace(NUMBERED, columns={**NUMBERED.columns, 'o"': ColumnType.TEXT}),
    "u": replace(NUMBERED, name="u"),
}
SHORT = ColumnFilter(frozenset("k"))
MASKED = ColumnFilter(frozenset("kn"), {"n": ConstantMask("7")})
CSNS = st.builds(csn, st.integers(1, 6), st.sampled_from(WRITERS))
FLOORS = st.lists(
    st.builds(Floor, st.just(1), st.just(0), st.just("") | CSNS, CSNS), max_size=2
).map(tuple)


@st.composite
def entries(draw: st.DrawFn) -> RowEntry:
    """A judged change of some replica, or a refresh for some replica."""
    table, rid = draw(st.sampled_from(["t", "u"])), draw(st.sampled_from((*WRITERS, HUB_RID)))
    key = draw(st.sampled_from(['{"k":"1"}', '{"k":"2"}']))
    number = csn(draw(st.integers(1, 6)), rid)
    image = draw(st.sampled_from(IMAGES))
    row = RowState(rid, 1, number, exists=image is not None, image=image)
    if draw(st.booleans()):
        return Refresh(draw(st.sampled_from(WRITERS)), table, key, row, "conflict")
    before = draw(st.sampled_from(IMAGES))
    op = draw(st.sampled_from([Op.INSERT, Op.UPDATE])) if image is not None else Op.DELETE
    change = Change(number, rid, 1, table, key, op, image, before)
    met = RowState(csn=draw(st.sampled_from([None, csn(9)])))
    verdict, cause = draw(st.sampled_from(Verdict)), draw(st.sampled_from([None, Cause.AUTHOR]))
    return Judged(Arrived(change, "", "", 0, 0, 0, 0), verdict, cause, 0, met, row)


def shown_columns(one: RowEntry) -> dict[str, object]:
    """The columns of an entry that say what is sent of it, and that filters ask for."""
    if isinstance(one, Refresh):
        op = "delete" if one.row.image is None else "update"
        return {"op": op, "image": one.row.image, "cause": one.cause}
    change = one.arrived.change
    return {
        "op": change.op.value,
        "before": change.before,
        "image": one.after.image,
        "concurrent": one.concurrent,
        "row_csn": one.before.csn,
    }


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
            **shown_columns(one),
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
    st.sampled_from([{}, {"t": FILTERED}, {"t": FILTERED, "u": FILTERED}]),
    st.sampled_from([{}, {"t": SHORT}, {"t": SHORT, "u": MASKED}]),
    st.booleans(),
)
def test_columns_and_core_agree_on_who_is_sent_what(
    found: list[RowEntry],
    consumer: int,
    tables: set[str],
    known: dict[int, int],
    floors: tuple[Floor, ...],
    epochs: int,
    filters: dict[str, RowPredicate],
    columns: dict[str, ColumnFilter],
    deletes: bool,  # noqa: FBT001 - Hypothesis gives it by its place
) -> None:
    """A row that only one of them sends is lost, or sent back to a replica that has it.

    Of several hub epochs the last of each row is sent, whatever order the log is read in.
    """
    ruv = NOTHING_KNOWN
    for rid, number in known.items():
        ruv = ruv.with_csn(csn(number, rid))
    log = log_of(found)
    subscription = Subscription(
        *("a", consumer, frozenset(tables)), rows=filters, columns=columns, sends_deletes=deletes
    )

    outgoing = Outgoing(log, TABLES)
    marked = Recipients(log).of(subscription, ruv, floors)
    backwards = np.arange(len(found))[::-1]
    sent = sent_rows(log.take(backwards), subscription, send_range(0, epochs, 0, ruv), floors)

    mine = [
        one for one in found if is_for(one, consumer, tables, ruv, floors, filters, deletes=deletes)
    ]
    assert [found[place] for place in np.flatnonzero(marked)] == mine
    assert outgoing.sends(subscription, ruv, floors) == bool(mine)
    expected = last_of_rows(mine) if epochs > 1 else mine
    assert [id(found[backwards[place]]) for place in sent] == [id(one) for one in expected]
    items = shown(outgoing, subscription).items.to_pylist()
    texts = [
        [item_text(item).encode() for item in items_of(one, filters, columns, TABLES)]
        for one in found
    ]
    assert [[item] for item in items] == texts
