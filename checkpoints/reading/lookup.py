"""Reads of a batch that memory cannot answer: contents of old CSNs, rows, and images."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from sys import getsizeof
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from checkpoints import query
from checkpoints.commit.epochs import COMMIT
from checkpoints.commit.purges import ruvs_of
from checkpoints.store import StateStore, among
from checkpoints.tables import TableName
from checkpoints.times import ms_of
from streaming.core.batch.sending import WHOLE, EpochMark
from streaming.core.conflict.judge import Verdict
from streaming.core.conflict.winner import Failed, Merged, Resolution, Winner
from streaming.core.model.change import NOBODY, Op, RowKey
from streaming.core.model.csn import rid_of
from streaming.core.model.row import Realign, RowState, refreshed
from streaming.core.model.truncation import ALL_KEYS, Truncation
from streaming.core.records.record import Reason

KEYS_OF_A_QUERY = 5_000
"""The query engine goes down into a list of values: of 30,000 it overflows a stack of 8 MiB, which
ends the process."""
UNKNOWN = RowState()

ACCEPTED = ds.field("verdict") == Verdict.ACCEPTED.value
"""The condition that an entry of the changelog is an accepted change."""

HUB_ORDER = [("hub_epoch", "ascending"), ("place", "ascending")]

SCANNED_ROWS = 1_000_000
"""How many changelog rows one page is made from, at most."""


def contents(
    store: StateStore,
    csns: Collection[str],
    batch: int,
    on_disk: Mapping[int, str] = MappingProxyType({}),
) -> dict[str, frozenset[str]]:
    """Csn -> the contents under which changelog and quarantine know it before this batch.

    One pruned read each. What is in quarantine for its session is no base for a duplicate
    (docs/traps.md, A duplicate of a record of an old session); what a hub that died has written
    of this very batch is none either. `on_disk`: rid -> a CSN up to which `pending` is read too.
    """
    if not csns:
        return {}
    found: dict[str, set[str]] = {}
    here = among("csn", list(csns)) & (ds.field("batch") < batch)
    logged = here & (ds.field("kind") == "change")
    refused = here & (ds.field("reason") != Reason.SESSION.value) & ds.field("content").is_valid()
    tables = [(TableName.CHANGELOG, logged), (TableName.QUARANTINE, refused)]
    if any(csn <= on_disk.get(rid_of(csn), "") for csn in csns):
        tables.append((TableName.PENDING, here & ds.field("content").is_valid()))
    for name, where in tables:
        for row in store.read(name, where, ["csn", "content"]).to_pylist():
            found.setdefault(row["csn"], set()).add(row["content"])
    return {csn: frozenset(known) for csn, known in found.items()}


def earlier_resolutions(
    store: StateStore, batch: int, tables: Collection[str]
) -> dict[str, Resolution]:
    """Csn -> what was decided when a hub that died judged this batch, in these tables.

    So a user's function need not repeat itself (docs/protocol.md, Conflict functions).
    """
    if not tables:
        return {}
    where = (
        (ds.field("batch") == batch)
        & (ds.field("kind") == "change")
        & ds.field("cause").is_valid()
        & ds.field("table").isin(sorted(tables))
    )
    found: dict[str, Resolution] = {}
    columns = ["csn", "verdict", "image"]
    for row in store.read(TableName.CHANGELOG, where, columns).to_pylist():
        match Verdict(row["verdict"]):
            case Verdict.ACCEPTED:
                found[row["csn"]] = Merged(row["image"]) if row["image"] else Winner.CHANGE
            case Verdict.REJECTED:
                found[row["csn"]] = Winner.ROW
            case Verdict.ADOPTED:
                continue
            case Verdict.QUARANTINED:
                found[row["csn"]] = Failed("it failed when this batch was judged first")
    return found


def rows(store: StateStore, keys: Collection[RowKey]) -> dict[RowKey, RowState]:
    """The materialized state of these rows, images included; unknown rows are left out."""
    wanted, tables = set(keys), query.among("table", sorted({table for table, _ in keys}))
    ordered = sorted({key for _, key in keys})
    found = {}
    for first in range(0, len(ordered), KEYS_OF_A_QUERY):
        where = [query.among("key", ordered[first : first + KEYS_OF_A_QUERY]), tables]
        for row in query.select(
            store.table(TableName.ROWS), TableName.ROWS, where=where
        ).to_pylist():
            if (row["table"], row["key"]) in wanted:
                found[row["table"], row["key"]] = materialized(row)
    return found


def materialized(row: Mapping[str, Any]) -> RowState:
    """The row that a row of `rows` holds; of a key that has none, all is null."""
    image = row["image"]
    author, hub_epoch = row["author"] or NOBODY, row["hub_epoch"] or 0
    return RowState(author, hub_epoch, row["csn"], image is not None, image, _realigns(row))


def blocked_rows(store: StateStore) -> dict[RowKey, tuple[Realign, ...]]:
    """The realigns of the rows that have some in `rows`."""
    table = query.select(
        store.table(TableName.ROWS),
        TableName.ROWS,
        columns=["table", "key", "realign"],
        where=["cardinality(realign) > 0"],
    )
    return {(row["table"], row["key"]): _realigns(row) for row in table.to_pylist()}


def _realigns(row: Mapping[str, Any]) -> tuple[Realign, ...]:
    return tuple(Realign(**one) for one in row["realign"] or ())


class Images:
    """The images of rows that core judged lately, by CSN: what several write they write again.

    At most so many bytes of them, the oldest go first; a look into the tables takes 20 ms.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._bytes = 0
        self._by_csn: dict[str, str] = {}

    def of(self, row: RowState) -> str | None:
        """The image of this version of a row, if it is kept."""
        return self._by_csn.get(row.csn) if row.csn else None

    def keep(self, rows: Iterable[RowState]) -> None:
        """Keep the images of these, as the newest."""
        for row in rows:
            if row.csn is not None and row.image is not None:
                self._drop(row.csn)
                self._by_csn[row.csn] = row.image
                self._bytes += getsizeof(row.image)
        while self._bytes > self._limit_bytes:
            self._drop(next(iter(self._by_csn)))

    def _drop(self, csn: str) -> None:
        image = self._by_csn.pop(csn, None)
        if image is not None:
            self._bytes -= getsizeof(image)


