"""Losers that may hold masks in place of values: none of them may become everybody's row."""

from collections.abc import Collection, Mapping

from streaming.core.conflict.judge import ConflictKind

MaskedTables = Mapping[int, Collection[str]]
"""Rid -> the tables that it was ever sent masked, so that its rows may have held masks."""

NONE_MASKED: MaskedTables = {}


def may_hold_masks(
    kind: str | None, rid: int | None, table: str, after: str | None, masked: MaskedTables
) -> bool:
    """Return whether a loser of this kind may have been written on masked rows.

    What a replica writes between the end of a mask and the copy of the rows is rejected with its
    transaction (`streaming/core/state/membership.py`). The record does not tell that from another
    rejected transaction.
    """
    was_masked = rid is not None and table in masked.get(rid, ())
    return was_masked and kind == ConflictKind.TRANSACTION and after is not None
