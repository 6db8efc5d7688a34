"""Control records, told on the driver: commits in columns, the few others one by one.

Only what is surely good is told; whatever else there is, is left to the rules.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streaming.core.csn import is_csn_of, time_of
from streaming.core.record import Kind
from streaming.stages.commits import commits
from streaming.stages.plain import RUV, Limits

_RUV = re.compile(RUV.replace(r"\z", r"\Z"))
_HEAD = {"v", "kind", "session"}
_LARGEST = 2**63


def control(found: pa.Table, limits: Limits) -> tuple[pa.Table, pa.Table]:
    """(the facts of ordinary control records, all others as they are), of FACTS to be settled."""
    ended, others = commits(found, limits)
    change = pc.match_substring(others["value"], f'"kind":"{Kind.CHANGE}"'.encode())
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
        said = json.loads(row["value"].decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    kind = said.get("kind") if isinstance(said, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS or not _is_headed(said, limits):
        return None
    fields, is_good = _KINDS[kind]
    if said.keys() != _HEAD | fields or not is_good(said, row, limits):
        return None
    told = {"reason": None, "kind": kind, "session": said["session"]}
    return {**row, **told, "epoch": said.get("epoch"), "prim_csn": said.get("prim_csn")}


def _is_headed(said: Mapping[str, Any], limits: Limits) -> bool:
    session = said.get("session")
    is_text = isinstance(session, str) and session.isascii() and session.isprintable()
    is_known = _is_counter(said.get("v")) and 1 <= said["v"] <= limits.version
    return is_known and is_text and session != ""


def _is_counter(value: object) -> bool:
    return type(value) is int and 0 <= value < _LARGEST


def _ends(said: Mapping[str, Any], row: Mapping[str, Any], limits: Limits) -> bool:
    csn = said["prim_csn"]
    if not isinstance(csn, str) or not is_csn_of(csn, row["rid"]):
        return False
    return time_of(csn) - limits.skew_s <= int(row["time"].timestamp())


def _lives(said: Mapping[str, Any], _row: Mapping[str, Any], _limits: Limits) -> bool:
    return _is_counter(said["epoch"])


def _applied(said: Mapping[str, Any], _row: Mapping[str, Any], _limits: Limits) -> bool:
    counters = all(_is_counter(said[name]) for name in ("epoch", "covers", "generation"))
    ruv = json.dumps(said["ruv"], separators=(",", ":"), ensure_ascii=False)
    return counters and isinstance(said["ruv"], list) and _RUV.match(ruv) is not None


def _greets(said: Mapping[str, Any], row: Mapping[str, Any], limits: Limits) -> bool:
    own = said["own"]
    is_own = own is None or (isinstance(own, str) and is_csn_of(own, row["rid"]))
    return _applied(said, row, limits) and is_own and isinstance(said["lost"], bool)


_Good = Callable[[Mapping[str, Any], Mapping[str, Any], Limits], bool]

_POSITION = {"epoch", "covers", "generation", "ruv"}
_KINDS: dict[str, tuple[set[str], _Good]] = {
    Kind.COMMIT: ({"prim_csn"}, _ends),
    Kind.ABORT: ({"prim_csn"}, _ends),
    Kind.HEARTBEAT: ({"epoch"}, _lives),
    Kind.APPLIED: (_POSITION, _applied),
    Kind.HELLO: (_POSITION | {"own", "lost"}, _greets),
}
"""The fields of each kind beside v, kind and session, and what must hold of them."""
