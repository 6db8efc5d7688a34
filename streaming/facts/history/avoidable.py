"""Where to invest against conflicts: how many of a period's would not have been, and why."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from checkpoints.query import among, equals, records
from checkpoints.reading.reader import Reader
from checkpoints.tables import TableName
from checkpoints.times import ms_of
from streaming.core.conflict.judge import ConflictKind
from streaming.core.model.foreign_json import loads
from streaming.core.replay.avoidable import is_avoided_by_column, is_avoided_by_half_the_lag

CSNS_OF_A_QUERY = 1_000
"""How many CSNs one query names."""

Row = Mapping[str, Any]


@dataclass(slots=True)
class AvoidableConflicts:
    """The conflicts of a table, and how many of them each remedy would have spared.

    `no_before`: those of which a before-image is missing, so nobody knows their columns.
    """

    table: str
    conflicts: int = 0
    half_the_lag: int = 0
    same_epoch: int = 0
    by_column: int = 0
    no_before: int = 0


def avoidable(reader: Reader, first: int, last: int) -> list[AvoidableConflicts]:
    """By table the conflicts of the hub epochs from first to last."""
    rows = [
        row
        for row in records(reader.conflicts())
        if row["kind"] != ConflictKind.REFUSED and first <= row["hub_epoch"] <= last
    ]
    changes = _changes(reader, {csn for row in rows for csn in _pair(row) if csn})
    reflected = _reflections(reader)
    found = dict[str, AvoidableConflicts]()
    for row in rows:
        one = found.setdefault(row["table"], AvoidableConflicts(row["table"]))
        change, met = (changes.get(csn or "") for csn in _pair(row))
        _count(one, row, change, met, reflected)
    return [found[name] for name in sorted(found)]


def _pair(row: Row) -> tuple[str | None, str | None]:
    """The change that was judged, and the one that wrote the row that it met."""
    pair = row["loser_csn"], row["winner_csn"]
    return pair if row["lost"] == "change" else (pair[1], pair[0])


def _count(
    one: AvoidableConflicts,
    row: Row,
    change: Row | None,
    met: Row | None,
    reflected: Mapping[int, list[tuple[int, int]]],
) -> None:
    one.conflicts += 1
    one.same_epoch += bool(row["same_epoch_only"])
    if change is None or met is None:
        one.no_before += 1
        return
    times = reflected.get(change["rid"], ())
    seen_ms = next((at for covers, at in times if covers >= row["row_epoch"]), None)
    written_ms, met_ms = ms_of(change["time"]), ms_of(met["time"])
    one.half_the_lag += is_avoided_by_half_the_lag(written_ms, met_ms, seen_ms)
    columns = is_avoided_by_column(_images(change), _images(met))
    one.by_column += columns is True
    one.no_before += columns is None


def _images(change: Row) -> tuple[str | None, str | None]:
    return change["before"], change["after"]


def _changes(reader: Reader, csns: Iterable[str]) -> dict[str, Row]:
    """CSN -> its row of the changelog."""
    found, wanted = dict[str, Row](), sorted(csns)
    columns = ("csn", "rid", "time", "before", "after")
    for at in range(0, len(wanted), CSNS_OF_A_QUERY):
        where = [*equals({"kind": "change"}), among("csn", wanted[at : at + CSNS_OF_A_QUERY])]
        rows = reader.read(TableName.CHANGELOG, columns=columns, where=where)
        found |= {row["csn"]: row for row in rows.to_pylist()}
    return found


def _reflections(reader: Reader) -> dict[int, list[tuple[int, int]]]:
    """Rid -> its (covers, time) in the order in which it reflected them."""
    where = [*equals({"outcome": "taken"}), "kind = 'applied'"]
    columns = ("rid", "time", "value")
    rows = reader.read(TableName.EVENTS, columns=columns, where=where, order_by='batch, "offset"')
    found = defaultdict[int, list[tuple[int, int]]](list)
    for row in rows.to_pylist():
        found[row["rid"]].append((loads(row["value"])["covers"], ms_of(row["time"])))
    return found