def images(
    store: StateStore, versions: Mapping[RowKey, RowState], rows_epoch: int, kept: Images
) -> dict[RowKey, str | None]:
    """The image of each row version: kept, or from the changelog, or from `rows` if it is older."""
    there = {key: row for key, row in versions.items() if row.exists}
    found = {key: kept.of(row) for key, row in there.items()}
    missing = {key: there[key] for key, image in found.items() if image is None}
    older = [key for key, row in missing.items() if row.hub_epoch <= rows_epoch]
    recent = {key: row for key, row in missing.items() if row.hub_epoch > rows_epoch and row.csn}
    found.update({key: row.image for key, row in rows(store, older).items()})
    if recent:
        where = (
            among("hub_epoch", sorted({row.hub_epoch for row in recent.values()}))
            & among("csn", [row.csn for row in recent.values()])
            & ACCEPTED
        )
        changes = store.read(TableName.CHANGELOG, where, ["csn", "image"]).to_pylist()
        by_csn = {change["csn"]: change["image"] for change in changes}
        found.update({key: by_csn[row.csn] for key, row in recent.items()})
    return found


def marks(store: StateStore, after: int, committed: int) -> list[EpochMark]:
    """The committed hub epochs above `after`, in order, with their RUVs and number of entries."""
    store.refreshed(TableName.EPOCHS)
    table = store.read(
        TableName.EPOCHS,
        between(after, committed) & (ds.field("kind") == COMMIT),
        ["batch", "hub_epoch", "ruv", "counts", "at"],
    )
    first: dict[int, EpochMark] = {}
    for row in sorted(table.to_pylist(), key=lambda r: r["batch"]):
        entries = dict(row["counts"]).get("entries", 0)
        mark = EpochMark(row["hub_epoch"], entries, ruvs_of(row["ruv"]), ms_of(row["at"]))
        first.setdefault(row["hub_epoch"], mark)
    return [first[hub_epoch] for hub_epoch in sorted(first)]


def page_marks(
    store: StateStore, after: int, to: int, *, committed: int, page_items: int
) -> list[EpochMark]:
    """The committed hub epochs in (after, to] that a page may hold, in order.

    If they have more changelog rows than a page, each counts those only that none before it has:
    a page holds the last of each row. SCANNED_ROWS are looked at.
    """
    found = marks(store, after, min(to, committed))
    if sum(mark.entries for mark in found) <= page_items:
        return found
    total = np.cumsum([mark.entries for mark in found])
    found = found[: max(1, int(np.searchsorted(total, SCANNED_ROWS, side="right")))]
    where = between(after, found[-1].hub_epoch)
    rows = store.read(TableName.CHANGELOG, where, ["hub_epoch", "table", "key"])
    first = rows.group_by(["table", "key"]).aggregate([("hub_epoch", "min")])
    new = Counter(first["hub_epoch_min"].to_pylist())
    return [replace(mark, entries=new[mark.hub_epoch]) for mark in found]


def forgotten(
    store: StateStore, keys: Collection[RowKey], rows_epoch: int, edge: int, kept: Images
) -> dict[RowKey, RowState]:
    """These rows as they stood at hub epoch `edge`, above which nothing touched them.

    Images included: from `rows`, which is up to date with `rows_epoch`, and the changelog behind.
    """
    found = rows(store, keys)
    if not keys or edge <= rows_epoch:
        return found
    names = sorted({ALL_KEYS, *(key for _, key in keys)})
    where = between(rows_epoch, edge) & among("key", names)
    after = logged_rows(store, where, found, set(keys))
    seen = images(store, after, rows_epoch, kept)
    return {**found, **{key: row._replace(image=seen.get(key)) for key, row in after.items()}}


