"""The hub's own changes, which operators cause: released records, overrides, undone rows."""

from collections.abc import Iterable

from streaming.core.intake.intake import Intake
from streaming.core.model.change import Change, Op
from streaming.core.model.csn import Generator
from streaming.core.model.row import Arrived
from streaming.core.replay.undo import UndoneRow


class HubChangeWriter:
    """Gives the hub's changes their CSNs: above all that it ever gave, by the plan's clock."""

    def __init__(self, intake: Intake, hub_rid: int, at_ms: int) -> None:
        self._intake, self._rid, self._at_ms = intake, hub_rid, at_ms
        self._generator = Generator.behind(hub_rid, intake.known.largest.get(hub_rid))

    def knows(self, table: str) -> bool:
        """Return whether the table is configured, so that a change of it can be judged."""
        return table in self._intake.topology.tables

    def make(
        self,
        table: str,
        key: str,
        op: Op,
        after: str | None,
        before: str | None,
        seen: int,
        released: str | None = None,
        stands_at: int | None = None,
        app: str | None = None,
    ) -> Arrived:
        """Make a change; it is judged as if its author had seen all hub epochs to `seen`.

        `released`: the CSN of the replica's change in whose place it stands. `stands_at`: the rid
        of the replica that has the row so already. `app`: who ordered it.
        """
        change = Change(self._next_csn(), self._rid, 0, table, key, op, after, before, app=app)
        arrived = self._arrived(change, seen)
        self._intake.take_own(arrived, released, stands_at)
        return arrived

    def make_transaction(self, table: str, rows: Iterable[UndoneRow], seen: int, app: str) -> None:
        """Make one transaction of all these rows; nothing of none."""
        made, first = list[Arrived](), None
        for row in rows:
            csn = self._next_csn()
            first = first or csn
            images = row.then, row.now
            change = Change(csn, self._rid, 0, table, row.key, row.op, *images, first, app=app)
            made.append(self._arrived(change, seen))
        if made:
            self._intake.take_own_transaction(tuple(made))

    def _next_csn(self) -> str:
        csn, self._generator = self._generator.next(self._at_ms // 1000)
        return csn

    def _arrived(self, change: Change, seen: int) -> Arrived:
        return Arrived(change, change.content, "", 0, self._at_ms, seen, seen)
