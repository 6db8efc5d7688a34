"""What a scenario needs of a hub, pure or real: topics in, topics out, and what is committed."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from checkpoints.commit.faults import FaultPoint
from streaming.core.matrix.packets import Place
from streaming.core.model.change import Change, RowKey
from streaming.core.model.command import UndoOrder
from streaming.core.model.ruv import Ruv
from streaming.core.model.table import Table
from streaming.core.records.record import Reason, Record, Stopped, Update
from streaming.core.state.topology import Topology
from streaming.filters.row_predicate import RowPredicate
from tests.model.post import Packet


@dataclass(frozen=True, slots=True)
class Judgement:
    """A row of the changelog: a change, its verdict, and the version of the row that it met."""

    csn: str
    content: str
    prim_csn: str | None
    verdict: str
    concurrent: bool
    met: str | None
    hub_epoch: int


@dataclass(frozen=True, slots=True)
class Kept:
    """A row of the quarantine."""

    rid: int
    offset: int
    reason: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """A row of the conflicts: the loser and the winner."""

    loser: str | None
    winner: str | None


@dataclass(frozen=True, slots=True)
class RuvComparison:
    """An agreement: its state, and the covers and RUV of the consumer's last position record."""

    state: str
    covers: int
    ruv: Ruv


class Backend(Protocol):
    """A hub as replicas and operators see it: topics in, topics out, and its committed tables."""

    topology: Topology

    def send(
        self,
        rid: int,
        session: str | None,
        record: Record,
        time_ms: int,
        place: Place | None = None,
    ) -> None:
        """Append a record to a replica's topic; `place`: the one of its outbox, by a packet."""

    def packets_to(self, rid: int) -> Sequence[Packet]:
        """Every packet that was written for this consumer, from the first."""

    def agreement_read_by(self, rid: int) -> str:
        """The agreement whose updates this replica reads."""

    def updates(self, rid: int) -> Sequence[Update | Stopped]:
        """Every record of the updates topic of this consumer's agreement, from the first."""

    def take(
        self,
        counts: Mapping[int, int] | None,
        now_ms: int,
        kill: FaultPoint | None,
        pages: Collection[int] = (),
    ) -> None:
        """Process one micro-batch of at most so many records per rid (None: all there are).

        kill: the hub dies when it reaches this point, and is down until `restart`. pages: the
        consumers that the batch sends a page of their resync, if there is one.
        """

    def take_beside(self, now_ms: int, pages: Collection[int]) -> None:
        """Let another hub that reads the topics process all there is, if there is one."""

    def abort(self, csn: str) -> None:
        """Append an operator's command to abort the open transaction of this CSN."""

    def retry(self, rid: int) -> None:
        """Append an operator's command to send all refused rows of this replica again."""

    def lose_unread(self, rid: int) -> None:
        """Delete what the committed batches have not taken of this replica's topic."""

    def recover(self, rid: int) -> None:
        """Append an operator's command to give up the lost input of this replica."""

    def retire(self, rid: int) -> None:
        """Append an operator's command to take this replica out for good."""

    def readmit(self, rid: int) -> None:
        """Append an operator's command to let a new replica have the rid of this one."""

    def resume(self, rid: int) -> None:
        """Append an operator's command to resume the agreement of this consumer."""

    def resync(self, rid: int, *, is_full: bool) -> None:
        """Append an operator's command to bring this consumer what it lacks."""

    def pause(self, rid: int) -> None:
        """Append an operator's command to send this consumer nothing more."""

    def pause_table(self, rid: int, table: str, *, is_paused: bool) -> None:
        """Append an operator's command to send nothing of a table, or to send it again."""

    def paused_tables(self) -> Mapping[str, Collection[str]]:
        """Agreement -> the tables of which it sends nothing, or is to."""

    def send_now(self, rid: int) -> None:
        """Append an operator's command to let go what the delay of this consumer holds back."""

    def holds_back(self) -> bool:
        """Return whether something is not sent yet because of when its agreement sends."""

    def lower_row(self, rid: int, epochs: int) -> None:
        """Append an operator's command to set the row of this consumer in the matrix back.

        By so many hub epochs, but not below its own word.
        """

    def refuse_sent(self, rid: int, *, is_refused: bool) -> None:
        """Have the topic of this consumer's agreement refuse what it is sent, or take it again."""

    def find_writable(self, rid: int) -> None:
        """Have it look at the topic of this consumer's agreement, which may be written again.

        Nothing follows unless the consumer is away because its topic refused something.
        """

    def may_write(self, rid: int, table: str, *, is_allowed: bool) -> None:
        """Start it again with a configuration by which this replica may write a table, or not.

        Nothing is unread: what was sent before is taken by what held then.
        """

    def know_column(self, table: str, *, is_known: bool) -> None:
        """Start it again with a configuration that has the column of values of a table, or not.

        As `may_write`; and meanwhile nothing with a value in that column may be sent to anybody.
        """

    def go_on(self) -> None:
        """Order the release of what waits for a column and may go on, as it does by itself."""

    def reconfigure(self, topology: Topology) -> None:
        """Start again with a configuration by which agreements send something else."""

    def mark_away(self, rid: int) -> None:
        """Mark a consumer as away, as when it has acknowledged nothing in time."""

    def restart(self, now_ms: int) -> None:
        """Start it again on the same state, without the engine's own checkpoint."""

    def back_up(self) -> None:
        """Copy the state as it is; the newest copy counts."""

    def put_back(self, now_ms: int) -> None:
        """Put the copy in the state's place, and start again on it."""

    def stands_still(self) -> bool:
        """Return whether it does not go on from its state, which was put back."""

    def recover_hub(self, now_ms: int) -> None:
        """Order it to go on from the state that was put back, and start it."""

    def is_up(self) -> bool:
        """Return whether it was not killed since it started."""

    def offset(self, rid: int) -> int:
        """How many records of this replica's topic the committed batches have taken."""

    def hub_epoch(self) -> int:
        """The last committed hub epoch."""

    def ruv(self) -> Ruv:
        """The hub's RUV."""

    def rows(self) -> Mapping[RowKey, str]:
        """The image of every row that exists."""

    def changelog(self) -> Sequence[Judgement]:
        """Every judged change in hub order."""

    def conflicts(self) -> Sequence[Conflict]:
        """Every recorded loser."""

    def lost_elsewhere(self) -> Collection[str | None]:
        """The CSNs of the losers that another hub has recorded that reads the same topics."""

    def undone(self) -> Collection[Change]:
        """The changes by which the hub undid others."""

    def refused(self) -> Mapping[tuple[int, RowKey], int]:
        """(rid, row) -> how often its database refused it, of the rows it has not taken since."""

    def uncarried(self) -> Collection[tuple[int, RowKey]]:
        """(rid, row) of what its writer holds and nobody else can take; `level` names each."""

    def drop_uncarried(self) -> None:
        """Append an operator's commands to drop every record of each uncarried row."""

    def set_right(self, rid: int, row: RowKey) -> None:
        """Append an operator's command to send a replica the hub's row (`repair`)."""

    def undo(self, order: UndoOrder) -> None:
        """Append an operator's command to write rows back as they stood."""

    def prefer(self, rid: int, row: RowKey, image: str | None) -> None:
        """Append an operator's command to let this image of a replica stand for everybody."""

    def release(self, reason: Reason) -> None:
        """Append an operator's commands to release all that is in quarantine for this reason."""

    def quarantine(self) -> Sequence[Kept]:
        """Everything in quarantine."""

    def ended(self) -> frozenset[str]:
        """The CSNs of the transactions that a hello, an abort or the quarantine ended."""

    def says_level(self) -> bool:
        """Return whether it answers yes to `level`; no agent is silent here."""

    def standing(self, rid: int) -> RuvComparison:
        """The agreement with this consumer, as `status` shows it."""


def without_values(topology: Topology, unknown: Collection[str]) -> dict[str, Table]:
    """The tables, these without their column of values."""
    return {
        name: replace(one, columns={key: one.columns[key] for key in one.key})
        if name in unknown
        else one
        for name, one in topology.tables.items()
    }


def with_rows(topology: Topology, rid: int, table: str, condition: str) -> Topology:
    """The topology in which this consumer is sent these rows of a table; "": all of them."""
    one = topology.by_consumer[rid]
    rows = {name: shown for name, shown in one.rows.items() if name != table}
    if condition:
        rows[table] = RowPredicate(condition, topology.tables[table])
    other = replace(one, tables=one.tables | {table}, rows=rows)
    return replace(topology, subscriptions={**topology.subscriptions, one.name: other})


def with_deletes(topology: Topology, rid: int, *, are_sent: bool) -> Topology:
    """The topology in which this consumer is sent deletes, or is an archive."""
    other = replace(topology.by_consumer[rid], sends_deletes=are_sent)
    return replace(topology, subscriptions={**topology.subscriptions, other.name: other})
