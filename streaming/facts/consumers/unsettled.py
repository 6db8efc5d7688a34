"""Whether an agreement is level: one rule for `level`, `status`, the page and the metrics.

A consumer that has acknowledged all that the hub has is not level while something that was written
is not at the hub, is held back there, or stands otherwise in a database.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from checkpoints.reading.reader import NONE_OPEN, OpenChanges, Reader
from streaming.config.config import Config
from streaming.core.model.command import CommandName
from streaming.core.state.replica_state import ReplicaState
from streaming.facts.consumers.divergent import DivergenceKind, DivergentRow
from streaming.facts.consumers.lacking import WaitedColumn, waited_columns
from streaming.facts.consumers.lag import Lag


@dataclass(frozen=True, slots=True)
class Unsettled:
    """What was written and is not settled, of all replicas that are served.

    `is_known`: the facts hold and every replica is heard; otherwise nobody knows what was written.
    `unread`: replica -> the records in its topic that the hub has not read. `unpublished`: replica
    -> what its agent last said it has not published; a snapshot counts as one. `waiting`: replica
    -> its committed changes that the hub holds back. `ordered`: command -> how many of it, which
    may change rows, no batch has taken yet. `stopped`: replica -> its state. `unnamed`: the
    replicas with records that name no row: each may hold what nobody got, and says nothing of the
    others. `waited`: the columns that databases lack.
    """

    is_known: bool
    unread: Mapping[str, int]
    unpublished: Mapping[str, int]
    waiting: Mapping[str, int]
    ordered: Mapping[str, int]
    stopped: Mapping[str, str]
    differing: Sequence[DivergentRow]
    unnamed: Collection[str] = ()
    waited: Sequence[WaitedColumn] = ()

    @property
    def is_only_unnamed(self) -> bool:
        """Return whether what names a row is in the hub, and stands alike in each database."""
        return self._is_judged and not (self.differing or self.waited)

    def is_level(self, lag: Lag) -> bool:
        """Return whether the agreement's consumer has everything that was written anywhere.

        A row that a database refused is lacking there only; any other one that differs is lacking
        everywhere but at its writer.
        """
        lacks = any(
            one.kind is not DivergenceKind.REFUSED or one.replica == lag.consumer
            for one in self.differing
        ) or any(one.replica == lag.consumer for one in self.waited)
        return self._is_judged and lag.has_all and not lacks and lag.consumer not in self.unnamed

    @property
    def _is_judged(self) -> bool:
        is_read = not (self.unread or self.unpublished)
        return self.is_known and is_read and not (self.waiting or self.ordered or self.stopped)


def unsettled(
    config: Config,
    reader: Reader,
    *,
    is_known: bool,
    unread: Mapping[str, int],
    opened: Mapping[tuple[int, str], OpenChanges],
    differing: Sequence[DivergentRow],
    unnamed: Collection[str],
    commands: Mapping[int, str],
) -> Unsettled:
    """What is not settled; `config`: of those that are served, `opened`: their open changes.

    `commands`: number -> name of those that no batch had taken when they were read.
    """
    known = reader.commit.state.replicas if reader.commit else {}
    states = {one.name: known.get(one.rid, ReplicaState(one.rid)) for one in config.replicas}
    counts = {
        one.name: opened.get((one.rid, "waiting"), NONE_OPEN).count for one in config.replicas
    }
    return Unsettled(
        is_known=is_known,
        unread=unread,
        unpublished={name: count for name, one in states.items() if (count := _unpublished(one))},
        waiting={name: count for name, count in counts.items() if count},
        ordered=_ordered(commands, reader.commit.command_number if reader.commit else 0),
        stopped={name: one.status_text for name, one in states.items() if one.is_stopped},
        differing=differing,
        unnamed=unnamed,
        waited=waited_columns(
            config, reader.commit.state.lacking if reader.commit else {}, differing
        ),
    )


def _ordered(commands: Mapping[int, str], taken: int) -> dict[str, int]:
    """Command -> how many of it no batch has taken, of those that may change rows."""
    known = {name.value for name in CommandName if name.may_change_rows}
    left = (name for number, name in commands.items() if number > taken)
    return dict(Counter(name for name in left if name in known))


def _unpublished(replica: ReplicaState) -> int:
    """What an agent has to publish; of one that ended the goodbye is the newer word."""
    if replica.ended is not None:
        return 0
    return replica.unpublished + (replica.snapshot is not None)


def unread_records(config: Config, reader: Reader, ends: Mapping[str, int]) -> dict[str, int]:
    """Replica -> how many records of its topic the hub has not read; only those with some."""
    offsets = reader.commit.offsets if reader.commit else {}
    topics = {replica.name: config.changes_topic(replica.name) for replica in config.replicas}
    found = {n: ends.get(topic, 0) - offsets.get(topic, 0) for n, topic in topics.items()}
    return {name: count for name, count in found.items() if count > 0}
