"""A replica of the wire: its topic holds what the test writes, and nothing else.

It has no database and no agent: rows and position are in memory, every record is sent by a
call of the test. What it reads it applies by the consumer's rules of core.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from connectors import wire
from streaming.core.delivery.consumer import ApplyBatch, BufferChunk, Position, SendHello, receive
from streaming.core.model.change import Change, Op
from streaming.core.model.csn import Generator
from streaming.core.records.record import Abort, Commit, Heartbeat, Item, RangeItem, Record
from streaming.core.tracking.ranges import KeyRange, key_order
from tests.harness.topics import TopicEnds
from tests.model.replica import TABLE, image, row_of

Row = tuple[str, str]
"""(table, canonical text of the key)."""


@dataclass(slots=True)
class ScriptedReplica:
    """One replica; `clock_s` does not move, so CSNs are numbered by their sequence.

    `published`: every change in its topic. `open`: label -> prim_csn of a transaction that is not
    ended; `void`: those that were aborted. `agreement`: whose updates it reads; None: no hello
    says so.
    """

    name: str
    rid: int
    ends: TopicEnds
    changes: str
    updates: str
    clock_s: int
    rows: dict[Row, str] = field(default_factory=dict)
    position: Position = field(default_factory=Position)
    epoch: int = 1
    sessions: int = 0
    published: list[Change] = field(default_factory=list)
    open: dict[str, str] = field(default_factory=dict)
    void: set[str] = field(default_factory=set)
    inbox: int = 0
    batches: int = 0
    agreement: str | None = None
    generator: Generator = field(init=False)

    def __post_init__(self) -> None:
        """Give it a source of CSNs of its own."""
        self.generator = Generator(self.rid)

    @property
    def session(self) -> str:
        """The id of the session in force."""
        return self.position.session or ""

    @property
    def committed(self) -> list[Change]:
        """The published changes that are not of an open or aborted transaction."""
        unsettled = {*self.open.values(), *self.void}
        return [change for change in self.published if change.prim_csn not in unsettled]

    # -- what it writes ---------------------------------------------------------------------

    def send(self, record: Record) -> int:
        """Write a record to its topic in the session in force; its offset."""
        return self.send_bytes(wire.encode(self.session, record))

    def send_bytes(self, value: bytes | None, time_ms: int | None = None) -> int:
        """Write any bytes to its topic; their offset."""
        return self.ends.send(self.changes, self.name, value, time_ms)

    def hello(
        self, *, lost: bool = False, versions: tuple[int, ...] = (1,), generation: int | None = None
    ) -> int:
        """Start a session; what was open is void, as after a crash of the database.

        generation: one that is not that of its position.
        """
        self.sessions += 1
        self.void.update(self.open.values())
        self.open.clear()
        moved = self.position.moved(self.agreement)
        self.position = moved.in_session(f"{self.name}-{self.sessions}")
        own = max((change.csn for change in self.published), default=None)
        hello = self.position.hello(own, lost=lost, agreement=self.agreement)
        hello = replace(hello, versions=versions)
        return self.send(hello if generation is None else replace(hello, generation=generation))

    def move(self, agreement: str, updates: str) -> None:
        """Read the updates of another agreement from here on, as a new agent would."""
        self.agreement, self.updates, self.inbox = agreement, updates, 0
        self.hello()

    def heartbeat(self) -> int:
        """Say that it is alive; the offset."""
        return self.send(Heartbeat(self.epoch))

    def change(self, key: str, value: str | None) -> Change:
        """The change of a row that it would make now, `value` None: a delete; nothing is sent."""
        csn, self.generator = self.generator.next(self.clock_s)
        row = row_of(key)
        op = Op.DELETE if value is None else Op.UPDATE if row in self.rows else Op.INSERT
        after = None if value is None else image(key, value)
        before = self.rows.get(row)
        return Change(csn, self.rid, self.epoch, *row, op, after, before)

    def write(self, key: str, value: str | None, inside: str | None = None) -> Change:
        """Write a row and publish the change; `inside`: the label of an open transaction."""
        change = self.change(key, value)
        if inside is not None:
            change = change._replace(prim_csn=self.open.setdefault(inside, change.csn))
        self.make(change)
        return change

    def make(self, change: Change) -> int:
        """Hold the row as the change has it and publish the change; its offset."""
        self._hold(change.table, change.key, change.after)
        return self.publish(change)

    def publish(self, change: Change) -> int:
        """Write a change to its topic; its offset."""
        self.published.append(change)
        return self.send(change)

    def commit(self, label: str) -> None:
        """Commit an open transaction."""
        self.send(Commit(self.open.pop(label)))

    def abort(self, label: str) -> None:
        """Abort an open transaction; who uses this undoes its rows himself."""
        self.void.add(self.open[label])
        self.send(Abort(self.open.pop(label)))

    # -- what it reads ----------------------------------------------------------------------

    def catch_up(self, *, answers: bool = True, limit: int | None = None) -> int:
        """Apply what is in its updates topic; the number of batches that it applied.

        answers: each batch is answered with `applied`. limit: of batches, the others stay there.
        """
        before = self.batches
        for _, value in self.ends.read(self.updates, self.inbox):
            if limit is not None and self.batches - before == limit:
                break
            self._receive(value, answers=answers)
        return self.batches - before

    def _receive(self, value: bytes, *, answers: bool) -> None:
        match receive(self.position, wire.decode_answer(value)):
            case ApplyBatch() as batch:
                self._apply(batch)
                if answers:
                    self.send(self.position.applied())
            case BufferChunk(position):
                self.position = position
            case SendHello(position, _):
                self.position = position
                self.hello()
                self._receive(value, answers=answers)
                return
            case _:
                pass
        self.inbox += 1

    def _apply(self, batch: ApplyBatch) -> None:
        """Rows, position and epoch, as one transaction of a database would have them."""
        for place, item in enumerate(batch.items):
            if isinstance(item, RangeItem):
                self._drop_strangers(item, batch.items[place + 1 : place + 1 + item.count])
                continue
            self._hold(item.table, item.key, item.after)
            if item.csn is not None:
                self.generator = self.generator.seen(item.csn, self.clock_s)
        self.position = replace(batch.position, epoch=self.epoch)
        self.epoch += 1
        self.batches += 1

    def _drop_strangers(self, span: RangeItem, sent: Sequence[Item | RangeItem]) -> None:
        """Delete the rows of a range that are not among those that were sent."""
        if not span.deletes:
            return
        keys, kept = (
            KeyRange(span.table, span.after, span.to),
            {item.key for item in sent if isinstance(item, Item)},
        )
        order = key_order(TABLE)
        for table, key in list(self.rows):
            if table == span.table and key not in kept and keys.holds(key, order):
                del self.rows[table, key]

    def _hold(self, table: str, key: str, after: str | None) -> None:
        if after is None:
            self.rows.pop((table, key), None)
        else:
            self.rows[table, key] = after
