"""The whole history of a state root, judged again in this process."""

from pathlib import Path

from checkpoints.commit.recorded import from_store
from checkpoints.reading.past import PastStore
from checkpoints.reading.reader import Reader
from checkpoints.tables import TableName
from streaming.core.records.quarantine_budget import KeptSum
from streaming.replay.report.answer import ReplayAnswer, choose, replay
from streaming.replay.verify import verify
from streaming.replay.what_if import NO_CHANGE, WhatIf


def replayed(root: Path, what_if: WhatIf = NO_CHANGE) -> ReplayAnswer:
    """The answer to a replay of everything that is recorded."""
    store = PastStore(root)
    try:
        return replay(store, choose(store, None, None), from_store(store), what_if)
    finally:
        store.close()


def check_replay_is_equal(root: Path, *, without: str = "") -> None:
    """Everything comes out as it is recorded.

    `without`: the beginning of what is not compared, because a test changed it by hand.
    """
    found = [
        one
        for one in replayed(root).differences
        if not (without and one.difference.id.startswith(without))
    ]
    assert not found, "\n".join(map(str, found))


def check_audit_is_sound(root: Path) -> None:
    """Nothing is wrong with what is recorded."""
    store = PastStore(root)
    try:
        audit = verify(store, choose(store, None, None), from_store(store))
    finally:
        store.close()
    assert audit.is_sound, "\n".join(map(str, audit.findings))


def quarantine_sums(reader: Reader) -> dict[int, KeptSum]:
    """Rid -> its records that are kept, neither released nor dropped, and their bytes here."""
    size = "octet_length(encode(t.value, 'hex')) / 2 AS size"
    sql = f"""
        SELECT rid, count(*) AS records, coalesce(sum(size), 0) AS bytes
        FROM ({reader.still_kept(size)}) GROUP BY rid
    """
    found = reader.query(TableName.QUARANTINE, sql)
    return {row["rid"]: KeptSum(row["records"], row["bytes"]) for row in found}
