"""Ranges that were sent and pages that are sent: the columns decide as core does."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streaming.core.batch.batch_judge import BatchJudge
from streaming.core.batch.sending import PAGE, Refresh
from streaming.core.conflict.judge import Cause, Judged, Verdict
from streaming.core.intake.intake import Intake
from streaming.core.model.change import Change, Op, RowKey
from streaming.core.model.function import parse_function
from streaming.core.model.row import Realign, RowState, with_image
from streaming.core.model.row_name import key_of, text_of
from streaming.core.model.truncation import ALL_KEYS
from streaming.core.records.record import Commit, ReceivedRecord, Record
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.hub_state import HubState
from streaming.core.state.topology import Topology
from streaming.core.tracking.progress import ResyncMode, WorkKind, begin
from streaming.core.tracking.ranges import KeyRange, RangeRealign
from streaming.core.tracking.resync import PageRows, ResyncPage
from streaming.stages.judge import LAST, Verdicts
from tests.harness.builders import change, csn
from tests.harness.examples import examples
from tests.reference.batch import in_order
from tests.streaming.core.intake.speaker import RULES, Speaker, T, fresh_state
from tests.streaming.stages.batches import HUB_EPOCH, judged

KEYS = ("a", "b", "c", "d")
FUNCTIONS = ("EPOCH", "EPOCH_TRANS", "EPOCH2", "PASS", "CSN")


def row_key(name: str) -> RowKey:
    """The row of this key."""
    return "t", f'{{"k":"{name}"}}'


# -- random batches over ranges and pages --------------------------------------------------------

epochs = st.integers(0, HUB_EPOCH - 1)
ends = st.none() | st.sampled_from(KEYS).map(lambda name: row_key(name)[1])
ranges = st.lists(
    st.builds(
        RangeRealign,
        st.builds(KeyRange, st.sampled_from(("t", "u")), ends, ends),
        st.sampled_from((1, 2)),
        epochs,
        rejects_transaction=st.booleans(),
    ),
    max_size=3,
).map(tuple)
realigns = st.lists(
    st.builds(
        Realign,
        st.sampled_from((1, 2)),
        epochs,
        st.sampled_from((-1, 2)),
        rejects_transaction=st.booleans(),
        is_of_range=st.booleans(),
    ),
    max_size=2,
)


@st.composite
def row_states(draw: st.DrawFn) -> RowState:
    """A row that one of the replicas wrote, or has deleted, at some hub epoch."""
    rid, epoch = draw(st.sampled_from((1, 2))), draw(st.integers(1, HUB_EPOCH - 1))
    image = draw(st.none() | st.just('{"k":"k","v":"old"}'))
    realign = tuple(draw(realigns))
    return RowState(rid, epoch, csn(epoch, rid), image is not None, image, realign)


rows = st.dictionaries(st.sampled_from(KEYS).map(row_key), row_states())


@st.composite
def topics(draw: st.DrawFn) -> list[ReceivedRecord]:
    """What both replicas wrote, each in a session that covers something; some in transactions."""
    received: list[ReceivedRecord] = []
    for rid in (1, 2):
        speaker = Speaker(rid)
        speaker.hello(covers=draw(epochs))
        records: list[Record] = []
        for n in range(draw(st.integers(0, 4))):
            number, name = 40 + 4 * n, draw(st.sampled_from(KEYS))
            value = draw(st.sampled_from(("x", "y", None)))
            if draw(st.integers(0, 3)):
                records.append(change(number, name, value, rid=rid))
            else:
                one = change(number, name, value, rid=rid, tx=number)
                other = change(number + 1, draw(st.sampled_from(KEYS)), "z", rid=rid, tx=number)
                records += [
                    one._replace(table=draw(st.sampled_from(("t", "u")))),
                    draw(st.sampled_from((other, truncate(other)))),
                    Commit(csn(number, rid)),
                ]
        speaker.send(*records)
        received += speaker.received
    return received


def truncate(one: Change) -> Change:
    """A truncate of the table in the place of a change."""
    return one._replace(key=ALL_KEYS, op=Op.TRUNCATE, after=None)


@st.composite
def pages(draw: st.DrawFn) -> list[ResyncPage]:
    """The page of a resync of replica 2: tracked rows, each at some hub epoch, or none."""
    epoch_of = draw(st.none() | st.dictionaries(st.sampled_from(KEYS), epochs))
    if epoch_of is None:
        return []
    tracked = tuple((row_key(name)[1], epoch) for name, epoch in sorted(epoch_of.items()))
    part = PageRows(KeyRange("t"), WorkKind.PAGE, len(tracked), tracked)
    whole = PageRows(KeyRange("u"), WorkKind.SCAN, 3)
    return [ResyncPage("a2", begin(ResyncMode.INCREMENTAL, 1, []), (part, whole))]


def hub_after(found: tuple[RangeRealign, ...]) -> HubState:
    """A hub that has sent these ranges."""
    return replace(fresh_state(HUB_EPOCH - 1), ranges=found)


def by_core(
    received: Sequence[ReceivedRecord],
    before: Mapping[RowKey, RowState],
    topology: Topology,
    state: HubState,
    sent: Sequence[ResyncPage],
) -> BatchJudge:
    """The judge of a batch that has judged it one change at a time."""
    intake = Intake(state, topology)
    for record in received:
        intake.take(record)
    one = BatchJudge(before, HUB_EPOCH, topology, intake.replicas, ranges=list(state.ranges))
    for transaction in in_order(intake.eligible):
        one.judge(transaction)
    for page in sent:
        one.send_tracked(page, 2)
    return one


def verdicts_of(found: Verdicts) -> list[tuple[str, Verdict, Cause | None]]:
    """(CSN, verdict, cause) of every change in hub order; what core was not asked is accepted."""
    csns = found.changes["csn"].to_pylist()
    asked = {place: (one.verdict, one.cause) for place, one in found.judged.items()}
    return [(text, *asked.get(n, (Verdict.ACCEPTED, None))) for n, text in enumerate(csns)]


def truncating() -> list[ReceivedRecord]:
    """A transaction that empties table t, whose last change is the record at offset 2."""
    speaker = Speaker(1)
    speaker.hello(covers=0)
    one = change(40, "a", "x", rid=1, tx=40)
    speaker.send(one, truncate(change(41, "a", "z", rid=1, tx=40)), Commit(csn(40, 1)))
    return speaker.received


BEHIND = RowState(1, 1, csn(1, 1), realign=(Realign(1, 0, 2, is_of_range=True),))
"""A row that its replica was sent behind its record at offset 2."""


@examples(200)
@example(truncating(), {row_key("b"): BEHIND}, (RangeRealign(KeyRange("t"), 1, 0),), [], "EPOCH")
@given(topics(), rows, ranges, pages(), st.sampled_from(FUNCTIONS))
def test_columns_leave_to_core_what_a_range_or_a_page_touches(
    received: list[ReceivedRecord],
    before: dict[RowKey, RowState],
    sent: tuple[RangeRealign, ...],
    paged: list[ResyncPage],
    function: str,
) -> None:
    """They may only say "surely accepted": verdicts, refreshes and rows are those of core."""
    t = replace(T, function=parse_function(function))
    topology = replace(RULES, tables={"t": t, "u": replace(t, name="u")})
    state = hub_after(sent)

    found = judged(
        received,
        before,
        taken_under=topology,
        judged_under=topology,
        state=state,
        pages=paged,
    )

    core = by_core(received, before, topology, state, paged)
    entries = core.take_entries()
    judgements = [one for one in entries if isinstance(one, Judged)]
    assert verdicts_of(found) == [
        (one.arrived.change.csn, one.verdict, one.cause) for one in judgements
    ]
    expected = [one for one in entries if isinstance(one, Refresh)]
    assert [one for _, one in found.refreshes] == expected
    tables = core.tables_after()
    assert (found.tables.truncations, found.tables.rescans) == (tables.truncations, tables.rescans)
    core_rows = {text_of(key): with_image(row, None) for key, row in core.changed.items()}
    left = core_rows.keys() - found.rows.keys()  # those that only a truncate took
    assert {key_of(name)[0] for name in left} <= tables.truncations.keys()
    more = found.rows.keys() - core_rows.keys()  # looked up for a page, and truncated
    truncates = {name: tables.truncations[key_of(name)[0]] for name in more}
    tombstones = {name: one.tombstone(RowState()) for name, one in truncates.items()}
    kept = {name: row for name, row in core_rows.items() if name not in left}
    assert without_ranges(found.rows) == without_ranges(kept | tombstones)


def without_ranges(found: Mapping[str, RowState]) -> dict[str, RowState]:
    """The rows without the realigns of ranges, which the state keeps: only core adds them."""
    return {
        name: row._replace(realign=tuple(one for one in row.realign if not one.is_of_range))
        for name, row in found.items()
    }


# -- what goes to core, and what does not ----------------------------------------------------------

K = row_key("k")
MINE = RowState(2, 3, csn(1, 2), exists=True, image='{"k":"k","v":"mine"}')


def write(covers: int) -> list[ReceivedRecord]:
    """What replica 2 wrote on row K with this much reflected."""
    speaker = Speaker(2)
    return [*speaker.hello(covers=covers), *speaker.send(change(40, rid=2))]


@pytest.mark.parametrize(
    ("covers", "one", "is_asked"),
    [
        pytest.param(3, RangeRealign(KeyRange("t"), 2, 4), True, id="not reflected"),
        pytest.param(4, RangeRealign(KeyRange("t"), 2, 4), False, id="reflected"),
        pytest.param(3, RangeRealign(KeyRange("t"), 1, 4), False, id="another replica's"),
        pytest.param(3, RangeRealign(KeyRange("u"), 2, 4), False, id="another table"),
    ],
)
def test_a_range_makes_only_what_it_may_block_slow(
    covers: int, one: RangeRealign, *, is_asked: bool
) -> None:
    """A range of a whole table stays in the state until its replica has reflected it."""
    found = judged(write(covers), {K: MINE}, state=hub_after((one,)))

    assert bool(found.judged) is is_asked


def test_the_rows_of_a_page_stand_behind_everything_that_was_judged() -> None:
    """In hub order the last of the batch; the changelog numbers them so."""
    part = PageRows(KeyRange("t"), WorkKind.PAGE, 1, ((K[1], 3),))
    page = ResyncPage("a2", begin(ResyncMode.INCREMENTAL, 1, []), (part,))
    agreement = AgreementState("a2", 2)
    state = replace(hub_after(()), agreements={"a1": AgreementState("a1", 1), "a2": agreement})

    found = judged(write(3)[:1], {K: MINE}, state=state, pages=[page])

    assert found.refreshes == [(LAST, Refresh(2, *K, MINE, PAGE))]
    assert found.rows == {text_of(K): MINE._replace(image=None, realign=(Realign(2, HUB_EPOCH),))}
