"""Control records, told on the driver: commits in columns, the few others one by one.

Only what is surely good is told; whatever else there is, is left to the rules.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streaming.core.model.csn import is_csn_of, time_of
from streaming.core.model.record import RecordKind
from streaming.stages.commits import commits
from streaming.stages.plain import RUV, Limits

_RUV = re.compile(RUV.replace(r"\z", r"\Z"))
_HEAD = {"v", "kind", "session"}
_LARGEST = 2**63


def control(found: pa.Table, limits: Limits) -> tuple[pa.Table, pa.Table]:
    """(the facts of ordinary control records, all others as they are), of CHECKED to be settled."""
    ended, others = commits(found, limits)
    change = pc.match_substring(others["value"], f'"kind":"{RecordKind.CHANGE}"'.encode())
    rows = [
        None if is_change else _told(row, limits)
        for row, is_change in zip(others.to_pylist(), change.to_pylist(), strict=True)
    ]
    told = pa.Table.from_pylist([row for row in rows if row is not None], schema=found.schema)
    left = others.filter(pa.array([row is None for row in rows], pa.bool_()))
    return pa.concat_tables([ended, told]), left


def _told(row: Mapping[str, Any], limits: Limits) -> dict[str, Any] | None:
    """The facts of one record; None: it is left to the rules."""
    if len(row["value"]) > limits.record_bytes:
        return None
    try:
        received = json.loads(row["value"].decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    kind = received.get("kind") if isinstance(received, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS or not _is_headed(received, limits):
        return None
    fields, is_good = _KINDS[kind]
    if received.keys() != _HEAD | fields or not is_good(received, row, limits):
        return None
    told = {"reason": None, "kind": kind, "session": received["session"]}
    return {**row, **told, "epoch": received.get("epoch"), "prim_csn": received.get("prim_csn")}


def _is_headed(received: Mapping[str, Any], limits: Limits) -> bool:
    session = received.get("session")
    is_text = isinstance(session, str) and session.isascii() and session.isprintable()
    is_known = _is_counter(received.get("v")) and 1 <= received["v"] <= limits.version
    return is_known and is_text and session != ""


def _is_counter(value: object) -> bool:
    return type(value) is int and 0 <= value < _LARGEST


def _ends(received: Mapping[str, Any], row: Mapping[str, Any], limits: Limits) -> bool:
    csn = received["prim_csn"]
    if not isinstance(csn, str) or not is_csn_of(csn, row["rid"]):
        return False
    return time_of(csn) - limits.skew_s <= int(row["time"].timestamp())


def _lives(received: Mapping[str, Any], _row: Mapping[str, Any], _limits: Limits) -> bool:
    return _is_counter(received["epoch"])


def _applied(received: Mapping[str, Any], _row: Mapping[str, Any], _limits: Limits) -> bool:
    counters = all(_is_counter(received[name]) for name in ("epoch", "covers", "generation"))
    ruv = json.dumps(received["ruv"], separators=(",", ":"), ensure_ascii=False)
    return counters and isinstance(received["ruv"], list) and _RUV.match(ruv) is not None


def _greets(received: Mapping[str, Any], row: Mapping[str, Any], limits: Limits) -> bool:
    own = received["own"]
    is_own = own is None or (isinstance(own, str) and is_csn_of(own, row["rid"]))
    return _applied(received, row, limits) and is_own and isinstance(received["lost"], bool)


_Good = Callable[[Mapping[str, Any], Mapping[str, Any], Limits], bool]

_POSITION = {"epoch", "covers", "generation", "ruv"}
_KINDS: dict[str, tuple[set[str], _Good]] = {
    RecordKind.COMMIT: ({"prim_csn"}, _ends),
    RecordKind.ABORT: ({"prim_csn"}, _ends),
    RecordKind.HEARTBEAT: ({"epoch"}, _lives),
    RecordKind.APPLIED: (_POSITION, _applied),
    RecordKind.HELLO: (_POSITION | {"own", "lost"}, _greets),
}
"""The fields of each kind beside v, kind and session, and what must hold of them."""
