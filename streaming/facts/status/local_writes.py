"""Writes that stayed at one replica, of which nobody knows that the rows are equal again.

An agent tells how many rows of each table were written so in all. A comparison that finds no
difference in a table, and an operator who accepts what is there, settle what was told until then.
"""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime

from checkpoints.reading.newest_records import newest_records
from checkpoints.reading.reader import Reader
from checkpoints.times import time_of
from streaming.config.config import Config
from streaming.core.model.command import AcceptedWrites, CommandName, parse_accepted_writes
from streaming.core.model.errors import QuestionError
from streaming.core.records.local_writes import TableWrites, parse_tables
from streaming.core.records.record import RecordKind
from streaming.core.text.wording import as_count
from streaming.facts.consumers.compared import RecordedRounds
from streaming.facts.names import rid_of_any


@dataclass(frozen=True, slots=True)
class LocalTable:
    """A table of which rows were written at one replica only; `rows`: since it was settled."""

    replica: str
    table: str
    rows: int
    last_at: datetime


def told_writes(reader: Reader) -> dict[int, dict[str, TableWrites]]:
    """Rid -> table -> the writes that its agent has told in all."""
    found = newest_records(reader, RecordKind.LOCAL_WRITES)
    return {rid: parse_tables(one["tables"]) for rid, one in found.items()}


def local_tables(config: Config, reader: Reader, rounds: RecordedRounds) -> tuple[LocalTable, ...]:
    """The tables with writes that are not settled, by replica and name."""
    told = told_writes(reader)
    settled = _settled(config, reader, rounds) if told else {}
    return tuple(
        LocalTable(one.name, table, _since(writes, before), time_of(writes.last_ms))
        for one in config.replicas
        for table, writes in sorted(told.get(one.rid, {}).items())
        if writes != (before := settled.get((one.rid, table)))
    )


def local_warnings(found: Iterable[LocalTable]) -> Iterator[str]:
    """A sentence for each of these tables."""
    for one in found:
        yield (
            f"warning: local writes at {one.replica}: table {one.table},"
            f" {as_count(one.rows, 'row')}, last at {one.last_at:%Y-%m-%d %H:%M:%S} UTC, which no"
            f" other replica has; `slackwater compare hub {one.replica} --database"
            f" {one.replica}=DSN` finds what differs"
        )


def accepted_writes(
    config: Config,
    reader: Reader,
    rounds: RecordedRounds,
    replica: str,
    tables: Iterable[str],
    who: str,
    why: str,
) -> AcceptedWrites:
    """The order to accept what was told of these tables, or of all that are listed.

    QuestionError: one is not listed, or none is. ConfigError: there is no such replica.
    """
    rid = rid_of_any(config, replica)
    told, settled = told_writes(reader).get(rid, {}), _settled(config, reader, rounds)
    listed = [name for name in told if told[name] != settled.get((rid, name))]
    wanted = [*tables] or listed
    for name in wanted or [""]:
        if name not in listed:
            of = f"table {name}" if name else "any table"
            raise QuestionError(
                f"{replica}: its agent has told no local writes of {of} that are not accepted or"
                " found equal: `slackwater local list` names the tables"
            )
    return AcceptedWrites(rid, {name: asdict(told[name]) for name in wanted}, who, why)


def _since(told: TableWrites, before: TableWrites | None) -> int:
    """The rows since then; a database that was attached anew counts from the beginning."""
    rows = told.rows - (before.rows if before else 0)
    return rows if rows > 0 else told.rows


def _settled(
    config: Config, reader: Reader, rounds: RecordedRounds
) -> dict[tuple[int, str], TableWrites]:
    """(rid, table) -> what of its writes was last found equal, or accepted."""
    rids = {one.name: one.rid for one in config.replicas}
    consumers = {one.name: rids.get(one.consumer, 0) for one in config.agreements}
    found = dict[tuple[int, str], tuple[datetime, TableWrites]]()
    for (agreement, table), (writes, at) in rounds.settled.items():
        if agreement in consumers:
            found[consumers[agreement], table] = at, writes
    for at, order in _accepted(reader):
        for table, writes in parse_tables(order.tables).items():
            key = order.rid, table
            if key not in found or found[key][0] <= at:
                found[key] = at, writes
    return {key: writes for key, (_, writes) in found.items()}


def _accepted(reader: Reader) -> Iterator[tuple[datetime, AcceptedWrites]]:
    """The orders of operators, the oldest first."""
    for row in reader.commands():
        if row["command"] == CommandName.ACCEPT_LOCAL:
            yield row["at"], parse_accepted_writes(row["argument"] or "")
