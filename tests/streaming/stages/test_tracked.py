"""The rows that a consumer lacks: columns and core find the same, however the log is read."""

from collections.abc import Sequence
from itertools import pairwise

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from checkpoints.tables import CHANGELOG
from streaming.core.batch.sending import LogEntry, RangeRefresh, Refresh
from streaming.core.conflict.judge import Judged, Verdict
from streaming.core.model.change import Change, Op, RowKey
from streaming.core.model.row import Arrived, Floor, RowState
from streaming.core.model.ruv import NOTHING_KNOWN, Ruv
from streaming.core.state.topology import Subscription
from streaming.core.tracking.ranges import KeyRange
from streaming.stages.log import CHANGE, RANGE, REFRESH, changelog
from streaming.stages.tracked import (
    TRACKED_COLUMNS,
    TRACKED_ROWS,
    newest,
    of_table,
    tracked_rows,
)
from tests.harness.builders import change, csn
from tests.harness.examples import examples
from tests.reference.sending import tracked
from tests.streaming.stages.batches import HUB_EPOCH, judged, records_of

Logged = tuple[int, LogEntry]
"""An entry and its hub epoch."""

WRITERS = (1, 2, 3)
TABLES = ("t", "u", "", "a\x1fb", "🌊'\"")
KEYS = ('{"k":"1"}', '{"k":"2"}', '{"k":""}', '{"k":"\\u0000\\""}')
CSNS = st.builds(csn, st.integers(1, 6), st.sampled_from(WRITERS))
FLOORS = st.lists(
    st.builds(Floor, st.just(1), st.just(0), st.just("") | CSNS, CSNS), max_size=2
).map(tuple)
KNOWN = st.dictionaries(st.sampled_from(WRITERS), st.integers(1, 6))


@st.composite
def entries(draw: st.DrawFn) -> Logged:
    """A judged change of some replica, a refresh of an older row, or a range, for some replica."""
    hub_epoch = draw(st.integers(1, 9))
    table, rid = draw(st.sampled_from(TABLES)), draw(st.sampled_from(WRITERS))
    to, name = draw(st.sampled_from(WRITERS)), draw(st.sampled_from(KEYS))
    number = csn(draw(st.integers(1, 6)), rid)
    kind = draw(st.sampled_from((CHANGE, CHANGE, REFRESH, RANGE)))
    if kind == RANGE:
        first, last = draw(st.none() | st.just(KEYS[0])), draw(st.none() | st.just(KEYS[1]))
        return hub_epoch, RangeRefresh(to, KeyRange(table, first, last))
    if kind == REFRESH:
        known = draw(st.booleans())  # nobody wrote the row: no CSN, epoch 0
        row = RowState(rid, draw(st.integers(1, hub_epoch)), number) if known else RowState()
        return hub_epoch, Refresh(to, table, name, row, "late")
    one = Arrived(Change(number, rid, 1, table, name, Op.UPDATE, "{}"), "", "", 0, 0, 0, 0)
    before = RowState(1, draw(st.integers(0, 9)))  # judged against any row, which does not count
    after = RowState(rid, hub_epoch, number, exists=True, image="{}")
    return hub_epoch, Judged(one, draw(st.sampled_from(Verdict)), None, 0, before, after)


def log_of(found: Sequence[Logged]) -> pa.Table:
    """Entries as rows of the changelog."""
    return pa.Table.from_pylist([_row(*one) for one in found], schema=CHANGELOG)


def _row(hub_epoch: int, one: LogEntry) -> dict[str, object]:
    found: dict[str, object] = {"hub_epoch": hub_epoch}
    match one:
        case RangeRefresh():
            found |= {"kind": RANGE, "table": one.range.table, "to": one.to}
            found |= {"key_after": one.range.after, "key": one.range.to}
        case Refresh():
            found |= {"kind": REFRESH, "table": one.table, "key": one.key, "to": one.to}
            found |= {"csn": one.row.csn, "rid": one.row.author, "row_epoch": one.row.hub_epoch}
        case Judged():
            change, verdict = one.arrived.change, one.verdict.value
            found |= {"kind": CHANGE, "table": change.table, "key": change.key, "csn": change.csn}
            found |= {"rid": change.rid, "row_epoch": one.before.hub_epoch, "verdict": verdict}
    return found


