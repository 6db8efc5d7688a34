"""What came of the commands of an undo, once batches have taken them."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import pyarrow.compute as pc
import pyarrow.dataset as ds

from checkpoints.commit.epochs import COMMIT, PLAN
from checkpoints.store import StateStore
from checkpoints.tables import TableName
from streaming.core.conflict.judge import Verdict
from streaming.core.text.wording import as_count


@dataclass(frozen=True, slots=True)
class UndoOutcome:
    """`rejected`: rows that lost a conflict. `refused`: commands that the hub could not carry out.

    `hub_epoch`: the last one that wrote some. `csn`: the last change, None if nothing was written.
    """

    accepted: int
    rejected: int
    refused: int
    hub_epoch: int
    csn: str | None

    @property
    def is_whole(self) -> bool:
        """Return whether everything was done."""
        return not (self.rejected or self.refused)

    def texts(self) -> Iterator[str]:
        """What came of it, as sentences."""
        if self.csn is not None:
            yield (
                f"{as_count(self.accepted, 'row')} written by hub epoch {self.hub_epoch};"
                f" `slackwater wait {self.csn}` waits until all have them"
            )
        if self.rejected:
            yield (
                f"{as_count(self.rejected, 'row')} lost a conflict with what came meanwhile:"
                " `slackwater conflicts` lists them; look at what stands and order the undo again"
            )
        if self.refused:
            yield (
                f"the hub refused {as_count(self.refused, 'command')}: the moment is purged by now,"
                " or the table is not configured any more; nothing of it is written"
            )
        if self.is_whole and self.csn is None:
            yield "nothing was written: all rows stand so by now, or were written since"


def undo_outcome(store: StateStore, numbers: Collection[int], hub_rid: int) -> UndoOutcome:
    """What came of commands with these numbers, which are taken."""
    plans = store.read(TableName.EPOCHS, ds.field("kind") == PLAN, ["batch", "commands"])
    wanted = set(numbers)
    batches = [row["batch"] for row in plans.to_pylist() if wanted & {*(row["commands"] or ())}]
    here = ds.field("batch").isin(batches)
    commits = store.read(TableName.EPOCHS, here & (ds.field("kind") == COMMIT), ["counts"])
    refused = sum(dict(one or ()).get("refused_undos", 0) for one in commits["counts"].to_pylist())
    own = (ds.field("kind") == "change") & (ds.field("rid") == hub_rid)
    log = store.read(TableName.CHANGELOG, here & own, ["csn", "app", "hub_epoch", "verdict"])
    made = log.filter(pc.starts_with(pc.fill_null(log["app"], ""), "undo: "))
    verdicts = made["verdict"].to_pylist()
    accepted = sum(one == Verdict.ACCEPTED for one in verdicts)
    csn, epoch = pc.max(made["csn"]).as_py(), pc.max(made["hub_epoch"]).as_py()
    return UndoOutcome(accepted, len(verdicts) - accepted, refused, epoch or 0, csn)