def edge_of(store: StateStore, rows_epoch: int, committed: int, window_rows: int) -> int:
    """The first hub epoch above which the changelog holds no more rows than the window takes."""
    left = window_rows
    for mark in reversed(marks(store, rows_epoch, committed)):
        left -= mark.entries
        if left < 0:
            return mark.hub_epoch
    return rows_epoch


def blocked_up_to(store: StateStore, rows_epoch: int, edge: int) -> dict[RowKey, RowState]:
    """What blocks rows up to a hub epoch: they are the `before` of what is told behind it."""
    blocked = {key: RowState(realign=realign) for key, realign in blocked_rows(store).items()}
    refreshes = between(rows_epoch, edge) & (ds.field("kind") == "refresh")
    if edge > rows_epoch:
        for key, row in logged_rows(store, refreshes, blocked).items():
            blocked[key] = RowState(realign=row.realign)
    return blocked


def between(after: int, to: int) -> pc.Expression:
    """The condition that a row is of the hub epochs (after, to]."""
    return (ds.field("hub_epoch") > after) & (ds.field("hub_epoch") <= to)


def logged_rows(
    store: StateStore,
    where: pc.Expression,
    before: Mapping[RowKey, RowState],
    wanted: Collection[RowKey] | None = None,
) -> dict[RowKey, RowState]:
    """The rows that these entries of the changelog touch, as they end; see `LoggedEntries.rows`."""
    return logged_entries(store, where).rows(before, wanted)


def logged_entries(store: StateStore, where: pc.Expression) -> "LoggedEntries":
    """What these entries of the changelog say of rows."""
    table = store.read(TableName.CHANGELOG, where, [*_LOGGED, "place"])
    return LoggedEntries(table.sort_by(HUB_ORDER))


@dataclass(frozen=True, slots=True)
class LoggedEntries:
    """Entries of the changelog in hub order; `table`: the columns of _LOGGED."""

    table: pa.Table

    def keys(self) -> set[RowKey]:
        """The rows that they name."""
        named = self.table.filter(pc.not_equal(self.table["key"], ALL_KEYS))
        return set(zip(named["table"].to_pylist(), named["key"].to_pylist(), strict=True))

    def truncations(self) -> dict[str, Truncation]:
        """Table -> its last truncate."""
        is_accepted = pc.equal(self.table["verdict"], Verdict.ACCEPTED.value)
        taken = self.table.filter(pc.and_(pc.equal(self.table["key"], ALL_KEYS), is_accepted))
        return {
            row["table"]: Truncation(row["rid"], row["hub_epoch"], row["csn"])
            for row in taken.to_pylist()
        }

    def rows(
        self, before: Mapping[RowKey, RowState], wanted: Collection[RowKey] | None = None
    ) -> dict[RowKey, RowState]:
        """The rows that they touch, as they end, without images.

        `before`: the rows that were there; one that has an entry's hub epoch already is the newer.
        """
        state: dict[RowKey, RowState] = {}
        for hub_epoch, kind, rid, csn, name, key, op, verdict, epoch, to, offset, cause in zip(
            *(self.table[column].to_pylist() for column in _LOGGED), strict=True
        ):
            row = (name, key)
            if key == ALL_KEYS:
                if verdict == Verdict.ACCEPTED:
                    state |= _truncated(Truncation(rid, hub_epoch, csn), name, before, state)
                continue
            if wanted is not None and row not in wanted:
                continue
            old, exists = state.get(row) or before.get(row), op != Op.DELETE
            if kind == "refresh":
                sent = RowState(rid, epoch, csn, exists)
                new = Realign(to, hub_epoch, offset, cause == WHOLE)
                state[row] = refreshed(old or UNKNOWN, sent, new)
            elif verdict == Verdict.ACCEPTED and (old is None or hub_epoch >= old.hub_epoch):
                realign = (old or UNKNOWN).realign
                state[row] = RowState(rid, hub_epoch, csn, exists, realign=realign)
        return state


def _truncated(
    truncation: Truncation,
    table: str,
    before: Mapping[RowKey, RowState],
    state: Mapping[RowKey, RowState],
) -> dict[RowKey, RowState]:
    """The rows of a table that a truncate took, of those that are known at its place."""
    older = {
        k: row
        for k, row in before.items()
        if k[0] == table and row.hub_epoch < truncation.hub_epoch
    }
    written = {k: row for k, row in state.items() if k[0] == table}
    return {key: truncation.tombstone(row) for key, row in (older | written).items()}


_LOGGED = (
    "hub_epoch",
    "kind",
    "rid",
    "csn",
    "table",
    "key",
    "op",
    "verdict",
    "row_epoch",
    "to",
    "offset",
    "cause",
)