def as_dict(rows: pa.Table) -> dict[RowKey, int]:
    """TRACKED_ROWS as core names them; each row is there once."""
    assert rows.schema == TRACKED_ROWS
    keys = list(zip(rows["table"].to_pylist(), rows["key"].to_pylist(), strict=True))
    assert len(keys) == len(set(keys))
    return dict(zip(keys, rows["tracked"].to_pylist(), strict=True))


def ruv_of(known: dict[int, int]) -> Ruv:
    """The changes up to these numbers."""
    ruv = NOTHING_KNOWN
    for rid, number in known.items():
        ruv = ruv.with_csn(csn(number, rid))
    return ruv


@examples()
@given(
    st.lists(entries(), max_size=14),
    st.sampled_from(WRITERS),
    st.sets(st.sampled_from(TABLES)),
    KNOWN,
    FLOORS,
)
def test_columns_and_core_agree_on_what_a_consumer_lacks(
    found: list[Logged],
    consumer: int,
    tables: set[str],
    known: dict[int, int],
    floors: tuple[Floor, ...],
) -> None:
    """A row that columns miss is never sent; one too new an epoch is left to batches that are gone.

    Names and keys are any text, and a row that nobody wrote has neither author nor CSN.
    """
    log, ruv = log_of(found).select(list(TRACKED_COLUMNS)), ruv_of(known)

    subscription = Subscription("a", consumer, frozenset(tables))
    rows = tracked_rows(log, subscription, ruv, floors)

    assert as_dict(rows) == tracked(found, consumer, tables, ruv, floors)


@examples(40)
@given(
    st.lists(entries(), max_size=14),
    st.sampled_from(WRITERS),
    st.lists(st.integers(0, 14), max_size=3),
    KNOWN,
)
def test_the_log_may_be_read_in_parts_and_in_any_order(
    found: list[Logged], consumer: int, cuts: list[int], known: dict[int, int]
) -> None:
    """Memory is bounded by a part of the log, not by how long a consumer was away."""
    everything, ruv = Subscription("a", consumer, frozenset(TABLES)), ruv_of(known)
    at_once = tracked_rows(log_of(found), everything, ruv, ())
    bounds = [0, *sorted(min(cut, len(found)) for cut in cuts), len(found)]
    parts = [found[start:end] for start, end in pairwise(bounds)]

    total = newest([])
    for part in reversed(parts):
        total = newest([total, tracked_rows(log_of(part), everything, ruv, ())])

    assert as_dict(total) == as_dict(at_once)


def test_a_log_in_several_chunks_is_read_like_one() -> None:
    """Delta gives as many chunks as the table has files."""
    first, second = (csn(1), 3), (csn(2), 4)
    logged = [
        (epoch, Refresh(2, "t", KEYS[0], RowState(1, epoch, text), "late"))
        for text, epoch in (first, second)
    ]
    chunked = pa.concat_tables([log_of(logged[:1]), log_of([]), log_of(logged[1:])])

    rows = tracked_rows(chunked, Subscription("a", 2, frozenset()), NOTHING_KNOWN, ())

    assert as_dict(rows) == {("t", KEYS[0]): 4}


def test_what_is_lacked_of_one_table() -> None:
    """The others are sorted by themselves."""
    rows = newest(
        [
            pa.Table.from_pylist(
                [{"table": name, "key": KEYS[0], "tracked": 3} for name in ("t", "u")],
                schema=TRACKED_ROWS,
            )
        ]
    )

    found = of_table(rows, "u")

    assert found.to_pylist() == [{"key": KEYS[0], "tracked": 3}]
    assert of_table(rows, "v").num_rows == 0


def test_a_batch_as_it_is_logged_is_tracked() -> None:
    """An accepted change at its hub epoch, the refresh of a loser at that of the row it shows."""
    k, theirs = ("t", '{"k":"k"}'), RowState(2, 3, csn(1, 2), exists=True, image="{}")
    verdicts = judged(records_of(change(10, "l"), change(11)), {k: theirs})
    log = changelog(verdicts, 8, HUB_EPOCH, [(1, KeyRange("t")), (2, KeyRange("u"))])

    origin, other = (
        tracked_rows(log, Subscription("a", rid, frozenset("t")), NOTHING_KNOWN, ())
        for rid in (1, 2)
    )

    assert as_dict(origin) == {k: 3}
    assert as_dict(other) == {("t", '{"k":"l"}'): HUB_EPOCH}
