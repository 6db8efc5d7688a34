"""The hub's own changes, which operators cause: released records and overridden conflicts."""

from streaming.core.intake.intake import Intake
from streaming.core.model.change import Change, Op
from streaming.core.model.csn import Generator
from streaming.core.model.row import Arrived


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
        csn, self._generator = self._generator.next(self._at_ms // 1000)
        change = Change(csn, self._rid, 0, table, key, op, after, before, app=app)
        arrived = Arrived(change, change.content, "", 0, self._at_ms, seen, seen)
        self._intake.take_own(arrived, released, stands_at)
        return arrived
