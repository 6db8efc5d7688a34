"""A change: one row operation with its full after-image, as it is in its origin's topic."""

import hashlib
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

RowKey = tuple[str, str]
"""(table, canonical text of the key object)."""

NOBODY = 0
"""The author of a row that no replica wrote, as far as is recorded."""

HUB_RID = 65_534
"""The author of the changes that the hub itself makes."""


class Op(StrEnum):
    """What a change does to its row."""

    INSERT = "insert"
    """Upsert of the whole row; the origin saw no row before."""
    UPDATE = "update"
    """Upsert of the whole row; the origin saw a row before."""
    DELETE = "delete"
    """The row is gone; a tombstone keeps its author and epoch."""
    TRUNCATE = "truncate"
    """All rows of the table are gone."""

    @property
    def is_of_table(self) -> bool:
        """Whether it concerns all rows of a table, and names no key."""
        return self is Op.TRUNCATE

    @property
    def has_image(self) -> bool:
        """Whether the row stands behind it, as its after-image says."""
        return self is Op.INSERT or self is Op.UPDATE


class Change(NamedTuple):
    """One row operation of one replica.

    Images and key are canonical JSON text (no spaces, columns in schema order); a column that
    is absent from an image is unknown, not null. `prim_csn` None: a transaction of its own.
    `epoch` is the origin's counter as the writing transaction read it. `app` names the writing
    application: a short text for people, no part of the content. `snapshot`: the id of the snapshot
    of which it is a row; None: it was written when its CSN says.
    """

    csn: str
    rid: int
    epoch: int
    table: str
    key: str
    op: Op
    after: str | None = None
    before: str | None = None
    prim_csn: str | None = None
    opno: int | None = None
    app: str | None = None
    snapshot: str | None = None

    @property
    def row(self) -> RowKey:
        """The row that it writes."""
        return self.table, self.key

    @property
    def content(self) -> str:
        """The hash that distinguishes a repeated change from a reused CSN (see CONTENT_FIELDS)."""
        return content_of(self._asdict())


def content_of(values: Mapping[str, object]) -> str:
    """Return the hash of the values of a change's CONTENT_FIELDS."""
    ordered = [values[name] for name in CONTENT_FIELDS]
    text = FIELD_SEPARATOR.join([NULL_TEXT if v is None else str(v) for v in ordered])
    return hash_of(text.encode())


def hash_of(text: bytes) -> str:
    """Return the hash of CONTENT_FIELDS as text, joined by FIELD_SEPARATOR."""
    return hashlib.sha256(text).hexdigest()[:CONTENT_DIGITS]


CONTENT_FIELDS = ("csn", "prim_csn", "epoch", "table", "key", "op", "before", "after", "opno")
FIELD_SEPARATOR = "\x1f"
NULL_TEXT = "\x00"
CONTENT_DIGITS = 32
