"""The facts of a batch are in topic order, and only plain changes are marked as plain."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from streaming.core.model.function import parse_function
from streaming.core.records.record import Commit, Heartbeat, Reason
from streaming.stages.checked import checked_records, is_away, texts, with_images
from tests.harness.builders import change, csn
from tests.harness.carried import facts_from
from tests.streaming.core.intake.speaker import T
from tests.streaming.stages.batches import checked, records_of


def test_facts_are_ordered_by_replica_and_offset() -> None:
    """Spark delivers partitions in any order; a topic is read in its own."""
    one = records_of(change(10), change(11))
    two = records_of(change(10, rid=2), rid=2)

    found = checked(*two, *reversed(one))

    assert found.rid.tolist() == [1, 1, 1, 2, 2]
    assert found.csn.tolist()[1:3] == [csn(10).encode(), csn(11).encode()]


def test_only_valid_changes_and_commits_are_marked() -> None:
    """What is marked skips the rules that look at one record after the other."""
    hello, good, bad, end, beat = records_of(
        change(10, tx=10), change(11), Commit(csn(10)), Heartbeat(2)
    )

    found = checked(hello, good, replace(bad, reason=Reason.SKEW), end, beat)

    assert found.plain.tolist() == [False, True, False, False, False]
    assert found.commit.tolist() == [False, False, False, True, False]
    assert found.prim_csn.tolist() == [b"", csn(10).encode(), b"", csn(10).encode(), b""]


def test_a_csn_that_stands_twice_is_not_plain() -> None:
    """Only core compares the contents of the two."""
    found = checked(*records_of(change(10), change(11), change(10, value="other")))

    assert found.plain.tolist() == [False, False, True, False]


@pytest.mark.parametrize(("image", "plain"), [('{"k":"k","v":"1"}', True), ('{"k":"k"}', False)])
def test_a_change_without_the_compared_column_is_not_plain(image: str, *, plain: bool) -> None:
    """Its table's function could not compare it; core quarantines it or merges it."""
    tables = {"t": replace(T, function=parse_function("MAX(v)"))}
    records = records_of(change(10)._replace(after=image))

    found = checked_records(facts_from(records, tables), tables)

    assert found.plain.tolist() == [False, plain]


def test_images_are_fetched_for_the_marked_changes_alone() -> None:
    """What nobody contends stays on the executors."""
    table = checked(*records_of(change(10), change(11))).table
    away = table.set_column(
        table.schema.get_field_index("size"), "size", pa.array([None, 50, 60], pa.int64())
    )
    fetched = list[pa.Table]()

    def fetch(places: pa.Table) -> pa.Table:
        fetched.append(places)
        return pa.table({"before": ["b"], "after": ["a"]})

    found = with_images(away, np.array([False, False, True]), fetch)

    assert fetched[0].to_pylist() == [{"rid": 1, "offset": 2}]
    assert found["after"].to_pylist() == [None, change(10).after, "a"]
    assert is_away(found).tolist() == [False, True, False]


def test_csns_compare_as_their_texts_do() -> None:
    """Fixed-width bytes replace twenty comparisons of characters."""
    column = pa.chunked_array([[csn(3), None], [csn(20), ""]])

    found = texts(column)

    assert found.tolist() == [csn(3).encode(), b"", csn(20).encode(), b""]
    assert found[0] < found[2]
