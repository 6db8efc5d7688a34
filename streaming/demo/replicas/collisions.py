"""Rounds in which every replica writes the same rows at the same moment.

A barrier starts all three at once, and the hub takes several times longer to deliver a write to
another replica than each takes to commit its own: so they conflict on any machine.
"""

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from streaming.demo.databases.client import DatabaseClient, WorkloadStopped

HOT = 1_000_000
"""Account ids from here on are written only by collisions."""
HOT_ROWS = 12
"""How many of them a round writes."""
ENOUGH = 24
"""The losers of each kind to reach; the verdict requires a few less."""
ROUNDS_MAX = 30
BARRIER_S = 300.0

INSERT_INSERT = "insert-insert"
UPDATE_UPDATE = "update-update"
UPDATE_DELETE = "update-delete"
RETRIES = "retries that won"


@dataclass(slots=True)
class Collisions:
    """The state that the colliding clients share; `is_time_up`: whether rounds may end.

    `lost`: by kind, how often a client found that its write did not stand.
    """

    names: tuple[str, ...]
    stop: threading.Event
    is_time_up: Callable[[], bool]
    lost: Counter[str] = field(default_factory=Counter)
    rounds: int = 0
    more: bool = True
    lock: threading.Lock = field(default_factory=threading.Lock)
    barrier: threading.Barrier = field(init=False)

    def __post_init__(self) -> None:
        self.barrier = threading.Barrier(len(self.names), timeout=BARRIER_S)

    def run(self, me: int, db: DatabaseClient) -> None:
        """Collide with the others until the time is up and there were enough collisions."""
        number = 0
        while self._continues(me):
            CollisionRound(self, me, db, number).run()
            number += 1

    def synchronize(self) -> None:
        """Wait for the others, so that the next write happens everywhere at once."""
        try:
            self.barrier.wait()
        except threading.BrokenBarrierError:
            raise WorkloadStopped from None

    def _continues(self, me: int) -> bool:
        """The first client decides for all, while the others wait."""
        self.synchronize()
        if me == 0:
            kinds = (INSERT_INSERT, UPDATE_UPDATE, UPDATE_DELETE)
            enough = all(self.lost[kind] >= ENOUGH for kind in kinds) and self.lost[RETRIES] > 0
            self.more = self.rounds < ROUNDS_MAX and not (enough and self.is_time_up())
        self.synchronize()
        return self.more

    def count(self, kind: str, losers: int) -> None:
        """Record what a client found."""
        with self.lock:
            self.lost[kind] += losers


@dataclass(slots=True)
class CollisionRound:
    """One client's part of a round on rows that no client has written before."""

    shared: Collisions
    me: int
    db: DatabaseClient
    number: int
    ids: list[int] = field(init=False)

    def __post_init__(self) -> None:
        first = HOT + self.number * HOT_ROWS
        self.ids = list(range(first, first + HOT_ROWS))

    def run(self) -> None:
        """All insert, all update, losers write again, then one deletes what the others update."""
        self._all_insert()
        self._all_update()
        self._write_again()
        self._delete_and_update()
        if self.me == 0:
            self.shared.rounds += 1

    def _all_insert(self) -> None:
        mark = self._mark("opened")
        self.shared.synchronize()
        with self.db.session.atomic():
            self.db.session.execute_each(
                "INSERT INTO account VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (id_, mark, "0.00", self.me % 2 == 1, "2024-02-29T12:00:00.000001Z", mark)
                    for id_ in self.ids
                ],
            )
        self.db.wait_until_judged()
        self.shared.count(INSERT_INSERT, len(self._lost(self.ids, mark)))

    def _all_update(self) -> None:
        mark = self._mark("changed")
        self.shared.synchronize()
        self._update(self.ids, mark)
        self.db.wait_until_judged()
        self.shared.count(UPDATE_UPDATE, len(self._lost(self.ids, mark)))

    def _write_again(self) -> None:
        """Each client writes again a third of the rows, as far as it lost them."""
        first, again = self._mark("changed"), self._mark("tried again")
        mine = self.ids[self.me :: len(self.shared.names)]
        self.shared.synchronize()  # everything is judged: nobody else writes these rows now
        lost = self._lost(mine, first)
        self._update(lost, again)
        self.db.wait_until_judged()
        self.shared.count(RETRIES, len(lost) - len(self._lost(lost, again)))

    def _delete_and_update(self) -> None:
        mark = self._mark("changed last")
        deletes = self.me == self.number % len(self.shared.names)
        self.shared.synchronize()
        if deletes:
            with self.db.session.atomic():
                self.db.session.execute(
                    "DELETE FROM account WHERE id BETWEEN ? AND ?", (self.ids[0], self.ids[-1])
                )
        else:
            self._update(self.ids, mark)
        self.db.wait_until_judged()
        there = self.db.notes(self.ids)
        lost = len(there) if deletes else len(self.ids) - len(there)
        self.shared.count(UPDATE_DELETE, lost)

    def _update(self, ids: list[int], mark: str) -> None:
        if not ids:
            return
        with self.db.session.atomic():
            self.db.session.execute_each(
                "UPDATE account SET note = ? WHERE id = ?", [(mark, id_) for id_ in ids]
            )

    def _lost(self, ids: list[int], mark: str) -> list[int]:
        """The rows that differ from what this client wrote."""
        there = self.db.notes(self.ids)
        return [id_ for id_ in ids if there.get(id_) != mark]

    def _mark(self, what: str) -> str:
        return f"{what} at {self.shared.names[self.me]}, round {self.number + 1}"
