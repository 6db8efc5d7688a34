"""Rows that a replica may hold otherwise than the hub, although nothing is on its way to it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import islice
from typing import Any

from checkpoints.reading.quarantined_rows import quarantined_rows, unnamed_records
from checkpoints.reading.reader import Reader
from streaming.config.config import Config
from streaming.core.records.record import Reason
from streaming.core.text.wording import as_count
from streaming.facts.names import names_of

MOST = 1_000
"""How many refused rows, and how many others, are listed at most."""


class DivergenceKind(StrEnum):
    """Why a row differs."""

    REFUSED = "refused"
    """the replica's database refused the hub's row"""
    UNCARRIED = "uncarried"
    """the replica holds what it wrote, and nobody else can take it"""
    QUARANTINED = "quarantined"
    """the replica may hold its own change, which the hub quarantined for another reason"""
    UNNAMED = "unnamed"
    """a record of the replica names no row, so it may hold what nobody got"""


@dataclass(frozen=True, slots=True)
class DivergentRow:
    """A row that differs; `table` and `key` None: the record could not be read that far.

    `id`: of the conflict, or of the newest record of the row in quarantine. `code`: of the refusal,
    or the reason. `why`: the same for people, with what the database said. `since`: when the oldest
    one was written.
    """

    replica: str
    kind: DivergenceKind
    table: str | None
    key: str | None
    id: str
    code: str
    why: str
    since: datetime | None = None


def divergent_rows(config: Config, reader: Reader) -> tuple[DivergentRow, ...]:
    """The rows that differ: refused ones, at most `MOST`, and then as many others.

    Those of records that name no row are not among them: see `unnamed_counts`.
    """
    return (*islice(_refused(config, reader), MOST), *islice(_named(config, reader), MOST))


def unnamed_counts(config: Config, reader: Reader) -> dict[str, dict[str, int]]:
    """Replica -> reason -> how many of its kept records may have written any row."""
    found: dict[str, dict[str, int]] = {}
    names = names_of(config)
    for row in _unnamed(config, reader, one_by_one=False):
        of = found.setdefault(_name(names, row), {})
        of[row["reason"]] = of.get(row["reason"], 0) + row["count"]
    return found


def times_differed(reader: Reader) -> int:
    """How often a row may have come to differ: by a record in quarantine, or by a refusal."""
    totals = reader.commit.totals if reader.commit else {}
    return totals.get("quarantined", 0) + totals.get("refused", 0)


def differing_text(rows: int, listed: Sequence[DivergentRow]) -> str:
    """How many rows differ, as far as `listed` tells: 1 row, at least 1000 rows."""
    return f"{'at least ' if len(listed) >= MOST else ''}{as_count(rows, 'row')}"


def _refused(config: Config, reader: Reader) -> Iterable[DivergentRow]:
    """Rows that a consumer is sent, and that its database refused as they stand."""
    names = names_of(config)
    sent = {one.consumer: one.tables for one in map(config.subscription, config.agreements)}
    for row in reader.refused_rows():
        if row["table"] in sent.get(row["loser_rid"], ()):
            yield DivergentRow(
                names[row["loser_rid"]],
                DivergenceKind.REFUSED,
                row["table"],
                row["key"],
                row["id"],
                row["code"],
                f"{row['code']}: {row['text']}",
                row["time"],
            )


def kept_different(config: Config, reader: Reader) -> Iterable[DivergentRow]:
    """Kept changes whose row was neither refreshed at its origin nor written again since.

    A change of the hub itself is in no database. A released one became a change of the hub, and a
    dropped one is closed by the operator's decision. Behind them those whose row is not known.
    """
    names = names_of(config)
    yield from _named(config, reader)
    for row in _unnamed(config, reader, one_by_one=True):
        yield _divergent(names, {**row, "table": None, "key": None})


def _named(config: Config, reader: Reader) -> Iterator[DivergentRow]:
    names = names_of(config)
    for row in quarantined_rows(reader, _receives(config), config.table_map()):
        if row["rid"] != config.hub.rid:
            yield _divergent(names, row)


def _unnamed(config: Config, reader: Reader, *, one_by_one: bool) -> Iterator[Mapping[str, Any]]:
    tables, receives = config.table_map(), _receives(config)
    for row in unnamed_records(reader, receives, tables, one_by_one=one_by_one):
        if row["rid"] != config.hub.rid:
            yield row


def _divergent(names: Mapping[int, str], row: Mapping[str, Any]) -> DivergentRow:
    return DivergentRow(
        _name(names, row),
        kind_of(Reason(row["reason"])),
        row["table"],
        row["key"],
        row["id"],
        row["reason"],
        row["reason"],
        row["since"],
    )


def _name(names: Mapping[int, str], row: Mapping[str, Any]) -> str:
    return names.get(row["rid"], str(row["rid"]))


def kind_of(reason: Reason) -> DivergenceKind:
    """Why a row differs of which a record is in quarantine for this reason."""
    return DivergenceKind.UNCARRIED if reason.is_uncarried else DivergenceKind.QUARANTINED


def _receives(config: Config) -> dict[int, list[str]]:
    """Rid -> the tables of which its agreement sends it every change of other replicas."""
    found = dict[int, list[str]]()
    for agreement in config.agreements:
        sent = config.subscription(agreement)
        found[sent.consumer] = sorted(sent.unfiltered)
    return found
