"""The origin's rules in small: two clusters, one detects; what a case would expect.

A row remembers the epoch of its last commit and whether that was local; deleted rows leave no
trace. Judged is by presence first: an insert of a row that exists and an update or delete of one
that does not are in conflict; else a write on a local row of an epoch above the max replicated
epoch is, or what a column says. Functions of epochs answer with the row as it stands.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

Row = tuple[str, Any]
Image = dict[str, Any] | None
OP_TYPES = {"insert": "WRITE_ROW", "update": "UPDATE_ROW", "delete": "DELETE_ROW"}
COLUMN = "X"
SPAN = 4
"""So many epochs are one global checkpoint: what the bits of NDB$EPOCH(bits) tell apart."""

EXISTS, MISSING, DATA = "ROW_ALREADY_EXISTS", "ROW_DOES_NOT_EXIST", "DATA_IN_CONFLICT"
TRANSACTION = "TRANS_IN_CONFLICT"
WHOLE = "NDB$EPOCH_TRANS"


@dataclass(slots=True)
class Stored:
    """A row of the detecting cluster."""

    image: dict[str, Any]
    epoch: int
    is_local: bool


@dataclass(frozen=True, slots=True)
class Event:
    """A write of the cluster that does not detect; `steps`: where it stands in the case."""

    op: str
    row: Row
    before: Image
    after: Image
    transaction: object
    steps: frozenset[int]


@dataclass(slots=True)
class Clusters:
    """A detects and B follows; each log holds what the other has not applied yet.

    `functions`: those of A's tables, None for none. `log_a`: rows, each with the operation that
    it reflects if it does. `local_b`: the rows that B wrote last itself. `columns`: what is
    compared, where it is not X. `exceptions`: with their causes. `rejected`: transactions;
    `rejected_together`: those of one epoch in one.
    """

    functions: Mapping[str, str | None]
    a: dict[Row, Stored]
    b: dict[Row, dict[str, Any]]
    columns: Mapping[str, str] = field(default_factory=dict)
    epoch: int = 1
    replicated: int = 0
    local_b: set[Row] = field(default_factory=set)
    log_a: list[tuple[Row, Image, str | None]] = field(default_factory=list)
    log_b: list[Event | int] = field(default_factory=list)
    exceptions: list[tuple[str, Event]] = field(default_factory=list)
    conflicts: list[Event] = field(default_factory=list)
    rejected: list[list[Event]] = field(default_factory=list)
    rejected_together: list[list[Event]] = field(default_factory=list)

    @classmethod
    def start(
        cls,
        functions: Mapping[str, str | None],
        setup: Sequence[Mapping[str, Any]],
        columns: Mapping[str, str] | None = None,
    ) -> "Clusters":
        """Both with the same rows, which nobody wrote."""
        rows = {row_of(each): dict(each["values"]) for each in setup}
        there = {row: Stored(image, 0, is_local=False) for row, image in rows.items()}
        return cls(functions, there, dict(rows), columns or {})

    def take(self, number: int, step: Mapping[str, Any]) -> bool:
        """Do a step of a case; False for a write when there is nothing to write it on."""
        if "sync" in step:
            (self.to_b if step["sync"] == "A->B" else self.to_a)()
            return True
        transaction = number if step.get("txn") is None else f"txn {step['txn']}"
        return self._write(number, step, transaction)

    def _write(self, number: int, step: Mapping[str, Any], transaction: object) -> bool:
        cluster, op, row, values = step["cluster"], step["op"], row_of(step), step["values"]
        stored = self.a.get(row) if cluster == "A" else self.b.get(row)
        if (stored is None) != (op == "insert"):
            return False
        before = stored.image if isinstance(stored, Stored) else stored
        after = None if op == "delete" else {**(before or {}), **(values or {})}
        if cluster == "A":
            self._store(row, after, is_local=True)
            self.log_a.append((row, after, None))
        else:
            _put(self.b, row, after)
            self.local_b.add(row)
            event = Event(op, row, before, after, transaction, frozenset({number}))
            self.log_b.append(event)
        return True

    def to_b(self) -> None:
        """B takes everything but a reflected write that came too late, and tells A the epoch."""
        for row, after, reflected in self.log_a:
            there, is_local = row in self.b, row in self.local_b
            if reflected is None or (not there if reflected == "insert" else there > is_local):
                _put(self.b, row, after)
                self.local_b.discard(row)
        self.log_a.clear()
        self.log_b.append(self.epoch)
        self.epoch += 1

    def to_a(self) -> None:
        """A judges what B wrote, epoch by epoch."""
        epoch = list[Event]()
        for event in self.log_b:
            if isinstance(event, Event):
                epoch.append(event)
            else:
                self._judge(epoch)
                self.replicated, epoch = event, []
        self._judge(epoch)
        self.log_b.clear()
        self.epoch += 1

    def _judge(self, epoch: Sequence[Event]) -> None:
        """Reject transactions with what builds on them in this epoch; apply the others."""
        of_rejected: dict[Row, bool] = {}
        tracked, before = dict(self.a), len(self.rejected)
        for _, group in groupby(epoch, lambda event: event.transaction):
            transaction = _merged(group)
            self._track(transaction, tracked)
            direct = any(self._is_whole(e) and not self._is_on_nothing(e) for e in transaction)
            depends = any(of_rejected.get(event.row) for event in transaction)
            of_rejected.update({event.row: direct or depends for event in transaction})
            if direct or depends:
                self._reject(transaction)
            else:
                for event in transaction:
                    self._apply(event)
        if together := [event for each in self.rejected[before:] for event in each]:
            self.rejected_together.append(together)

    def _track(self, transaction: Sequence[Event], tracked: dict[Row, Stored]) -> None:
        """Count what is in conflict itself where all else of the epoch is applied."""
        for event in transaction:
            if self._cause(event, tracked) is None:
                stored = (
                    None if event.after is None else Stored(event.after, self.epoch, is_local=False)
                )
                _put(tracked, event.row, stored)
            elif self.functions[event.row[0]] == WHOLE:
                self.conflicts.append(event)

    def _is_whole(self, event: Event) -> bool:
        return self.functions[event.row[0]] == WHOLE and self._cause(event, self.a) is not None

    def _is_on_nothing(self, event: Event) -> bool:
        return event.op == "delete" and event.row not in self.a

    def _reject(self, transaction: list[Event]) -> None:
        self.rejected.append(transaction)
        for event in transaction:
            if self.functions[event.row[0]]:
                self.exceptions.append((TRANSACTION, event))
            self._refresh(event.row)

    def _apply(self, event: Event) -> None:
        function = self.functions[event.row[0]]
        cause = self._cause(event, self.a)
        if cause is None:
            if function is not None or event.op == "insert" or event.row in self.a:
                self._store(event.row, event.after, is_local=False)
            if function == "NDB$EPOCH2":
                self.log_a.append((event.row, event.after, event.op))
            return
        if function != WHOLE:
            self.conflicts.append(event)
        self.exceptions.append((cause, event))
        by_epoch = function is not None and function.startswith("NDB$EPOCH")
        if by_epoch and not self._is_on_nothing(event):
            self._refresh(event.row)

    def _cause(self, event: Event, rows: Mapping[Row, Stored]) -> str | None:
        function, stored = self.functions[event.row[0]] or "", rows.get(event.row)
        if not function:
            return None
        if event.op == "insert":
            if stored is None:
                return None
            if not function.endswith("_INS"):
                return EXISTS
        if stored is None:
            return MISSING
        if function.startswith("NDB$EPOCH"):
            seen = _saturated(stored.epoch, function) <= self.replicated
            return None if seen or not stored.is_local else DATA
        column = self.columns.get(event.row[0], COLUMN)
        return None if _wins_by_column(event, stored.image, function, column) else DATA

    def _refresh(self, row: Row) -> None:
        stored = self.a.get(row)
        if stored is not None:
            self._store(row, stored.image, is_local=True)
        self.log_a.append((row, stored.image if stored else None, None))

    def _store(self, row: Row, after: Image, *, is_local: bool) -> None:
        _put(self.a, row, None if after is None else Stored(after, self.epoch, is_local))


def _merged(transaction: Iterable[Event]) -> list[Event]:
    """One write per row, as the storage engine makes of all that a transaction does to it."""
    rows: dict[Row, list[Event]] = {}
    for event in transaction:
        rows.setdefault(event.row, []).append(event)
    events = list[Event]()
    for of_row in rows.values():
        first, last = of_row[0], of_row[-1]
        op = "insert" if first.before is None else "delete" if last.after is None else "update"
        if (first.before, last.after) != (None, None):
            together = frozenset[int]().union(*(event.steps for event in of_row))
            one = Event(op, first.row, first.before, last.after, first.transaction, together)
            events.append(one)
    return events


def _wins_by_column(event: Event, stored: dict[str, Any], function: str, column: str) -> bool:
    is_delete = event.op == "delete"
    if is_delete and "_DEL" in function:
        return True
    if is_delete or function == "NDB$OLD":
        return event.before is not None and bool(event.before[column] == stored[column])
    return event.after is not None and bool(event.after[column] > stored[column])


def _saturated(epoch: int, function: str) -> int:
    if not epoch or not function.endswith(")"):
        return epoch
    bits = int(function.removesuffix(")").rpartition("(")[2])
    return epoch if epoch % SPAN < (1 << bits) - 1 else epoch | (SPAN - 1)


def _put(rows: dict[Row, Any], row: Row, value: object) -> None:
    if value is None:
        rows.pop(row, None)
    else:
        rows[row] = value


def case(
    setup: Sequence[dict[str, Any]],
    steps: Sequence[dict[str, Any]],
    function: str = "NDB$EPOCH",
    table_functions: Mapping[str, str | None] | None = None,
) -> dict[str, Any]:
    """The case of these steps as the origin would have it; writes on nothing are left out.

    The writes of a transaction follow one another.
    """
    written = [*setup, *(step for step in steps if "table" in step)]
    functions = table_functions or {each["table"]: function for each in written}
    clusters, done = Clusters.start(functions, setup), []
    for number, step in enumerate(steps):
        if not clusters.take(number, step):
            continue
        match step.get("sync"):
            case "A->B":
                done.append({**step, "expect_rows_B": _shown(clusters.b)})
            case "B->A":
                done.append({**step, "expect_rows_A": _shown_a(clusters)})
            case _:
                done.append(step)
    return {
        "id": "random",
        "function": function,
        **({"table_functions": table_functions} if table_functions else {}),
        "detecting_cluster": "A",
        "setup_rows": setup,
        "steps": done,
        "expect": {
            "final_rows_A": _shown_a(clusters),
            "final_rows_B": _shown(clusters.b),
            "exceptions": [
                {"table": event.row[0], "key": event.row[1], **exception(cause, event)}
                for cause, event in clusters.exceptions
            ],
            **_counts(clusters, function),
        },
    }


def _counts(clusters: Clusters, function: str) -> dict[str, Any]:
    """What is counted the same however an epoch is cut."""
    short = function.removeprefix("NDB$").partition("(")[0].lower().replace("delete", "del")
    found = [event.row[0] for event in clusters.conflicts]
    if function == WHOLE:
        whole = {t: found.count(t) for t, name in clusters.functions.items() if name == function}
        counters = {
            "ndb_conflict_fn_epoch_trans": sum(whole.values()),
            "ndb_conflict_trans_row_reject_count": sum(map(len, clusters.rejected)),
            "ndb_conflict_trans_reject_count": len(clusters.rejected),
        }
        return {"conflict_count_delta": whole, "counters": counters}
    on_nothing = [one for one in clusters.exceptions if is_delete_on_nothing(*one)]
    counters = {f"ndb_conflict_fn_{short}": len(found)}
    if function.startswith("NDB$EPOCH"):
        counters["ndb_conflict_epoch_delete_delete_count"] = len(on_nothing)
    return {"conflict_count_delta": len(found), "counters": counters}


def exception(cause: str, event: Event) -> dict[str, Any]:
    """What an exceptions table shows of a rejected write."""
    images = {"old": event.before or {"b": None}, "new": event.after or {"b": None}}
    return {"op_type": OP_TYPES[event.op], "cause": cause, **images}


def is_delete_on_nothing(cause: str, event: Event) -> bool:
    """Return whether this was the delete of a row that was not there."""
    return (event.op, cause) == ("delete", MISSING)


def row_of(written: Mapping[str, Any]) -> Row:
    """The row that is meant; a key of several columns is a list."""
    key = written["key"]
    return written["table"], tuple(key) if isinstance(key, list) else key


def _shown_a(clusters: Clusters) -> list[dict[str, Any]]:
    return _shown({row: stored.image for row, stored in clusters.a.items()})


def _shown(rows: dict[Row, dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"table": table, "key": key, "values": v} for (table, key), v in rows.items()]


_OTHER = {"A": "B", "B": "A", "A->B": "B->A", "B->A": "A->B"}
_EXCHANGED = {
    f"{name}_rows_{of}": f"{name}_rows_{_OTHER[of]}" for name in ("expect", "final") for of in "AB"
}


def mirrored(step: dict[str, Any]) -> dict[str, Any]:
    """The same step with A and B exchanged."""
    return {
        _EXCHANGED.get(name, name): _OTHER[v] if name in ("cluster", "sync") else v
        for name, v in step.items()
    }


def mirrored_case(of: dict[str, Any]) -> dict[str, Any]:
    """The same case with A and B exchanged: B detects."""
    return {
        **of,
        "detecting_cluster": _OTHER[of["detecting_cluster"]],
        "steps": [mirrored(step) for step in of["steps"]],
        "expect": mirrored(of["expect"]),
    }
