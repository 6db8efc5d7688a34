"""A benchmark's input must be what an agent writes: else it measures another hub's way."""

import pytest
from pyspark.sql import SparkSession

from connectors import wire
from streaming.core.model.change import Change, Op
from tests.benchmarks.load import SHARED_ROWS, TABLE, Load, frame, session_of


def written(load: Load, n: int) -> bytes:
    """Change `n` of alpha as connectors/wire.py writes it, its transaction begun with it."""
    row, first = load.row(1, n), n // load.transaction * load.transaction
    prim = load.csn(1, first) if load.transaction > 1 else None
    after = (
        f'{{"id":"{row}","owner":"customer {row} of the bank at the harbour",'
        f'"balance":"{n}.25","sent_ms":"0"}}'
    )
    key = f'{{"id":"{row}"}}'
    change = Change(load.csn(1, n), 1, 1, TABLE.name, key, Op.UPDATE, after, prim_csn=prim)
    return wire.encode(session_of("alpha"), change)


def test_a_steady_change_is_canonical() -> None:
    """The skim knows canonical records alone; another would take the slow way."""
    load = Load(1_700_000_000, shared_of_1000=15)

    texts = [load.text("alpha", 1, n, 1, 0).encode() for n in (0, 66, 60_001)]

    assert texts == [written(load, n) for n in (0, 66, 60_001)]


@pytest.mark.parametrize("transaction", [1, 4])
def test_spark_preloads_the_same(spark: SparkSession, transaction: int) -> None:
    """Two writers of one load, or counting would count what nobody wrote."""
    load = Load(1_700_000_000, 150, transaction=transaction)

    rows = frame(spark, load, "alpha", 1, 59_992, 60_008).collect()

    changes = [row["value"].encode() for row in rows if '"change"' in row["value"]]
    commits = [row["value"] for row in rows if '"commit"' in row["value"]]
    assert changes == [written(load, n) for n in range(59_992, 60_008)]
    assert len(commits) == (4 if transaction > 1 else 0)


@pytest.mark.parametrize("transaction", [1, 4])
def test_the_shared_rows_are_as_many_as_asked_for(transaction: int) -> None:
    """They make the conflicts, which a measure names in percent."""
    load = Load(0, 150, transaction=transaction)

    shared = sum(load.row(1, n) < SHARED_ROWS for n in range(4_000))

    assert shared == 600
