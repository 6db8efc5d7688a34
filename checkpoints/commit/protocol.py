"""The commit protocol: a batch is planned, decided, written, committed, and only then published."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError

from checkpoints.commit.epochs import (
    COMMIT,
    PLAN,
    Checkpoint,
    Plan,
    check_format,
    checkpoint_of,
    commit_row,
    plan_row,
)
from checkpoints.commit.faults import FaultHook, FaultPoint, no_fault
from checkpoints.query import execute, open_table, records
from checkpoints.root import open_delta
from checkpoints.store import Rows, StateStore, among, append, rows_of
from checkpoints.tables import SCHEMAS, TableName
from streaming.core.access.root import StateRoot
from streaming.core.model.errors import OvertakenError, StateError
from streaming.core.state.hub_state import HubState

WRITTEN: Mapping[TableName, FaultPoint] = {
    TableName.CHANGELOG: FaultPoint.AFTER_CHANGELOG,
    TableName.CONFLICTS: FaultPoint.AFTER_CONFLICTS,
    TableName.QUARANTINE: FaultPoint.AFTER_QUARANTINE,
    TableName.PENDING: FaultPoint.AFTER_PENDING,
    TableName.EVENTS: FaultPoint.AFTER_EVENTS,
    TableName.DELAYS: FaultPoint.AFTER_DELAYS,
}
"""The tables that a batch may write, and the point behind each."""

KEY = "epochs"
"""The application transaction of plans and commits: see Ledger."""


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """The result of a batch: rows for each table that has some, and the checkpoint after it."""

    tables: Mapping[TableName, Rows]
    checkpoint: Checkpoint


@dataclass(slots=True)
class Ledger:
    """The one writer's view of `epochs`: every append is a compare-and-set on what it last read.

    Plan n carries the application transaction (epochs, 2n), commit n (epochs, 2n + 1). Delta
    refuses one that is concurrent with the version that the table object read, which must end with
    the number before: so the append of a hub that was overtaken always fails.
    """

    store: StateStore
    hub: str
    last: Checkpoint
    reach: FaultHook = no_fault
    unfinished: Mapping[str, object] | None = None
    _table: DeltaTable = field(init=False)
    _number: int = field(init=False)

    def __post_init__(self) -> None:
        """Keep a table object of our own: nothing else refreshes or uses it."""
        self._open()

    def reopen(self) -> None:
        """Open all tables anew, which makes their commits cheap again; see `Store.reopen`."""
        self.store.reopen()
        self._open()

    def _open(self) -> None:
        self._table = open_delta(self.store.root, TableName.EPOCHS)
        self._number = self._table.transaction_version(KEY) or 0

    def write_plan(self, plan: Plan) -> None:
        """Claim batch n; OvertakenError when another hub wrote since."""
        self._append(plan_row(plan, self.last, self.hub), 2 * plan.batch)

    def write_commit(self, checkpoint: Checkpoint) -> None:
        """Commit batch n; OvertakenError when another hub wrote since."""
        self._append(commit_row(checkpoint, self.hub), 2 * checkpoint.state.batch + 1)
        self.last = checkpoint
        self.unfinished = None

    def drop_uncommitted(self, plan: Plan) -> None:
        """Delete what a hub that died wrote of its batch; OvertakenError if it is not ours."""
        try:
            for name in WRITTEN:
                key = write_key(name, self.last.state)
                self.store.drop_batch(name, key, plan.batch, lambda: self.check_ours(plan))
        except CommitFailedError as error:
            raise self._overtaken() from error

    def check_ours(self, plan: Plan) -> None:
        """OvertakenError unless this plan is still the last row of `epochs`.

        What was decided before this is valid: no other hub can have changed anything that it read.
        If another hub continues after it, that hub writes the same rows.
        """
        newest = self._number
        if self.store.is_behind(TableName.EPOCHS, self._table.version()):
            newest = self._newest_number()
        if newest != 2 * plan.batch:
            raise self._overtaken()

    def _append(self, row: Mapping[str, object], number: int) -> None:
        if self._number != number - 1:
            raise self._overtaken()
        while not self._has_appended(row, number):
            self._open()  # a purge deleted rows meanwhile, which Delta refuses too
            if self._number != number - 1:
                raise self._overtaken()
        self._number = number

    def _has_appended(self, row: Mapping[str, object], number: int) -> bool:
        """Append a row; False if Delta refuses, and `epochs` ends with the number before."""
        try:
            with self._overtaken_errors(number - 1):
                append(self._table, rows_of(TableName.EPOCHS, [row]), KEY, number)
        except CommitFailedError:
            return False
        return True

    @contextmanager
    def _overtaken_errors(self, number: int) -> Iterator[None]:
        """OvertakenError if Delta refuses because `epochs` does not end with this transaction.

        A hub that was suspended for long does not even find the log entries that it read.
        """
        try:
            yield
        except DeltaError as error:
            if self._newest_number() != number:
                raise self._overtaken() from error
            raise

    def _newest_number(self) -> int:
        """The last transaction in `epochs`, whoever wrote it."""
        return open_delta(self.store.root, TableName.EPOCHS).transaction_version(KEY) or 0

    def _overtaken(self) -> OvertakenError:
        return OvertakenError(
            f"another hub works on the state in {self.store.root}: this one ({self.hub}) stops"
            f" before batch {self.last.state.batch + 1}; run one hub only"
        )


_POOL = ThreadPoolExecutor(len(WRITTEN), "commit")
"""Delta works outside of Python's lock, and an append is mostly waiting."""

