"""The origin's rule in small: two clusters, one detects with NDB$EPOCH; what a case would expect.

A row remembers the epoch of its last commit and whether that was local; deleted rows leave no
trace. Judged is by presence first: an insert of a row that exists and an update or delete of one
that does not are in conflict; else a write on a local row of an epoch above the max replicated
epoch is. All but a delete of nothing is answered with the row as it stands.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

Row = tuple[str, int]
Image = dict[str, Any] | None
OP_TYPES = {"insert": "WRITE_ROW", "update": "UPDATE_ROW", "delete": "DELETE_ROW"}


@dataclass(slots=True)
class Stored:
    """A row of the detecting cluster."""

    image: dict[str, Any]
    epoch: int
    is_local: bool


@dataclass(slots=True)
class Clusters:
    """A detects and B follows; each log holds what the other has not applied yet."""

    a: dict[Row, Stored]
    b: dict[Row, dict[str, Any]]
    epoch: int = 1
    replicated: int = 0
    log_a: list[tuple[Row, Image]] = field(default_factory=list)
    log_b: list[tuple[str, Row, Image, Image] | int] = field(default_factory=list)
    exceptions: list[dict[str, Any]] = field(default_factory=list)

    def write(self, cluster: str, op: str, row: Row, values: Image) -> bool:
        """Commit a write; False when there is nothing to write it on."""
        stored = self.a.get(row) if cluster == "A" else self.b.get(row)
        if (stored is None) != (op == "insert"):
            return False
        before = stored.image if isinstance(stored, Stored) else stored
        after = None if op == "delete" else {**(before or {}), **(values or {})}
        if cluster == "A":
            self._store(row, after, is_local=True)
            self.log_a.append((row, after))
        else:
            _put(self.b, row, after)
            self.log_b.append((op, row, before, after))
        return True

    def to_b(self) -> None:
        """B takes everything, and its log tells A which epoch that was."""
        for row, after in self.log_a:
            _put(self.b, row, after)
        self.log_a.clear()
        self.log_b.append(self.epoch)
        self.epoch += 1

    def to_a(self) -> None:
        """A judges what B wrote."""
        for event in self.log_b:
            if isinstance(event, int):
                self.replicated = event
            elif cause := self._cause(*event[:2]):
                self._reject(cause, *event)
            else:
                self._store(event[1], event[3], is_local=False)
        self.log_b.clear()
        self.epoch += 1

    def _cause(self, op: str, row: Row) -> str | None:
        stored = self.a.get(row)
        if op == "insert":
            return "ROW_ALREADY_EXISTS" if stored else None
        if stored is None:
            return "ROW_DOES_NOT_EXIST"
        return "DATA_IN_CONFLICT" if stored.is_local and stored.epoch > self.replicated else None

    def _reject(self, cause: str, op: str, row: Row, before: Image, after: Image) -> None:
        images = {"old": before or {"b": None}, "new": after or {"b": None}}
        named = {"table": row[0], "key": row[1], "op_type": OP_TYPES[op], "cause": cause}
        self.exceptions.append({**named, **images})
        stored = self.a.get(row)
        if stored is not None:
            self._store(row, stored.image, is_local=True)
        if stored is not None or op != "delete":
            self.log_a.append((row, stored.image if stored else None))

    def _store(self, row: Row, after: Image, *, is_local: bool) -> None:
        _put(self.a, row, None if after is None else Stored(after, self.epoch, is_local))


def _put(rows: dict[Row, Any], row: Row, value: object) -> None:
    if value is None:
        rows.pop(row, None)
    else:
        rows[row] = value


def case(setup: Sequence[dict[str, Any]], steps: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The case of these steps as the origin would have it; writes on nothing are left out."""
    rows = {(each["table"], each["key"]): dict(each["values"]) for each in setup}
    there = {row: Stored(image, 0, is_local=False) for row, image in rows.items()}
    clusters, done = Clusters(there, dict(rows)), []
    for step in steps:
        if step.get("sync") == "A->B":
            clusters.to_b()
        elif step.get("sync") == "B->A":
            clusters.to_a()
        elif not clusters.write(
            step["cluster"], step["op"], (step["table"], step["key"]), step["values"]
        ):
            continue
        done.append(step)
    on_nothing = [
        each
        for each in clusters.exceptions
        if (each["op_type"], each["cause"]) == ("DELETE_ROW", "ROW_DOES_NOT_EXIST")
    ]
    return {
        "id": "random",
        "function": "NDB$EPOCH",
        "detecting_cluster": "A",
        "setup_rows": setup,
        "steps": done,
        "expect": {
            "final_rows_A": _shown({row: stored.image for row, stored in clusters.a.items()}),
            "final_rows_B": _shown(clusters.b),
            "conflict_count_delta": len(clusters.exceptions),
            "exceptions": clusters.exceptions,
            "counters": {"ndb_conflict_epoch_delete_delete_count": len(on_nothing)},
        },
    }


def _shown(rows: dict[Row, dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"table": table, "key": key, "values": v} for (table, key), v in rows.items()]
