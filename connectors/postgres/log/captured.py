"""The changes of a transaction in configured tables, as the wire has them, without numbers.

A table is known by its oid, so one that was renamed is the same, and one that was dropped and made
again is not.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from connectors.agent.images import OVERHEAD_BYTES, WireImage, too_large
from connectors.postgres.log.fold import Captured
from connectors.postgres.log.transactions import LogTransaction, Row, RowWrite, TableTruncate
from connectors.postgres.values.image import image
from streaming.core.model.change import Op
from streaming.core.model.table import Table
from streaming.core.model.truncation import ALL_KEYS
from streaming.core.records.record import RECORD_BYTES

_ALL = WireImage(ALL_KEYS, ALL_KEYS)


@dataclass(frozen=True, slots=True)
class TableCapture:
    """Captures these tables, by oid; `record_bytes`: no record may be larger."""

    tables: Mapping[int, Table]
    record_bytes: int = RECORD_BYTES

    def __call__(self, transaction: LogTransaction) -> Sequence[Captured]:
        """The changes of a transaction, in its order; of a table that is not configured none."""
        return [one for write in transaction.writes for one in self._captured(write)]

    def _captured(self, write: RowWrite | TableTruncate) -> Iterator[Captured]:
        table = self.tables.get(write.relation.oid)
        if table is None:
            return
        if isinstance(write, TableTruncate):
            yield Captured(table.name, Op.TRUNCATE, _ALL)
            return
        old_key, new_key = _key(table, write.old), _key(table, write.new)
        old = self._old(table, write)
        if write.new is None or new_key is None:
            if old_key is not None:
                yield Captured(table.name, Op.DELETE, old_key, old)
            return
        new = self._new(table, write.new, new_key)
        if old_key is None:
            yield Captured(table.name, Op.INSERT, new_key, None, new)
        elif old_key.text == new_key.text:
            yield Captured(table.name, Op.UPDATE, new_key, old, new)
        else:
            yield Captured(table.name, Op.DELETE, old_key, old)
            yield Captured(table.name, Op.INSERT, new_key, None, new)

    def _old(self, table: Table, write: RowWrite) -> WireImage | None:
        """The row before; None: it is not in the log. One that fits no record is left empty."""
        if write.old is None or not write.is_whole:
            return None
        whole = image(table.columns, write.old)
        return whole if self._fits(whole.known) else WireImage("{}", "{}")

    def _new(self, table: Table, row: Row, key: WireImage) -> WireImage:
        whole = image(table.columns, row)
        if self._fits(key.text + whole.text):
            return whole
        size = len(whole.text.encode())
        text = f'{{"whole row":{{"bytes":"{size}"}}}}'
        return WireImage(text, "{}", (too_large("whole row", size),))

    def _fits(self, text: str) -> bool:
        """Return whether it leaves room for another image of its size, which may be beside it."""
        return len(text.encode()) + OVERHEAD_BYTES <= self.record_bytes


def _key(table: Table, row: Row | None) -> WireImage | None:
    if row is None:
        return None
    return image({name: table.columns[name] for name in table.key}, row)
