"""What an undo writes: which changes of a table are undone, and each row as it stood before them.

The first change of a row that is undone says what stood before it, which is what the row becomes
again. Where others have written the row behind that change it stays, unless the order forces it.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

from streaming.core.conflict.judge import merged
from streaming.core.model.change import Op
from streaming.core.model.command import UndoOrder
from streaming.core.model.foreign_json import loads
from streaming.core.model.truncation import ALL_KEYS
from streaming.core.model.values import json_text
from streaming.core.text.wording import as_count

ROWS_MAX = 100_000
"""How many rows one transaction writes back at most; more are undone in parts."""


class WrittenRow(NamedTuple):
    """An accepted change of the table, as the changelog has it; ALL_KEYS: a truncate."""

    key: str
    hub_epoch: int
    csn: str
    prim_csn: str | None
    rid: int
    app: str | None
    op: Op


class TouchedRow(NamedTuple):
    """A row of which changes are undone.

    `base`: the change behind which it stood as it is to stand again; None: at the order's moment.
    `undone`: the first change that is undone. `since`: the last one behind it that is not.
    """

    key: str
    base: WrittenRow | None
    undone: WrittenRow
    since: WrittenRow | None = None


class UndoneRow(NamedTuple):
    """A row that is written back; an image that is None: it does not stand."""

    key: str
    now: str | None
    then: str | None

    @property
    def op(self) -> Op:
        """What the change that writes it back does."""
        if self.then is None:
            return Op.DELETE
        return Op.INSERT if self.now is None else Op.UPDATE


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """What an order does at a hub epoch.

    `kept`: rows that others have written since, which stay. `overwritten`: such rows that are
    written back all the same. `same`: how many stand so already.
    """

    order: UndoOrder
    seen: int
    rows: tuple[UndoneRow, ...]
    kept: tuple[TouchedRow, ...]
    overwritten: tuple[TouchedRow, ...]
    same: int

    def count(self, op: Op) -> int:
        """How many rows are written back by this operation."""
        return sum(row.op is op for row in self.rows)

    def parts(self) -> int:
        """How many transactions it takes, each of ROWS_MAX rows at most."""
        found = -(-len(self.rows) // ROWS_MAX)
        while found > 1 and max(self._sizes(found)) > ROWS_MAX:
            found += 1
        return max(found, 1)

    def _sizes(self, parts: int) -> list[int]:
        sizes = [0] * parts
        for row in self.rows:
            sizes[part_of(row.key, parts)] += 1
        return sizes


@dataclass(frozen=True, slots=True)
class UnaskedUndo:
    """An undo of the past whose own past is not kept: what it wrote is judged as it is recorded.

    `hub_epoch`: of its batch. `to`: the moment to which it went back. `oldest`: the first one that
    is kept.
    """

    hub_epoch: int
    table: str
    who: str
    to: int
    oldest: int
    rows: int

    @property
    def text(self) -> str:
        """What is not asked, why, and what is believed instead."""
        return (
            f"which rows the undo of hub epoch {self.hub_epoch} writes back to {self.table}:"
            f" hub epoch {self.to} is before hub epoch {self.oldest}, the oldest moment that is"
            f" kept; it is judged with what is recorded of it, {as_count(self.rows, 'row')}"
        )

    def document(self) -> dict[str, object]:
        """The same as JSON."""
        return {
            "hub_epoch": self.hub_epoch,
            "table": self.table,
            "who": self.who,
            "to_epoch": self.to,
            "oldest_epoch": self.oldest,
            "rows": self.rows,
        }


def part_of(key: str, parts: int) -> int:
    """The part in which the row with this key is undone."""
    return crc32(key.encode()) % parts


def is_undone(order: UndoOrder, seen: int, one: WrittenRow) -> bool:
    """Return whether an order that was based on hub epoch `seen` undoes a change."""
    first = order.to + 1 if order.first is None else order.first
    last = seen if order.last is None else min(order.last, seen)
    return (
        first <= one.hub_epoch <= last
        and order.rid in (None, one.rid)
        and order.app in (None, one.app)
        and order.op in (None, one.op)
        and order.transaction in (None, one.prim_csn or one.csn)
    )


def touched_rows(
    order: UndoOrder, seen: int, written: Iterable[WrittenRow], standing: Collection[str]
) -> list[TouchedRow]:
    """The rows of which the order undoes changes, in the order in which they were undone first.

    `written`: the changes of the table above the order's moment, in hub order. `standing`: the keys
    that stood at that moment; needed only if a truncate is among the changes, which writes every
    row that stands at its place, and no other.
    """
    alive, before = set(standing), dict[str, WrittenRow]()
    found = dict[str, TouchedRow]()
    for one in written:
        undoes = is_undone(order, seen, one)
        for key in sorted(alive) if one.key == ALL_KEYS else (one.key,):
            if key in found and not undoes:
                found[key] = found[key]._replace(since=one)
            elif undoes and key not in found:
                found[key] = TouchedRow(key, before.get(key), one)
            before[key] = one
        if one.key == ALL_KEYS:
            alive.clear()
        elif one.op.has_image:
            alive.add(one.key)
        else:
            alive.discard(one.key)
    here = (row for row in found.values() if order.key in (None, row.key))
    return [row for row in here if part_of(row.key, order.parts) == order.part]


def is_kept(order: UndoOrder, seen: int, row: TouchedRow) -> bool:
    """Return whether a row stays as others have written it since.

    What was written behind the hub epoch that the operator looked at is never overwritten.
    """
    return row.since is not None and not (order.is_forced and row.since.hub_epoch <= seen)


def undone_row(
    key: str, now: str | None, then: str | None, columns: Collection[str]
) -> UndoneRow | None:
    """The row as it is written back, with the table's columns only; None: it stands so already."""
    if then is not None:
        then = _with_columns(then, columns)
    if now == then or (now is not None and then is not None and _becomes(now, then, columns)):
        return None
    return UndoneRow(key, now, then)


def _with_columns(image: str, columns: Collection[str]) -> str:
    values: Mapping[str, object] = loads(image)
    if not values.keys() - set(columns):
        return image
    return json_text({name: values[name] for name in columns if name in values})


def _becomes(now: str, then: str, columns: Collection[str]) -> bool:
    """Return whether writing the older image over the row changes nothing."""
    written, standing = (loads(text or "{}") for text in (merged(now, then, tuple(columns)), now))
    return bool(written == standing)
