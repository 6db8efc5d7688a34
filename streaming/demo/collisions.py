"""Rounds in which every replica writes the same rows at the same moment.

A barrier lets all three go at once, and the hub needs several times longer to bring one write to
another replica than each needs to commit its own: so they collide, whatever the machine does.
"""

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from streaming.demo.client import Client, ClientStopped

HOT = 1_000_000
"""From this account id on, rows are written only here."""
HOT_ROWS = 12
"""How many of them a round writes."""
ENOUGH = 24
"""So many losers of each kind are wanted; the verdict asks for a few less."""
ROUNDS_MAX = 30
MEET_S = 300.0

INSERT_INSERT = "insert-insert"
UPDATE_UPDATE = "update-update"
UPDATE_DELETE = "update-delete"
RETRIES = "retries that won"


@dataclass(slots=True)
class Collisions:
    """What the colliding clients share; `is_time_up` says that rounds may end.

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
        self.barrier = threading.Barrier(len(self.names), timeout=MEET_S)

    def run(self, me: int, db: Client) -> None:
        """Collide with the others until the time is up and there were enough collisions."""
        number = 0
        while self._goes_on(me):
            Round(self, me, db, number).run()
            number += 1

    def meet(self) -> None:
        """Wait for the others, so that what follows happens everywhere at once."""
        try:
            self.barrier.wait()
        except threading.BrokenBarrierError:
            raise ClientStopped from None

    def _goes_on(self, me: int) -> bool:
        """One decides for all, while the others wait."""
        self.meet()
        if me == 0:
            kinds = (INSERT_INSERT, UPDATE_UPDATE, UPDATE_DELETE)
            enough = all(self.lost[kind] >= ENOUGH for kind in kinds) and self.lost[RETRIES] > 0
            self.more = self.rounds < ROUNDS_MAX and not (enough and self.is_time_up())
        self.meet()
        return self.more

    def count(self, kind: str, losers: int) -> None:
        """Note what a client found."""
        with self.lock:
            self.lost[kind] += losers


@dataclass(slots=True)
class Round:
    """One client's part of a round on rows that nobody has written before."""

    shared: Collisions
    me: int
    db: Client
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
        self.shared.meet()
        with self.db.at_once():
            self.db.connection.executemany(
                "INSERT INTO account VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (id_, mark, "0.00", self.me % 2, "2024-02-29T12:00:00.000001Z", mark)
                    for id_ in self.ids
                ],
            )
        self.db.settle()
        self.shared.count(INSERT_INSERT, len(self._lost(self.ids, mark)))

    def _all_update(self) -> None:
        mark = self._mark("changed")
        self.shared.meet()
        self._update(self.ids, mark)
        self.db.settle()
        self.shared.count(UPDATE_UPDATE, len(self._lost(self.ids, mark)))

    def _write_again(self) -> None:
        """Each client writes again a third of the rows, as far as it lost them."""
        first, again = self._mark("changed"), self._mark("tried again")
        mine = self.ids[self.me :: len(self.shared.names)]
        self.shared.meet()  # everything is judged: nobody else writes these rows now
        lost = self._lost(mine, first)
        self._update(lost, again)
        self.db.settle()
        self.shared.count(RETRIES, len(lost) - len(self._lost(lost, again)))

    def _delete_and_update(self) -> None:
        mark = self._mark("changed last")
        deletes = self.me == self.number % len(self.shared.names)
        self.shared.meet()
        if deletes:
            with self.db.at_once():
                self.db.connection.execute(
                    "DELETE FROM account WHERE id BETWEEN ? AND ?", (self.ids[0], self.ids[-1])
                )
        else:
            self._update(self.ids, mark)
        self.db.settle()
        there = self.db.notes(self.ids)
        lost = len(there) if deletes else len(self.ids) - len(there)
        self.shared.count(UPDATE_DELETE, lost)

    def _update(self, ids: list[int], mark: str) -> None:
        if not ids:
            return
        with self.db.at_once():
            self.db.connection.executemany(
                "UPDATE account SET note = ? WHERE id = ?", [(mark, id_) for id_ in ids]
            )

    def _lost(self, ids: list[int], mark: str) -> list[int]:
        """Those of these rows that are not as this client wrote them."""
        there = self.db.notes(self.ids)
        return [id_ for id_ in ids if there.get(id_) != mark]

    def _mark(self, what: str) -> str:
        return f"{what} at {self.shared.names[self.me]}, round {self.number + 1}"
