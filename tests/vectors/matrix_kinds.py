"""Each kind of vector of the epoch number matrix, and what plays it.

A replica is an origin, an operation a change, the hub the replica that exports. What is expected in
words is compared by the decision that they mean (words.toml).
"""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from checkpoints.reading.reader import open_state
from connectors.packets.arrived import Arrival, ArrivedPacket
from connectors.packets.header import Content, UpdatesHeader
from streaming.config.config import Config
from streaming.core.delivery.consumer import Position
from streaming.core.delivery.lack import LogGap, epochs_purged
from streaming.core.matrix.rows import NumberRange, lacking, moved
from streaming.core.model.errors import QuestionError
from streaming.facts.matrix.chepoch import by_time
from tests.checkpoints.written_state import WrittenState, agreement, replica, ruv
from tests.reference.matrix import changes, raised
from tests.vectors import tracking
from tests.vectors.outcome import Case, Difference
from tests.vectors.tracking import Found, Input, Play, Tracked

NameRow = Mapping[str, int]


def is_matrix_case(case: Case) -> bool:
    """Return whether the case is one of the epoch number matrix."""
    return case.get("kind") in PLAYS and case.keys() >= {"input", "expect"}


def play(case: Case) -> tuple[Tracked, list[Difference]]:
    """Ask the hub, and compare."""
    kind = case["kind"]
    played = Tracked(PLAYS[kind](kind, case["input"]), {})
    return played, tracking.differences(case, played)


class _Rids:
    """Names of origins as rids, and back."""

    def __init__(self, *rows: NameRow) -> None:
        names = sorted({name for row in rows for name in row})
        self.of = {name: rid for rid, name in enumerate(names, 1)}
        self.names = {rid: name for name, rid in self.of.items()}

    def row(self, named: NameRow) -> dict[int, int]:
        return {self.of[name]: number for name, number in named.items()}

    def named(self, row: Mapping[int, Any]) -> dict[str, Any]:
        return {self.names[rid]: number for rid, number in row.items()}


def _export(_: str, given: Input) -> Found:
    rows = {name: dict(row.items()) for name, row in given["matrix"].items()}
    here, to = given["at"], given["to"]
    sent = lacking(rows[here], rows[to])
    after = {**rows, to: raised(rows[to], sent)}
    return {
        "ranges": {origin: list(numbers) for origin, numbers in sent.items()},
        "count": sum(map(changes, sent.values())),
        "dest_row_after": after[to],
        "other_rows": all(after[name] == rows[name] for name in rows if name != to),
    }


def _chepoch(_: str, given: Input) -> Found:
    before, wanted = dict(given["row"].items()), dict(given["set"].items())
    rids = _Rids(before, wanted)
    after = {**rids.row(before), **rids.row(wanted)}
    changes = [
        [rids.names[origin], was, becomes]
        for origin, was, becomes in moved(rids.row(before), after)
    ]
    return {"row_after": rids.named(after), "changes": changes}


def _export_start(_: str, given: Input) -> Found:
    row = dict(given["row"].items())
    starts = lacking({origin: number + 1 for origin, number in row.items()}, row)
    return {"first_ids": {origin: numbers.first for origin, numbers in starts.items()}}


def _export_check(_: str, given: Input) -> Found:
    """The oldest hub epoch that is left is the one above the purge epoch."""
    sent, purged = given["last_sent"], given["earliest_in_log"] - 1
    gap = epochs_purged(sent, purged)
    missing = None if gap is None else list(NumberRange(gap.covers + 1, gap.purge_epoch))
    error = None if gap is None else LogGap.PURGED
    return {"wanted": sent + 1, "found": purged + 1, "error": error, "missing": missing}


def _recoverpacket(_: str, given: Input) -> Found:
    saved = [(one["time"], dict(one["row"].items())) for one in given["saved_export_rows"]]
    row = _recovered(json.dumps(saved), given["since"])
    return {"error": True} if row is None else {"row_after": row}


def _packet_order(_: str, given: Input) -> Found:
    """With one origin its numbers are hub epochs, so the consumer's rule can be asked."""
    ((origin, has),) = given["own_row"].items()
    position = Position("s", last=has, generation=1, answered=True)
    waiting = {
        one["name"]: ArrivedPacket(_between(*one[origin]), {1: Path(one["name"])})
        for one in given["waiting"]
    }
    importable = [name for name, one in waiting.items() if one.at(position) is Arrival.NEXT]
    order = list[str]()
    while ready := [name for name, one in waiting.items() if one.at(position) is Arrival.NEXT]:
        order.append(ready[0])
        position = replace(position, last=waiting[ready[0]].header.last_hub_epoch or 0)
    return {
        "importable_now": importable,
        "import_order": order,
        "row_after": {origin: position.last},
    }


def _between(first: int, last: int) -> UpdatesHeader:
    """The header of a packet with these hub epochs."""
    content = Content(records=last - first + 1)
    return UpdatesHeader("", 0, "", 0, 1, "s", last, {}, {}, first - 1, last, None, content=content)


SITE = "dest"


@cache
def _recovered(saved_text: str, since: str) -> dict[str, int] | None:
    """The row that `recoverpacket` sets, by a state with a commit for each saved row; None: error.

    Its newest commit is behind all that is asked for.
    """
    saved = sorted((_ms(time), row) for time, row in json.loads(saved_text))
    rids = _Rids(*(row for _, row in saved))
    config = _config(rids)
    with TemporaryDirectory() as folder:
        state = WrittenState(Path(folder) / "state").create()
        newest = [(_ms("12-31T00:00:00"), dict.fromkeys(rids.of, 10**9))]
        for epoch, (at_ms, row) in enumerate([*saved, *newest], 1):
            to = agreement(SITE, len(rids.of) + 1, epoch, ruv(r1=epoch))
            replicas = [replica(rid) for rid in rids.of.values()]
            known, numbers = [replace(to, acked_covers=0)], rids.row(row)
            state.commit(epoch, epoch, ruv(r1=epoch), replicas, known, numbers=numbers, at_ms=at_ms)
        try:
            found = by_time(config, open_state(state.root), SITE, _ms(since))
        except QuestionError:
            return None
    return dict(saved[found.after - 1][1])


def _ms(time: str) -> int:
    """A time of the page, which names no year and no zone."""
    return round(datetime.fromisoformat(f"2026-{time}").replace(tzinfo=UTC).timestamp() * 1000)


def _config(rids: _Rids) -> Config:
    sites = "".join(
        f'[[replicas]]\nname = "{name}"\nrid = {rid}\n'
        for name, rid in [*rids.of.items(), (SITE, len(rids.of) + 1)]
    )
    return Config(
        **tomllib.loads(f"""
            [kafka]
            bootstrap_servers = "localhost:9092"
            {sites}
            [[tables]]
            name = "t"
            key = ["id"]
            columns = {{ id = "int64" }}
            [[agreements]]
            name = "{SITE}"
            consumer = "{SITE}"
        """)
    )


PLAYS: dict[str, Play] = {
    "export": _export,
    "chepoch": _chepoch,
    "export_start": _export_start,
    "export_check": _export_check,
    "recoverpacket": _recoverpacket,
    "packet_order": _packet_order,
}
"""Kind of case -> what plays it."""