Decided = TypeVar("Decided", bound=BatchOutcome)


def run(
    ledger: Ledger,
    plan: Plan,
    decide: Callable[[Plan], Decided],
    publish: Callable[[Decided], None],
) -> Decided:
    """Run one batch to its end, in this order (docs/protocol.md, The order of a batch).

    0. plan: claimed by compare-and-set, unless it is the unfinished one of a hub that died.
    1. decide: everything that is read is pinned to the plan; time is the plan's clock. It runs
       while the plan is written; the tables are written only once the plan is committed.
    2. tables, side by side: unless overtaken, each append carries (table and generation, n) and is
       left out if it is there. A hub that dies here leaves any of them.
    3. commit: the commit row; from here on the batch is committed and readers see it.
    4. publish: the updates go to Kafka. After a crash before 3 the batch runs again from the plan;
       after one behind 3 only this step is repeated, with the same ids.
    """
    reach = ledger.reach
    claimed = _POOL.submit(_claim, ledger, plan)
    try:
        outcome = decide(plan)
    finally:
        claimed.result()
    reach(FaultPoint.AFTER_READ)

    ledger.check_ours(plan)
    written = [
        _POOL.submit(_write, ledger, name, rows, outcome.checkpoint.state)
        for name, rows in outcome.tables.items()
        if rows.num_rows
    ]
    wait(written)
    for one in written:
        one.result()
    reach(FaultPoint.BEFORE_COMMIT)

    ledger.write_commit(outcome.checkpoint)
    reach(FaultPoint.AFTER_COMMIT)

    publish(outcome)
    reach(FaultPoint.AFTER_PUBLISH)
    return outcome


def _claim(ledger: Ledger, plan: Plan) -> None:
    if ledger.unfinished is None:
        ledger.write_plan(plan)
    ledger.reach(FaultPoint.AFTER_PLAN)


def _write(ledger: Ledger, name: TableName, rows: Rows, state: HubState) -> None:
    ledger.store.append_once(name, rows, write_key(name, state), state.batch)
    ledger.reach(WRITTEN[name])


def write_key(name: TableName, state: HubState) -> str:
    """The application transaction under which a batch appends to a table."""
    return f"{name}:{state.generation}"


def format_of(root: StateRoot) -> int | None:
    """The format of the newest batch, read before anything else; None: no hub has committed here.

    True of every format: `epochs` has the columns batch, kind and format.
    """
    table = open_table(root, TableName.EPOCHS)
    sql = "SELECT format FROM t ORDER BY batch DESC LIMIT 1"
    found = [] if table is None else records(execute(table, sql))
    return found[0]["format"] if found else None


def create_state(store: StateStore, genesis: Checkpoint, hub: str) -> None:
    """Create what is missing, up to the first commit row, batch 0; what is there stays.

    StateError, before anything is altered, if the state is of another format.
    """
    if (written := format_of(store.root)) is not None:
        check_format(written)
    store.create()
    store.append_once(
        TableName.EPOCHS, rows_of(TableName.EPOCHS, [commit_row(genesis, hub)]), KEY, 1
    )


def open_ledger(store: StateStore, hub: str, reach: FaultHook = no_fault) -> Ledger:
    """The ledger behind the last commit, with the plan of a batch that was not finished.

    The other tables are refreshed after the commit row was read, so they hold all that it names:
    a hub that published from an older version would leave changes out.
    """
    table = store.refreshed(TableName.EPOCHS)
    number = table.transaction_version(KEY)
    if number is None:
        raise StateError(f"{store.uri(TableName.EPOCHS)} has no commit: the state is not a hub's")
    batches = [(number - 1) // 2, number // 2]
    rows = store.read(TableName.EPOCHS, among("batch", sorted(set(batches)))).to_pylist()
    commits = {row["batch"]: row for row in rows if row["kind"] == COMMIT}
    plans = {row["batch"]: row for row in rows if row["kind"] == PLAN}
    commit = commits[(number - 1) // 2]
    unfinished = plans[number // 2] if number % 2 == 0 else None
    for name in SCHEMAS:
        if name is not TableName.EPOCHS:
            store.refreshed(name)
    return Ledger(store, hub, checkpoint_of(commit), reach, unfinished)
