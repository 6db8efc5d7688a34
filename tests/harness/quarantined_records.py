"""Records in quarantine, as a hub keeps them, and what is asked about them."""

import random
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPConnection
from pathlib import Path

from checkpoints.tables import TableName
from streaming.config.sources.load import load
from streaming.core.model.table import Table
from streaming.core.records.check import check
from streaming.core.records.record import RecordKind
from tests.checkpoints.written_state import WrittenState, ruv
from tests.harness.mutations import KNOWN, mutated
from tests.harness.recorded_hub import served

PATHS = ("/status", "/conflicts", "/readyz", "/metrics")


def mutated_values(seed: int, count: int) -> Iterator[bytes]:
    """So many records that the check refuses."""
    rng = random.Random(seed)
    while count:
        value = mutated(rng)
        if check(value, 1, KNOWN).reason is not None:
            count -= 1
            yield value


def keep(
    state: WrittenState, values: Sequence[bytes], tables: Mapping[str, Table], times: int = 1
) -> None:
    """Let the quarantine of a state have these records of replica 1, each with its offset.

    `times`: how often each of them came.
    """
    state.commit(2, 0, ruv())
    rows = [_kept_row(offset, value, tables) for offset, value in enumerate(values)]
    for round_ in range(times):
        first = round_ * len(rows)
        places = ({"id": f"1-{n}", "offset": n} for n in range(first, first + len(rows)))
        again = (row | place for row, place in zip(rows, places, strict=True))
        state.append(TableName.QUARANTINE, *again)


def _kept_row(offset: int, value: bytes, tables: Mapping[str, Table]) -> dict[str, object]:
    found = check(value, 1, tables)
    assert found.reason is not None, "it is a record"
    return {
        "batch": 1,
        "id": f"1-{offset}",
        "action": "kept",
        "rid": 1,
        "offset": offset,
        "topic": "changes.a",
        "reason": found.reason.value,
        "detail": found.detail,
        "session": found.session,
        "csn": found.csn,
        "prim_csn": found.prim_csn,
        "table": found.table,
        "key": found.key,
        "content": found.content,
        "value": value,
        "kind": found.kind if found.kind in {*RecordKind} else None,
        "invalid": True,
    }


def answers_of_the_port(config_file: Path) -> dict[str, int]:
    """Path -> the code of a hub's answer about its tables."""
    with served(load(config_file)) as port:
        return {path: _answered(port, path) for path in PATHS}


def _answered(port: int, path: str) -> int:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status
