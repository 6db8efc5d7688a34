"""Deletes what a committed purge names: idempotent, so a hub that dies repeats it.

Each table by its own rule. What the state behind `purge_batch` needs stays, and all behind that.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import orjson
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from checkpoints.commit.recorded import commit_of
from checkpoints.query import literal
from checkpoints.reading.purgeable import keeps_records
from checkpoints.reading.reader import open_state
from checkpoints.root import open_delta
from checkpoints.store import StateStore, delete_rows
from checkpoints.tables import TableName
from checkpoints.times import time_of
from streaming.core.model.command import CommandName
from streaming.core.model.truncation import ALL_KEYS
from streaming.core.retention.holder import KEPT_KEYS_MAX
from streaming.core.retention.purge import spared
from streaming.core.retention.rounds import rounds_that_count
from streaming.core.state.hub_state import HubState

_IDS_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class PurgedState:
    """A committed state whose purge is carried out.

    `edges`: what `purged_up_to` gives of it. `conflicts_before_ms`: conflicts go that are older
    than this, and days of `delays`.
    """

    state: HubState
    edges: Mapping[int, str]
    conflicts_before_ms: int


def delete_purged(store: StateStore, purged: PurgedState) -> None:
    """Delete from every table what the purge of this state names.

    From `epochs` first: who asks for something before is told the oldest that is there.
    """
    for name, condition in _conditions(store, purged):
        _delete(open_delta(store.root, name), name, condition)


def _conditions(store: StateStore, purged: PurgedState) -> Iterator[tuple[TableName, str]]:
    """The rows that go, table by table."""
    state = purged.state
    batch = state.purge_batch
    yield TableName.EPOCHS, f"batch > 0 AND batch < {batch}"
    yield from ((TableName.CHANGELOG, one) for one in _changelog(store, state))
    yield TableName.CONFLICTS, _conflicts(purged)
    yield from ((TableName.QUARANTINE, one) for one in _quarantine(store, purged))
    if pending := _pending(purged.edges):
        yield TableName.PENDING, f"batch < {batch} AND ({pending})"
    yield TableName.EVENTS, f"batch < {batch} AND kind NOT IN ('hello', 'schema', 'local_writes')"
    yield from ((TableName.DELAYS, one) for one in _delays(store, purged))
    oldest = commit_of(store, batch)
    if oldest is not None:
        yield TableName.CONFIG, _config(oldest["command_number"])
        yield TableName.CONFIG, _comparisons(store, oldest["at"])


def _changelog(store: StateStore, state: HubState) -> Iterator[str]:
    """Up to the purge epoch; of a row that a record in quarantine names all that was written.

    Nothing if records have come since that name too many rows: the next time is soon enough.
    """
    csns = spared(state)
    gone = f"kind <> 'change' OR csn NOT IN ({_texts(csns)})" if csns else "true"
    condition = f"hub_epoch <= {state.purge_epoch} AND ({gone})"
    if keeps_records(store):
        kept = open_state(store.root).kept_keys(KEPT_KEYS_MAX + 1)
        if len(kept) > KEPT_KEYS_MAX:
            return
        condition += f" AND kind <> 'range' AND key NOT IN ({_texts([ALL_KEYS, *kept])})"
    yield condition


def _conflicts(purged: PurgedState) -> str:
    """Those that are old, but no refusal that is open."""
    is_open = _texts([one.id for of in purged.state.refusals.values() for one in of.values()])
    kept = f"(kind <> 'refused' OR id NOT IN ({is_open}))" if is_open else "true"
    batch, before = purged.state.purge_batch, _time(time_of(purged.conflicts_before_ms))
    return f'batch < {batch} AND "at" < {before} AND {kept}'


def _quarantine(store: StateStore, purged: PurgedState) -> Iterator[str]:
    """Records that were released or dropped, once a repeat of them is purged by its CSN."""
    reader = open_state(store.root)
    known = " OR ".join(
        f"(t.rid = {rid} AND t.csn <= {literal(edge)})" for rid, edge in purged.edges.items()
    )
    sql = f"""SELECT id FROM ({reader.latest_action}) WHERE action <> 'kept'
        AND batch < {purged.state.purge_batch} AND id NOT IN (
            SELECT id FROM t WHERE csn IS NOT NULL AND NOT ({known or "false"}))"""  # noqa: S608
    ids = sorted({row["id"] for row in reader.query(TableName.QUARANTINE, sql)})
    for first in range(0, len(ids), _IDS_AT_ONCE):
        yield f"id IN ({_texts(ids[first : first + _IDS_AT_ONCE])})"


def _pending(edges: Mapping[int, str]) -> str:
    """What was open and is purged: nothing that is open now is as small."""
    gone = (
        f"(rid = {rid} AND coalesce(csn, prim_csn) <= {literal(edge)})"
        for rid, edge in edges.items()
    )
    return " OR ".join(gone)


def _config(number: int) -> str:
    """Commands that the oldest batch knows as done.

    A pin stands until it is ended, and what was accepted stays accepted.
    """
    kept = _texts([CommandName.PIN, CommandName.UNPIN, CommandName.ACCEPT_LOCAL])
    return f"kind = 'command' AND number <= {number} AND command NOT IN ({kept})"


def _comparisons(store: StateStore, before: datetime) -> str:
    """Rounds that ended before the oldest batch, and of which a later one says as much."""
    rows = [row for row in open_state(store.root).comparisons() if row["at"] < before]
    kept = rounds_that_count((row["number"], orjson.loads(row["document"])) for row in rows)
    return f"kind = 'comparison' AND \"at\" < {_time(before)} AND {_not_in('number', kept)}"


def _delays(store: StateStore, purged: PurgedState) -> Iterator[str]:
    """Before the oldest batch all but the last of each day, and days that are as old as conflicts.

    The last two days stay: they say how it is now.
    """
    batch, reader = purged.state.purge_batch, open_state(store.root)
    last = f"""SELECT DISTINCT max(batch) AS batch, max(day) AS day FROM t
        WHERE batch < {batch} GROUP BY day, origin, consumer"""  # noqa: S608
    rows = reader.query(TableName.DELAYS, last)
    if rows:
        newest = max(row["day"] for row in rows) - timedelta(days=1)
        before = min(newest, time_of(purged.conflicts_before_ms).date())
        is_old = f"day < arrow_cast('{before.isoformat()}', 'Date32')"
        kept = {row["batch"] for row in rows if row["day"] >= before}
        yield f"batch < {batch} AND ({is_old} OR {_not_in('batch', kept)})"


def _not_in(column: str, numbers: Collection[int]) -> str:
    """The condition that a number is none of these."""
    found = ", ".join(map(str, sorted(numbers)))
    return f"{column} NOT IN ({found})" if found else "true"


def _delete(table: DeltaTable, name: TableName, condition: str) -> None:
    """Delete these rows; again if another commit came between, as a compaction of another hub."""
    while True:
        try:
            delete_rows(table, name, condition)
        except CommitFailedError:
            table.update_incremental()
        else:
            return


def _texts(values: Iterable[str]) -> str:
    return ", ".join(literal(value) for value in values)


def _time(at: datetime) -> str:
    return f"arrow_cast('{at.isoformat()}', 'Timestamp(Microsecond, Some(\"UTC\"))')"
