"""What another rule would have done: other verdicts, and rows that would stand otherwise."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow.compute as pc
import pyarrow.dataset as ds

from checkpoints.store import StateStore, among
from checkpoints.tables import TableName
from streaming.core.model.change import RowKey
from streaming.core.model.csn import rid_of
from streaming.core.model.foreign_json import loads
from streaming.core.replay.compare import THERE, VERDICT, RecordedPart
from streaming.replay.past_hub import RowPair
from streaming.replay.run import ReplayedBatch

_JUDGED = {"yes": "judged", "no": "not judged"}
"""Of a change that only one side judges, because it is in quarantine at the other."""


class VerdictEffect(NamedTuple):
    """A change whose verdict would have been another."""

    hub_epoch: int
    csn: str
    rid: int
    app: str | None
    table: str
    key: str
    recorded: str
    then: str


@dataclass(frozen=True, slots=True)
class RowEffect:
    """A row that would stand otherwise; `app`: the application whose write would stand.

    `columns`: column -> its value as recorded, and then; None where the row is not there.
    """

    table: str
    key: str
    app: str | None
    recorded_csn: str | None
    then_csn: str | None
    columns: Mapping[str, tuple[object, object]]

    def document(self) -> dict[str, Any]:
        """The row as JSON."""
        columns = {
            name: {"recorded": mine, "then": theirs}
            for name, (mine, theirs) in self.columns.items()
        }
        return {
            "table": self.table,
            "key": self.key,
            "app": self.app,
            "recorded_csn": self.recorded_csn,
            "then_csn": self.then_csn,
            "columns": columns,
        }


def verdict_effects(one: ReplayedBatch) -> list[VerdictEffect]:
    """The changes of a batch that would have another verdict."""
    verdicts = [d for d in one.differences if d.part is RecordedPart.CHANGE]
    found = {d.id: d for d in verdicts if d.fact in (VERDICT, THERE)}
    if not found:
        return []
    log = one.logs[0]
    here = log.filter(pc.is_in(log["csn"], pc.cast(list(found), log["csn"].type)))
    apps = dict(zip(here["csn"].to_pylist(), here["app"].to_pylist(), strict=True))
    return [
        VerdictEffect(
            one.after.state.hub_epoch,
            csn,
            rid_of(csn),
            apps.get(csn),
            d.table or "",
            d.key or "",
            str(d.recorded) if d.fact == VERDICT else _JUDGED[str(d.recorded)],
            str(d.replayed) if d.fact == VERDICT else _JUDGED[str(d.replayed)],
        )
        for csn, d in found.items()
    ]


def row_effects(differing: Mapping[RowKey, RowPair], store: StateStore) -> Iterator[RowEffect]:
    """The rows whose image would be another, by table and key."""
    others = {key: pair for key, pair in differing.items() if is_other(pair)}
    apps = _apps(store, [p.replayed.csn for p in others.values() if p.replayed.csn])
    for (table, key), pair in sorted(others.items()):
        mine, theirs = pair
        app = apps.get(theirs.csn or "")
        columns = _columns(mine.image, theirs.image)
        yield RowEffect(table, key, app, mine.csn, theirs.csn, columns)


def is_other(pair: RowPair) -> bool:
    """Return whether people would see another row, and not only the hub's marks on it."""
    return pair.recorded.image != pair.replayed.image


def _columns(mine: str | None, theirs: str | None) -> dict[str, tuple[object, object]]:
    """Column -> both values, where they differ."""
    one, other = loads(mine or "{}"), loads(theirs or "{}")
    names = dict.fromkeys([*one, *other])
    return {n: (one.get(n), other.get(n)) for n in names if one.get(n) != other.get(n)}


def _apps(store: StateStore, csns: list[str]) -> dict[str, str | None]:
    """CSN -> the application that wrote the change."""
    if not csns:
        return {}
    where = (ds.field("kind") == "change") & among("csn", sorted(set(csns)))
    rows = store.read(TableName.CHANGELOG, where, ["csn", "app"])
    return dict(zip(rows["csn"].to_pylist(), rows["app"].to_pylist(), strict=True))
