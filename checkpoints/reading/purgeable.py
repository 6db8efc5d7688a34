"""What a purge can take: read from the tables beside the batches, before a plan says so."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.dataset as ds

from checkpoints.commit.epochs import COMMIT
from checkpoints.commit.purges import ruvs_of
from checkpoints.query import records, select
from checkpoints.reading.lookup import between
from checkpoints.reading.reader import open_state
from checkpoints.store import StateStore
from checkpoints.tables import TableName
from checkpoints.times import time_of
from streaming.core.model.ruv import Ruv
from streaming.core.retention.holder import KEPT_KEYS_MAX
from streaming.core.retention.purge import ListPlace, Purge, PurgedList, purge_of, purged_lists
from streaming.core.retention.worth import is_worth_batch
from streaming.core.state.hub_state import HubState

_EPOCHS_AT_ONCE = 1_000
_IS_CHANGE = ds.field("kind") == "change"


@dataclass(frozen=True, slots=True)
class PurgeRequest:
    """What a purge may take at most.

    `limit`: the hub epoch at which it stops. `before_ms`: what is as old as this, by the hub's
    clock. `datasets`: table -> its data set. `last_ms`: when the last batch was. `notes_rows`: the
    next batch says that `rows` has come further than the last one said.
    """

    state: HubState
    limit: int
    before_ms: int
    datasets: Mapping[str, str]
    last_ms: int
    notes_rows: bool = False


def purgeable(store: StateStore, asked: PurgeRequest) -> Purge | None:
    """The largest purge within the request; None: there is nothing to purge.

    The state of one commit stays readable, and everything behind it: the newest one that is old
    enough. What `rows` held then is purged from the changelog.
    """
    state, found = asked.state, _oldest_kept(store, asked)
    batch, epoch = found or (state.purge_batch, state.purge_epoch)
    if epoch <= state.purge_epoch and not _is_worth_batch(asked, batch):
        return None
    if len(open_state(store.root).kept_keys(KEPT_KEYS_MAX + 1)) > KEPT_KEYS_MAX:
        return None
    if epoch <= state.purge_epoch:
        return Purge(state.purge_epoch, batch, {}, {})
    lists = purged_lists(state, _ruvs_at(store, epoch))
    below = _below(store, asked, epoch, lists)
    return purge_of(state, epoch, batch, lists, below, _above(store, asked, epoch, lists))


def _is_worth_batch(asked: PurgeRequest, batch: int) -> bool:
    """Return whether a batch is worth planning that purges only the batches before this one."""
    state = asked.state
    return is_worth_batch(
        batch - state.purge_batch,
        at_rest=asked.last_ms <= asked.before_ms,
        notes_rows=asked.notes_rows and asked.limit >= state.hub_epoch,
    )


def keeps_records(store: StateStore) -> bool:
    """Whether a record is in quarantine, neither released nor dropped."""
    reader = open_state(store.root)
    sql = f"SELECT id FROM ({reader.still_kept()}) LIMIT 1"  # noqa: S608
    return bool(reader.query(TableName.QUARANTINE, sql))


def _oldest_kept(store: StateStore, asked: PurgeRequest) -> tuple[int, int] | None:
    """The batch of the commit that becomes the oldest, and what `rows` held then."""
    at = time_of(asked.before_ms).isoformat()
    found = select(
        store.refreshed(TableName.EPOCHS),
        TableName.EPOCHS,
        columns=("batch", "rows_epoch"),
        where=[
            f"kind = '{COMMIT}'",
            f"batch > {asked.state.purge_batch}",
            f"hub_epoch <= {asked.limit}",
            "rows_epoch > 0",
            f"\"at\" <= to_timestamp('{at}')",
        ],
        order_by="batch DESC",
        limit=1,
    )
    return next(((row["batch"], row["rows_epoch"]) for row in records(found)), None)


def _ruvs_at(store: StateStore, hub_epoch: int) -> Mapping[str, Ruv]:
    """The RUVs behind a hub epoch."""
    found = select(
        store.table(TableName.EPOCHS),
        TableName.EPOCHS,
        columns=("ruv",),
        where=[f"kind = '{COMMIT}'", f"hub_epoch <= {hub_epoch}"],
        order_by="hub_epoch DESC, batch DESC",
        limit=1,
    )
    return next((ruvs_of(row["ruv"]) for row in records(found)), {})


def _below(
    store: StateStore, asked: PurgeRequest, epoch: int, lists: Mapping[ListPlace, PurgedList]
) -> dict[ListPlace, str]:
    """Of the lists whose last change stays, the largest CSN under it up to the purge epoch."""
    last = {place: one.edge for place, one in lists.items() if one.is_last}
    if not last:
        return {}
    others = ~ds.field("csn").isin(sorted(set(last.values())))
    where = _IS_CHANGE & (ds.field("hub_epoch") <= epoch) & others & _of(last)
    return _by_list(_changes(store, where), asked, "max")


def _above(
    store: StateStore, asked: PurgeRequest, epoch: int, lists: Mapping[ListPlace, PurgedList]
) -> dict[ListPlace, str]:
    """Of the other lists the smallest CSN behind the purge epoch.

    A replica that wrote lately is found at once; ever more hub epochs are looked at for the others.
    """
    found = dict[ListPlace, str]()
    wanted = {place: one.edge for place, one in lists.items() if not one.is_last}
    after, width = epoch, _EPOCHS_AT_ONCE
    while wanted and after < asked.state.hub_epoch:
        to = min(after + width, asked.state.hub_epoch)
        rows = _changes(store, _IS_CHANGE & between(after, to) & _of(wanted))
        found |= {k: v for k, v in _by_list(rows, asked, "min").items() if k in wanted}
        wanted = {place: edge for place, edge in wanted.items() if place not in found}
        after, width = to, 2 * width
    return found


def _of(lists: Mapping[ListPlace, str]) -> ds.Expression:
    return ds.field("rid").isin(sorted({rid for _, rid in lists}))


def _changes(store: StateStore, where: ds.Expression) -> pa.Table:
    return store.read(TableName.CHANGELOG, where, ["rid", "table", "csn"])


def _by_list(rows: pa.Table, asked: PurgeRequest, which: str) -> dict[ListPlace, str]:
    """The largest or smallest CSN of each list."""
    choose = max if which == "max" else min
    found = dict[ListPlace, str]()
    grouped = rows.group_by(["rid", "table"]).aggregate([("csn", which)])
    for row in grouped.to_pylist():
        dataset = asked.datasets.get(row["table"])
        if dataset is not None:
            place, csn = (dataset, row["rid"]), row[f"csn_{which}"]
            found[place] = choose(csn, found.get(place, csn))
    return found
