"""The ranges of scans that consumers were sent: their rows are the hub's, whatever they were."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streaming.core.model.errors import WireError
from streaming.core.model.table import Table
from streaming.core.model.truncation import ALL_KEYS
from streaming.core.records.record import Reason
from streaming.core.tracking.ranges import KeyRange, key_order


@dataclass(frozen=True, slots=True)
class SentRange:
    """A range that was sent to a consumer in a batch; ranges of one scan follow each other."""

    batch: int
    keys: KeyRange


class SentRanges:
    """All ranges by consumer, of tables that are configured and that it is sent.

    `rows`: batch, rid, table, key_after and key of each, in hub order. `receives`: rid -> tables.
    """

    def __init__(
        self,
        rows: Iterable[Mapping[str, Any]],
        receives: Mapping[int, Sequence[str]],
        tables: Mapping[str, Table],
    ) -> None:
        self._receives = receives
        self._orders = {name: key_order(table) for name, table in tables.items()}
        self._sent = defaultdict[tuple[int, str], list[SentRange]](list)
        for row in rows:
            if row["table"] in tables and row["table"] in receives.get(row["rid"], ()):
                keys = KeyRange(row["table"], row["key_after"], row["key"])
                self._sent[row["rid"], row["table"]].append(SentRange(row["batch"], keys))

    def set_right(self, kept: Mapping[str, Any]) -> bool:
        """Return whether a range has overwritten the row of this record at its origin.

        `kept`: batch, rid, table, key and reason of a record in quarantine; without a key its row
        is unknown, and only whole copies of all tables have surely overwritten it. That of a
        truncate stands for all rows of its table. A range leaves an uncarried row alone
        (core/batch/left_out.py).
        """
        rid, table, key = kept["rid"], kept["table"], kept["key"]
        if table is not None and key == ALL_KEYS:
            return self._is_whole(rid, table, kept["batch"])
        if table is None or key is None:
            tables = self._receives.get(rid, ())
            return bool(tables) and all(self._is_whole(rid, one, kept["batch"]) for one in tables)
        if Reason(kept["reason"]).is_uncarried:
            return False
        return any(self._holds(one.keys, key) for one in self._since(rid, table, kept["batch"]))

    def _since(self, rid: int, table: str, batch: int) -> list[SentRange]:
        sent = self._sent.get((rid, table), [])
        return [one for one in sent if one.batch >= batch]

    def _holds(self, keys: KeyRange, key: str) -> bool:
        try:
            return keys.holds(key, self._orders[keys.table])
        except WireError:  # a key of an earlier configuration, or none at all
            return False

    def _is_whole(self, rid: int, table: str, batch: int) -> bool:
        """Return whether ranges since this batch, one behind the other, hold all keys."""
        joined: KeyRange | None = None
        for one in self._since(rid, table, batch):
            if one.keys.after is None:
                joined = one.keys
            elif joined is not None:
                joined = joined.joined(one.keys)
            if joined is not None and joined.to is None:
                return True
        return False
