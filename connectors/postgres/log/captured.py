"""The changes of a transaction in configured tables, as the wire has them, without numbers.

A table is known by its oid, so one that was renamed is the same, and one that was dropped and made
again is not.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from connectors.agent.images import OVERHEAD_BYTES, WireImage, too_large
from connectors.postgres.log.captured_tables import (
    ColumnForms,
    OtherFormError,
    changed_columns,
    forms_of,
)
from connectors.postgres.log.fold import Captured
from connectors.postgres.log.pgoutput import Relation
from connectors.postgres.log.transactions import LogTransaction, Row, RowWrite, TableTruncate
from connectors.postgres.values.image import image
from streaming.core.model.change import Op
from streaming.core.model.table import Table
from streaming.core.model.truncation import ALL_KEYS
from streaming.core.records.record import RECORD_BYTES

_ALL = WireImage(ALL_KEYS, ALL_KEYS)


@dataclass(frozen=True, slots=True)
class TableCapture:
    """Captures these tables, by oid; `record_bytes`: no record may be larger.

    `forms`: oid -> the forms of which the log may have rows, the one of now last; a row of another
    form ends the agent. None: of any.
    """

    tables: Mapping[int, Table]
    record_bytes: int = RECORD_BYTES
    forms: Mapping[int, Sequence[ColumnForms]] = field(default_factory=dict)
    checked: dict[int, Relation] = field(default_factory=dict, compare=False, repr=False)

    def __call__(self, transaction: LogTransaction) -> Sequence[Captured]:
        """The changes of a transaction, in its order; of a table that is not configured none."""
        return [one for write in transaction.writes for one in self._captured(write)]

    def _captured(self, write: RowWrite | TableTruncate) -> Iterator[Captured]:
        table = self.tables.get(write.relation.oid)
        if table is None:
            return
        if self.checked.get(write.relation.oid) is not write.relation:
            self._check(table, write.relation)
        if isinstance(write, TableTruncate):
            yield Captured(table.name, Op.TRUNCATE, _ALL)
            return
        old_key, new_key = _key(table, write.old), _key(table, write.new)
        old = self._old(table, write)
        if write.new is None or new_key is None:
            if old_key is not None:
                yield Captured(table.name, Op.DELETE, old_key, old)
            return
        new = row_image(table, write.new, self.record_bytes)
        if old_key is None:
            yield Captured(table.name, Op.INSERT, new_key, None, new)
        elif old_key.text == new_key.text:
            yield Captured(table.name, Op.UPDATE, new_key, old, new)
        else:
            yield Captured(table.name, Op.DELETE, old_key, old)
            yield Captured(table.name, Op.INSERT, new_key, None, new)

    def _check(self, table: Table, relation: Relation) -> None:
        """StateError: rows were rewritten without a message, or lack a column."""
        allowed = self.forms.get(relation.oid, ())
        found = forms_of(relation)
        others = [changed_columns(form, found) for form in allowed]
        if others and all(others):
            raise OtherFormError(
                f"column {', '.join(others[-1])} of table {table.name} was dropped, renamed, or has"
                " another type, and the log has rows of the table as it was then: let the"
                " configuration follow, unless it was altered back; then start the agent again,"
                " which tells the rows of the table",
                table.name,
                found,
            )
        self.checked[relation.oid] = relation

    def _old(self, table: Table, write: RowWrite) -> WireImage | None:
        """The row before; None: it is not in the log. One that fits no record is left empty."""
        if write.old is None or not write.is_whole:
            return None
        whole = image(table.columns, write.old)
        return whole if _fits(whole.known, self.record_bytes) else WireImage("{}", "{}")


def row_image(table: Table, row: Row, record_bytes: int) -> WireImage:
    """The image of a row on the wire; of one that fits no record, how large it is."""
    whole = image(table.columns, row)
    key = _key(table, row)
    if _fits((key.text if key else "") + whole.text, record_bytes):
        return whole
    size = len(whole.text.encode())
    text = f'{{"whole row":{{"bytes":"{size}"}}}}'
    return WireImage(text, "{}", (too_large("whole row", size),))


def _fits(text: str, record_bytes: int) -> bool:
    """Return whether it leaves room for another image of its size, which may be beside it."""
    return len(text.encode()) + OVERHEAD_BYTES <= record_bytes


def _key(table: Table, row: Row | None) -> WireImage | None:
    if row is None:
        return None
    return image({name: table.columns[name] for name in table.key}, row)
