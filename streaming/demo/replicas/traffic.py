"""Ordinary traffic beside the collisions: each replica writes rows that all share."""

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from streaming.demo.databases.client import DatabaseClient

SHARED = range(1, 61)
"""Accounts that every replica opens, changes and closes."""
WAREHOUSES = ("north", "süd")
ITEMS = range(1, 16)
WEIGHTS = (0.1, 2.5, 1e-300, 1 / 3, float("inf"), "NaN", None)
NOTES = (None, "", "naïve \"quotes\" and 'these'", "line\nbreak", "\U0001f30a")
PER_SECOND = 30.0
START = datetime(2024, 2, 29, 23, 59, 59, tzinfo=UTC)


class OrdinaryTraffic:
    """The traffic of one replica; `random` is seeded, so every run writes the same."""

    def __init__(self, name: str, rid: int, db: DatabaseClient) -> None:
        self.name = name
        self.db = db
        self.session = db.session
        self.random = random.Random(rid)  # noqa: S311 no secret
        self.rid = rid
        self.count = 0
        self.actions = (
            (4, self._open_own),
            (8, self._change_account),
            (4, self._open_or_close_shared),
            (8, self._count_stock),
            (2, self._clear_stock),
            (4, self._transfer),
        )

    def run(self, is_time_up: Callable[[], bool]) -> None:
        """Run one action after the other until the time is up."""
        weights, actions = zip(*self.actions, strict=True)
        while not is_time_up() and not self.db.stop.wait(self.random.expovariate(PER_SECOND)):
            (action,) = self.random.choices(actions, weights)
            action()
            self.count += 1

    def _open_own(self) -> None:
        """The next account of this replica; one that is restored counts on from its backup."""
        first = 10_000 * self.rid
        with self.session.atomic():
            (last,) = self.session.execute(
                "SELECT coalesce(max(id), ?) FROM account WHERE id BETWEEN ? AND ?",
                (first, first, first + 9_999),
            ).fetchone()
            self._open(last + 1)

    def _open_or_close_shared(self) -> None:
        account = self.random.choice(SHARED)
        with self.session.atomic():
            closed = self.session.execute("DELETE FROM account WHERE id = ?", (account,))
            if not closed.rowcount:
                self._open(account)

    def _open(self, account: int) -> None:
        """Open it, unless another one's arrives at the same moment."""
        self.session.execute(
            "INSERT INTO account VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
            (account, self.name, self._amount(), True, self._time(), self.random.choice(NOTES)),
        )

    def _change_account(self) -> None:
        self.session.execute(
            "UPDATE account SET balance = ?, active = ?, note = ? WHERE id = ?",
            (
                self._amount(),
                self.random.choice((False, True)),
                self.random.choice(NOTES),
                self.random.choice(SHARED),
            ),
        )

    def _count_stock(self) -> None:
        self._put(self.random.choice(WAREHOUSES), self.random.randint(0, 2**40))

    def _put(self, warehouse: str, quantity: int) -> None:
        self.session.execute(
            "INSERT INTO stock VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (warehouse, item)"
            " DO UPDATE SET quantity = excluded.quantity, weight = excluded.weight,"
            " label = excluded.label, counted = excluded.counted",
            (
                warehouse,
                self.random.choice(ITEMS),
                quantity,
                self.random.choice(WEIGHTS),
                self.random.randbytes(self.random.randint(0, 12)),
                self._time(),
            ),
        )

    def _clear_stock(self) -> None:
        self.session.execute(
            "DELETE FROM stock WHERE warehouse = ? AND item = ?",
            (self.random.choice(WAREHOUSES), self.random.choice(ITEMS)),
        )

    def _transfer(self) -> None:
        """Two accounts and a row of stock in one transaction, for the hub as well."""
        one, other = self.random.sample(SHARED, 2)
        with self.session.group():
            for account in (one, other):
                self.session.execute(
                    "UPDATE account SET balance = ?, note = ? WHERE id = ?",
                    (self._amount(), f"transfer {one} to {other}", account),
                )
            self._put(WAREHOUSES[0], self.random.randint(0, 1_000))

    def _amount(self) -> str:
        return f"{self.random.randint(-99_999, 99_999) / 100:.2f}"

    def _time(self) -> str:
        time = START + timedelta(microseconds=self.random.randint(0, 10**12))
        return time.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"
