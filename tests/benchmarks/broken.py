"""Records of a replica that are all broken, each in another way: none may be accepted."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from streaming.core.model.change import HUB_RID
from tests.benchmarks.load import Load, session_of

Members = dict[str, Any]


def records(load: Load, name: str, rid: int, count: int) -> Iterator[bytes]:
    """So many records for the topic of a replica; the same rule is broken with another content."""
    for n in range(count):
        members = json.loads(load.change("alpha", n))
        members |= {"session": session_of(name), "csn": load.csn(rid, n)}
        way = n % (len(_BYTES) + len(_MEMBERS))
        if way < len(_BYTES):
            yield _BYTES[way](_written(members), n)
        else:
            yield _written(members | _MEMBERS[way - len(_BYTES)](members, n))


def _written(members: Members) -> bytes:
    return json.dumps(members, separators=(",", ":")).encode()


def _at(text: bytes, n: int) -> int:
    """A place within the text, another one for most n."""
    return 1 + n * 7 % (len(text) - 2)


def _without_a_quote(text: bytes, n: int) -> bytes:
    parts = text.split(b'"')
    place = 1 + n % (len(parts) - 1)
    return b'"'.join(parts[:place]) + b"'" + b'"'.join(parts[place:])


_BYTES: list[Callable[[bytes, int], bytes]] = [
    lambda text, n: text[: _at(text, n)],
    lambda text, n: text + b"x%d" % n,
    lambda text, n: text[: _at(text, n)] + b"\xff" + text[_at(text, n) :],
    lambda text, n: b"[%s,%d]" % (text, n),
    lambda _text, n: b"%d" % n,
    _without_a_quote,
]
"""No JSON object in UTF-8."""

_MEMBERS: list[Callable[[Members, int], Members]] = [
    lambda _, n: {"v": 2 + n},
    lambda _, n: {"v": f"version {n}"},
    lambda _, n: {"kind": f"kind {n}"},
    lambda _, n: {"kind": n},
    lambda _, n: {"session": f"session {n}"},
    lambda _, n: {"session": n},
    lambda one, n: {"csn": one["csn"][: n % 20]},
    lambda _, n: {"csn": f"CSN{n:017}"},
    lambda _, n: {"csn": n},
    lambda one, n: {"csn": one["csn"][:12] + f"{HUB_RID - n % 1_000:04x}0000"},
    lambda _, n: {"csn": f"{2**32 - 1 - n:08x}{n % 2**16:04x}00040000"},
    lambda _, n: {"prim_csn": f"primary {n}"},
    lambda _, n: {"epoch": -1 - n},
    lambda _, n: {"epoch": f"epoch {n}"},
    lambda _, n: {"epoch": n + 0.5},
    lambda _, n: {"table": f"table {n}"},
    lambda _, n: {"table": n},
    lambda _, n: {"key": {"id": n}},
    lambda _, n: {"key": {f"column {n}": "1"}},
    lambda one, n: {"key": {"id": str(int(one["key"]["id"]) + 1 + n)}},
    lambda _, n: {"key": [n]},
    lambda _, n: {"op": f"op {n}"},
    lambda _, n: {"op": "delete", "opno": n + 1},
    lambda _, n: {"after": None, "opno": n + 1},
    lambda _, n: {"after": f"after {n}"},
    lambda one, n: {"after": one["after"] | {f"column {n}": "1"}},
    lambda one, n: {"after": one["after"] | {"balance": n}},
    lambda one, n: {"after": one["after"] | {"balance": f"{n},25"}},
    lambda one, n: {"after": one["after"] | {"sent_ms": str(2**63 + n)}},
    lambda one, n: {"after": one["after"] | {"owner": f"\ud800 {n}"}},
    lambda one, n: {"before": one["before"] | {"owner": n}},
    lambda _, n: {"opno": -n},
]
"""A JSON object that breaks a rule of the wire."""
