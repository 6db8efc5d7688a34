"""What the last comparison of each consumer with the hub found, row by row."""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

import orjson

from checkpoints.reading.reader import Reader
from streaming.config.config import Config
from streaming.core.records.local_writes import TableWrites, parse_tables
from streaming.core.text.wording import as_age, as_count, as_duration


@dataclass(frozen=True, slots=True)
class ComparedRound:
    """What one round over the tables of an agreement found; `seconds`: how long it took.

    `more_differ`: more rows differ than were looked for. `in_flight`: rows that differed first.
    `written`: those that were written too late to say whether they differ. `behind_s`: as of
    `behind_text`. `settled`: table without a difference -> the writes that stayed at the replica,
    as they were told when the round began.
    """

    agreement: str
    rows: int
    differing: int
    more_differ: bool
    in_flight: int
    seconds: float
    behind_s: float | None = None
    written: int = 0
    settled: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def text(self) -> str:
        """The round as the document of a row of `config`."""
        return orjson.dumps(asdict(self)).decode()


@dataclass(frozen=True, slots=True)
class FailedRound:
    """A round over the tables of an agreement that could not be, and why."""

    agreement: str
    reason: str

    def text(self) -> str:
        """The round as the document of a row of `config`."""
        return orjson.dumps(asdict(self)).decode()


@dataclass(frozen=True, slots=True)
class RecordedRounds:
    """Agreement -> its last round, and when that ended; -> why a later one failed.

    `settled`: (agreement, table) -> what a round settled last of local writes, and when that was.
    `read_s`: when they were read; 0: they were not yet.
    """

    ended: Mapping[str, tuple[ComparedRound, datetime]] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    settled: Mapping[tuple[str, str], tuple[TableWrites, datetime]] = field(default_factory=dict)
    read_s: float = 0.0


@dataclass(frozen=True, slots=True)
class ConsumerComparison:
    """The last round of a consumer, and how long ago it ended."""

    rows: int
    differing: int
    more_differ: bool
    ended_at: datetime
    age_s: float
    behind_s: float | None = None
    written: int = 0

    @property
    def finds_other_rows(self) -> bool:
        """Return whether rows differ, and nothing is on its way to them."""
        return self.differing > 0 and self.behind_s is None

    @property
    def text(self) -> str:
        """Return it as a sentence."""
        least = "at least " if self.more_differ else ""
        rows = as_count(self.rows, "row")
        differ = f"{least}{self.differing} of them differ{doubts_text(self)}"
        return f"compared {as_age(self.age_s)}: {rows}, {differ}"


def behind_text(behind_s: float) -> str:
    """What it means that somebody is further behind than a comparison waited for."""
    return (
        f"the hub or a consumer was {as_duration(behind_s)} behind, longer than was waited for, so"
        " what differs may be in flight"
    )


def written_text(count: int) -> str:
    """How many rows were written while they were looked at, as the end of a sentence."""
    if not count:
        return ""
    return f"; {as_count(count, 'row')} {'was' if count == 1 else 'were'} written meanwhile"


def doubts_text(found: ComparedRound | ConsumerComparison) -> str:
    """What may be in flight of a round, as the end of a sentence."""
    behind = "" if found.behind_s is None else f"; {behind_text(found.behind_s)}"
    return f"{written_text(found.written)}{behind}"


def recorded_rounds(reader: Reader) -> RecordedRounds:
    """The last rounds of each agreement."""
    ended: dict[str, tuple[ComparedRound, datetime]] = {}
    failed: dict[str, str] = {}
    settled: dict[tuple[str, str], tuple[TableWrites, datetime]] = {}
    for row in reader.comparisons():
        document = orjson.loads(row["document"])
        agreement = document["agreement"]
        if "reason" in document:
            failed[agreement] = document["reason"]
        else:
            ended[agreement] = (_parsed(document), row["at"])
            for table, writes in parse_tables(document.get("settled") or {}).items():
                settled[agreement, table] = writes, row["at"]
            failed.pop(agreement, None)
    return RecordedRounds(ended, failed, settled, time.time())


def consumer_comparison(
    rounds: RecordedRounds, agreement: str, now_s: float
) -> ConsumerComparison | None:
    """The last round of an agreement; None: it was never compared."""
    if agreement not in rounds.ended:
        return None
    found, at = rounds.ended[agreement]
    age_s = round(now_s - at.timestamp(), 3)
    return ConsumerComparison(
        found.rows, found.differing, found.more_differ, at, age_s, found.behind_s, found.written
    )


def differing_consumers(
    config: Config, rounds: RecordedRounds, now_s: float
) -> dict[str, ConsumerComparison]:
    """Consumer -> its last round, of those whose rows differ and are not in flight."""
    found = {
        one.consumer: consumer_comparison(rounds, one.name, now_s) for one in config.agreements
    }
    return {name: one for name, one in found.items() if one is not None and one.finds_other_rows}


def other_rows_text(consumer: str, found: ConsumerComparison) -> str:
    """Say that a consumer has other rows than the hub."""
    return f"{consumer} has other rows than the hub: {found.text}"


def other_rows_warnings(found: Mapping[str, ConsumerComparison]) -> list[str]:
    """A sentence for each of these consumers."""
    return [
        f"warning: {other_rows_text(name, one)}; `slackwater compare hub {name} --database"
        f" {name}=DSN` compares them now"
        for name, one in found.items()
    ]


def _parsed(document: Mapping[str, Any]) -> ComparedRound:
    """A round as this version knows it; another one may say more, or less."""
    known = ComparedRound.__dataclass_fields__
    return ComparedRound(**{name: document[name] for name in known if name in document})
