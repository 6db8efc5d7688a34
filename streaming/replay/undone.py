"""What an undo of a replayed batch wrote back: asked again, or as it is recorded.

To ask again the hub looks at the rows as of the undo's moment. Once that is purged nobody can say
what they were; what the hub wrote is in the changelog of its batch, and is judged from there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from checkpoints.commit.recorded import batch_marks
from checkpoints.reading.past import oldest_epoch
from checkpoints.store import StateStore
from streaming.core.model.command import UndoOrder, app_of
from streaming.core.model.table import Table
from streaming.core.replay.undo import UnaskedUndo, UndoneRow
from streaming.operator.undo import undone_rows
from streaming.stages.log import CHANGE


@dataclass(slots=True)
class BatchUndos:
    """The undos of a batch; `log`: its changelog. `unasked`: those that are taken from that."""

    log: pa.Table
    hub_rid: int
    hub_epoch: int
    unasked: list[UnaskedUndo] = field(default_factory=list)

    def rows(
        self, store: StateStore, table: Table, order: UndoOrder, seen: int, upto: int
    ) -> Sequence[UndoneRow] | None:
        """What an order writes back; see `UndoneRows`."""
        oldest = oldest_epoch(store, batch_marks(store)) - 1
        if order.to >= oldest:
            return undone_rows(store, table, order, seen, upto)
        found = self._recorded(order)
        place = self.hub_epoch, order.table, order.who
        self.unasked.append(UnaskedUndo(*place, order.to, oldest, len(found)))
        return found

    def _recorded(self, order: UndoOrder) -> list[UndoneRow]:
        """The changes by which the hub carried out an order, in the order of its transaction."""
        log, app = self.log, app_of("undo", order.who)
        own = pc.and_(pc.equal(log["kind"], CHANGE), pc.equal(log["rid"], self.hub_rid))
        named = pc.and_(pc.equal(log["table"], order.table), pc.equal(log["app"], app))
        made = log.filter(pc.and_(own, named)).sort_by("csn")
        images = (made[name].to_pylist() for name in ("key", "before", "after"))
        return list(map(UndoneRow, *images))
