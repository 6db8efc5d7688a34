"""Rows that stand at their writer only: what was wrong, where their image is, what to do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import islice
from typing import Any

from checkpoints.query import among
from checkpoints.reading.reader import Reader
from checkpoints.tables import TableName
from streaming.config.config import Config
from streaming.core.records.record import Reason
from streaming.facts.consumers.divergent import MOST, DivergenceKind, DivergentRow, kept_different
from streaming.facts.names import names_of, serving

_LEFT_OUT = b'{"bytes":'
"""What an agent writes in place of a value that no record can hold (docs/wire.md, Capture)."""


class KeptImage(StrEnum):
    """Where the image of an uncarried row is kept."""

    QUARANTINE = "quarantine"
    """in the record in quarantine, whole, and in the database that wrote it"""
    TOPIC = "topic"
    """whole in its topic, from which a release reads it, and in the database that wrote it"""
    DATABASE = "database"
    """in the database that wrote it only; the record says how large it is"""


@dataclass(frozen=True, slots=True)
class UncarriedDescription:
    """A row that differs because nobody else can take what its writer wrote.

    `table` and `key` None: the record could not be read that far. `id`: of the newest record of the
    row, by which it is released or dropped. `since`: when the oldest record of it was written.
    """

    replica: str
    table: str | None
    key: str | None
    reason: Reason
    detail: str
    since: datetime | None
    image: KeptImage
    id: str
    remedy: str


def uncarried_rows(
    config: Config,
    reader: Reader,
    *,
    rid: int | None = None,
    table: str | None = None,
    key: str | None = None,
) -> list[DivergentRow]:
    """The uncarried rows of this replica, table and key, at most `MOST`; the oldest first."""
    replica = None if rid is None else names_of(config).get(rid, str(rid))
    found = (
        one
        for one in kept_different(serving(config, reader), reader)
        if one.kind is DivergenceKind.UNCARRIED
        and replica in (None, one.replica)
        and table in (None, one.table)
        and key in (None, one.key)
    )
    return [*islice(found, MOST)]


def described(reader: Reader, rows: Sequence[DivergentRow]) -> list[UncarriedDescription]:
    """These rows with what is wrong, where their images are, and what to do."""
    where = [among("id", [one.id for one in rows]), "action = 'kept'"]
    columns = ("id", "reason", "detail", "value", "sha256")
    found = reader.read(TableName.QUARANTINE, columns=columns, where=where, order_by="batch")
    kept = {row["id"]: row for row in found.to_pylist()}
    return [_described(one, kept[one.id]) for one in rows]


def _described(one: DivergentRow, kept: Mapping[str, Any]) -> UncarriedDescription:
    reason = Reason(kept["reason"])
    return UncarriedDescription(
        one.replica,
        one.table,
        one.key,
        reason,
        kept["detail"] or "",
        one.since,
        _image_of(kept),
        one.id,
        remedy_of(reason),
    )


def _image_of(kept: Mapping[str, Any]) -> KeptImage:
    """Where the image is of which this is kept; an agent tells of what no record can hold."""
    if kept["value"] is None or _LEFT_OUT in kept["value"]:
        return KeptImage.DATABASE
    return KeptImage.QUARANTINE if kept["sha256"] is None else KeptImage.TOPIC


def remedy_of(reason: Reason) -> str:
    """What to do about a row that is uncarried for this reason, if its writer shall keep it."""
    match reason:
        case Reason.SKEW:
            return (
                "correct the clock of its replica, then write the row again or release the record"
            )
        case Reason.RIGHTS:
            return (
                "name its table in `writes` of the replica, restart the hub and release the record;"
                " or drop it. What was written while its table was sent masked has the masks in it:"
                " drop that"
            )
        case Reason.COLUMN:
            return (
                "add the column to its table in the configuration (`slackwater config apply`), and"
                " it goes on by itself; if it has the column, write the row again where it was"
                " written"
            )
        case Reason.TABLE | Reason.KEY | Reason.SIZE:
            return "write the row again so that the others can take it, or delete it"
        case _:
            return "repair or upgrade its agent, then write the row again"
