"""A replica in memory: a database with its journal, and its agent."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from connectors.agent.applying import HIDDEN, cause_of_strangers, strangers_deleted
from streaming.core.delivery.consumer import (
    ApplyBatch,
    BufferChunk,
    EndAgent,
    Position,
    SendHello,
    receive,
)
from streaming.core.model.change import Change, Op, RowKey
from streaming.core.model.csn import Generator
from streaming.core.model.errors import CsnError
from streaming.core.model.refusal import COLUMN
from streaming.core.model.table import ColumnType, Table
from streaming.core.model.truncation import ALL_KEYS
from streaming.core.records.record import (
    Abort,
    Applied,
    Commit,
    Hello,
    Item,
    ItemType,
    RangeItem,
    Record,
    Refused,
    Snapshot,
    Stopped,
    Update,
)
from streaming.core.tracking.ranges import KeyRange, key_order

TABLE = Table("t", ("k",), {"k": ColumnType.TEXT, "v": ColumnType.TEXT})
"""The tables of the model: a key and a value; the value names the write that made it."""
WIDE = replace(TABLE, columns={**TABLE.columns, "s": ColumnType.TEXT})
"""The same with a column that not everybody is sent; a write sets it to its value too."""
UNSENT = "default"
"""What the column has where it is not sent: a default that nobody wrote."""


def row_of(name: str) -> RowKey:
    """The row that a story calls `k1`, of table t, or `u.k1`, of table u."""
    table, _, key = name.rpartition(".")
    return table or TABLE.name, json.dumps({"k": key}, separators=(",", ":"))


def table_of(name: str) -> str:
    """The table of the row that a story calls so."""
    return row_of(name)[0]


def name_of(table: str, key: str) -> str:
    """What a story calls a row."""
    prefix = "" if table == TABLE.name else f"{table}."
    return prefix + str(json.loads(key)["k"])


LONG, ODD = "long", "odd"
"""The kinds of values that nobody can take: too long for a record, and of another type."""


def image(name: str, value: str | Mapping[str, str]) -> str:
    """The canonical text of a row with this value; one by its kind is a value of no type."""
    key = name.rpartition(".")[2]
    return json.dumps({"k": key, "v": value}, separators=(",", ":"))


def value_of(text: str) -> str:
    """The value in a row's canonical text."""
    value = json.loads(text)["v"]
    return str(next(iter(value.values()))) if isinstance(value, dict) else str(value)


def _s_of(text: str) -> str | None:
    """The value of column s in a row's canonical text; None: it has none."""
    found: str | None = json.loads(text).get("s")
    return found


def is_long(text: str | None) -> bool:
    """Return whether no record holds this image."""
    value = None if text is None else json.loads(text)["v"]
    return isinstance(value, dict) and LONG in value


def is_carried(text: str | None) -> bool:
    """Return whether everybody can take this image."""
    return text is None or not isinstance(json.loads(text)["v"], dict)


def captured(text: str | None) -> str | None:
    """An image as its record says it: of one that is too long, how long it is."""
    if text is None or not is_long(text):
        return text
    return json.dumps({**json.loads(text), "v": {"bytes": str(len(text))}}, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Version:
    """A row as one database holds it: the CSN that it came with, and its image or None.

    Two writes under one CSN differ by their images; `is_sent`: it came from the hub,
    where a CSN means one change, whatever the image was merged with.
    """

    csn: str | None = None
    image: str | None = None
    is_sent: bool = False


ABSENT = Version()


@dataclass(slots=True)
class Line:
    """A line of the journal; `session`: in which it was made, None: stamped when published."""

    record: Record
    session: str | None = None
    reached: bool = False


@dataclass(frozen=True, slots=True)
class Write:
    """What the user of the database knows of a write: the truth that the hub is held against.

    `over`: the versions that it overwrote there: one, of a truncate those of all rows. `seen`: all
    that this database ever held of them. `copied`: the last hub epoch with a copy of the row's
    range, which shows what was deleted before without telling who did it.
    """

    line: Line
    over: frozenset[Version]
    seen: frozenset[Version]
    copied: int = 0

    @property
    def change(self) -> Change:
        """The change as it is in the journal."""
        assert isinstance(self.line.record, Change)
        return self.line.record

    @property
    def version(self) -> Version:
        """The row as this write left it."""
        return Version(self.change.csn, self.change.after)


@dataclass(slots=True)
class Transaction:
    """A local transaction that is not committed: its rows are locked and nobody sees them."""

    primary: str | None = None
    rows: dict[str, Version] = field(default_factory=dict)
    written: list[tuple[str, Version]] = field(default_factory=list)  # every version, in order
    truncated: list[tuple[str, Version]] = field(default_factory=list)  # tables

    def locks(self, key: str) -> bool:
        """Return whether it has written this row, or truncated its table."""
        return key in self.rows or any(table == table_of(key) for table, _ in self.truncated)


@dataclass(frozen=True, slots=True)
class Backup:
    """A database as it once was; its journal's lines are the same ones still."""

    rows: Mapping[str, Version]
    seen: Mapping[str, frozenset[Version]]
    truncates: Mapping[str, frozenset[Version]]
    copied: Mapping[KeyRange, int]
    snapshot: str | None
    to_tell: Sequence[str]
    epoch: int
    position: Position
    journal: Sequence[Line]
    generator: Generator
    opno: int
    forgiven: frozenset[str]
    is_emptied: bool


@dataclass(slots=True)
class Replica:
    """A database whose agent follows the contract, unless a test makes it break it.

    Everything is durable but `inbox` (how much of the updates topic this agent has read) and
    the chunks of a batch that is not whole. `missing`: the places in the updates topic of what got
    lost on the way. `numbered`: its changes carry opnos. `forgiven`: the own CSNs that it reported
    as lost. `done`: the transactions that were ever committed here. `is_told_to_stop`: its agent
    ended, and is not started again. `is_ended`: it said goodbye, and was not killed. `is_emptied`:
    it applied nothing since it was emptied.
    `truncates`: table -> what its rows were left as by each truncate that was ever done here.
    `copied`: range -> the last hub epoch with a copy of it. `agreement`: whose updates it reads.
    `is_absent`: it is configured, and its agent never ran. `snapshot`: the id of the snapshot that
    it has not ended; `to_tell`: the rows that are not told yet.
    `is_unique`: a constraint lets one row stand in each table. `will_refuse`: row -> how many more
    items of it the database does not take. `skew_s`: how far the clock of its writers is ahead,
    `dated_s`: that of its agent, by which its records are dated; `had_wrong_clock`: one was set.
    `saved`: the images that no record holds and that an item of the hub, or emptying the database,
    has overwritten, and the rows that nobody else has and a range deleted; `hidden_away`: those
    that one deleted and the hub vouched for. `given_up`: those images that its user overwrote
    himself, or that were lost with the database. `longs`: all that were ever written, each with the
    transaction that it is of, if it is of one. `wide`: the tables that are as WIDE is; of those in
    `lacking` it is not sent column s.
    `without`: the tables that lack column v, so that no row of another replica stands there;
    `narrow`: those that lack column s, so that no row with a value there does, and nobody writes
    one. `is_altered`: there was one.
    """

    name: str
    rid: int
    agreement: str | None = None
    skew_s: int = 0
    dated_s: int = 0
    had_wrong_clock: bool = False
    numbered: bool = False
    is_unique: bool = False
    will_refuse: dict[str, int] = field(default_factory=dict)
    saved: set[Version] = field(default_factory=set)
    hidden_away: set[Version] = field(default_factory=set)
    given_up: set[Version] = field(default_factory=set)
    longs: list[tuple[str | None, Version]] = field(default_factory=list)
    rows: dict[str, Version] = field(default_factory=dict)
    seen: dict[str, frozenset[Version]] = field(default_factory=dict)
    truncates: dict[str, frozenset[Version]] = field(default_factory=dict)
    copied: dict[KeyRange, int] = field(default_factory=dict)
    epoch: int = 1
    position: Position = field(default_factory=Position)
    journal: list[Line] = field(default_factory=list)
    open: dict[str, Transaction] = field(default_factory=dict)
    writes: list[Write] = field(default_factory=list)
    done: set[str] = field(default_factory=set)
    forgiven: frozenset[str] = frozenset()
    backup: Backup | None = None
    sessions: int = 0
    opno: int = 0
    inbox: int = 0
    missing: set[int] = field(default_factory=set)
    is_up: bool = False
    is_ended: bool = False
    is_told_to_stop: bool = False
    is_emptied: bool = False
    is_absent: bool = False
    snapshot: str | None = None
    to_tell: list[str] = field(default_factory=list)
    wide: set[str] = field(default_factory=set)
    lacking: set[str] = field(default_factory=set)
    without: set[str] = field(default_factory=set)
    narrow: set[str] = field(default_factory=set)
    is_altered: bool = False
    generator: Generator = field(init=False)

    def __post_init__(self) -> None:
        """Give it a source of CSNs of its own."""
        self.generator = Generator(self.rid)

    # -- the database -----------------------------------------------------------------------

    def is_locked(self, key: str) -> bool:
        """Return whether an open transaction has written this row, or truncated its table."""
        return any(transaction.locks(key) for transaction in self.open.values())

    @property
    def altered(self) -> set[str]:
        """The tables that lack a column."""
        return self.without | self.narrow

    def is_table_locked(self, table: str) -> bool:
        """Return whether an open transaction has written a row of this table, or truncated it."""
        open_ones = self.open.values()
        keys = (key for one in open_ones for key in one.rows)
        tables = (name for one in open_ones for name, _ in one.truncated)
        return table in {*map(table_of, keys), *tables}

    def _is_locked_for(self, item: Item | RangeItem) -> bool:
        """Return whether an open transaction has written a row that this item may write."""
        if isinstance(item, Item) and item.op == Op.TRUNCATE:
            return self.is_table_locked(item.table)
        if isinstance(item, Item):
            return self.is_locked(name_of(item.table, item.key))
        names = [name for one in self.open.values() for name in one.rows]
        tables = [name for one in self.open.values() for name, _ in one.truncated]
        return item.table in tables or any(_holds(item, name) for name in names)

    def write(
        self,
        key: str,
        value: str | Mapping[str, str] | None,
        clock_s: int,
        transaction: str | None = None,
        reuse: str | None = None,
    ) -> Write:
        """Write a row, or delete it where `value` is None; captured at once, in commit order.

        `transaction`: a label; the first write of a label opens it. `reuse`: a CSN that an agent
        which forgot its generator gives a second time.
        """
        csn, inside = self._begin(clock_s, transaction, reuse)
        old = (inside.rows if inside else {}).get(key, self.rows.get(key, ABSENT))
        op = Op.DELETE if value is None else Op.UPDATE if old.image is not None else Op.INSERT
        new = Version(csn, None if value is None else self._image(key, value))
        change = Change(csn, self.rid, self.epoch, *row_of(key), op, captured(new.image))
        before = old.image if is_carried(old.image) else row_of(key)[1]
        change = change._replace(before=before, prim_csn=inside.primary if inside else None)
        self._note_long(change.prim_csn, new)
        write = Write(Line(change), frozenset([old]), self._held(key, old), self._copied(key))
        self.writes.append(write)
        self.journal.append(write.line)
        if inside:
            inside.rows[key] = new
            inside.written.append((key, new))
        else:
            self.given_up.add(old)
            self._hold(key, new)
        return write

    def _image(self, key: str, value: str | Mapping[str, str]) -> str:
        """The row as it stands here, and as its agent captures it."""
        text, table = image(key, value), table_of(key)
        if table not in self.wide - self.narrow:
            return text
        name = UNSENT if table in self.lacking else value_of(text)
        return json.dumps({**json.loads(text), "s": name}, separators=(",", ":"))

    def edit_unseen(self, key: str, value: str | None) -> None:
        """Change a row, or delete it, so that no agent sees it: its triggers are off."""
        old = self.rows.get(key, ABSENT)
        self.given_up.add(old)
        self._hold(key, replace(old, image=None if value is None else self._image(key, value)))

    def truncate(self, table: str, clock_s: int, transaction: str | None = None) -> Write:
        """Delete all rows of a table by one change; see `write`."""
        csn, inside = self._begin(clock_s, transaction, None)
        change = Change(csn, self.rid, self.epoch, table, ALL_KEYS, Op.TRUNCATE)
        change = change._replace(prim_csn=inside.primary if inside else None)
        there = {**self.rows, **(inside.rows if inside else {})}
        there = {key: old for key, old in there.items() if table_of(key) == table}
        held = (self._held(key, old) for key, old in there.items())
        seen = frozenset([ABSENT]).union(*held, self.truncates.get(table, ()))
        copied = self._copied_behind(table, None)
        write = Write(Line(change), frozenset(there.values()), seen, copied)
        self.writes.append(write)
        self.journal.append(write.line)
        gone = Version(csn)
        if inside:
            inside.rows |= dict.fromkeys(there, gone)
            inside.written += [(key, gone) for key in there]
            inside.truncated.append((table, gone))
        else:
            self.given_up |= set(there.values())
            self._empty(table, gone)
        return write

    def begin_snapshot(self, rows: Mapping[str, str] | None = None) -> None:
        """Tell its rows, or these that it has and nobody knows of; its next hello names it."""
        for key, value in (rows or {}).items():
            self._hold(key, Version(None, self._image(key, value)))
        self.is_absent, self.snapshot = False, f"snapshot of {self.name} {self.sessions}"
        self.to_tell = sorted(key for key, one in self.rows.items() if one.image is not None)
        self.journal.append(Line(Snapshot("begin", self.snapshot, TABLE.name)))

    def tell(self, clock_s: int) -> Write | None:
        """Tell the next row of its snapshot as it stands, if it is still there and not locked."""
        key = next((key for key in self.to_tell if not self.is_locked(key)), None)
        if key is None:
            return None
        self.to_tell.remove(key)
        there = self.rows.get(key, ABSENT)
        if there.image is None:
            return None
        csn, _ = self._begin(clock_s, None, None)
        change = Change(csn, self.rid, self.epoch, *row_of(key), Op.INSERT, captured(there.image))
        write = Write(
            Line(change._replace(snapshot=self.snapshot)),
            frozenset([there]),
            self._held(key, there),
            self._copied(key),
        )
        self.writes.append(write)
        self.journal.append(write.line)
        self.given_up.add(there)  # its image goes on under another CSN
        self._hold(key, Version(csn, there.image))
        self._note_long(None, self.rows[key])
        return write

    def end_snapshot(self) -> None:
        """End its snapshot, unless an open transaction holds a row that is not told yet."""
        if self.to_tell:
            return
        self.journal.append(Line(Snapshot("end", self.snapshot or "", None, 0)))
        self.snapshot = None

    def _begin(
        self, clock_s: int, transaction: str | None, reuse: str | None
    ) -> tuple[str, Transaction | None]:
        """The CSN of a write, and the transaction that it is in."""
        fresh, self.generator = self.generator.next(clock_s + self.skew_s)
        csn = reuse or fresh
        if transaction is None:
            return csn, None
        inside = self.open.setdefault(transaction, Transaction())
        inside.primary = inside.primary or csn
        return csn, inside

    def commit(self, transaction: str) -> None:
        """Make an open transaction's rows visible."""
        done = self.open.pop(transaction)
        for key, version in done.written:
            self.seen[key] = self._held(key, version)
            self.given_up |= {version} - {done.rows[key]}
        for key, version in done.rows.items():
            self.given_up.add(self.rows.get(key, ABSENT))
            self._hold(key, version)
        for table, version in done.truncated:
            self.truncates[table] = self.truncates.get(table, frozenset()) | {version}
        self.done.add(done.primary or "")
        self.journal.append(Line(Commit(done.primary or "")))

    def abort(self, transaction: str) -> None:
        """Forget an open transaction's rows; an abort is captured after its changes."""
        gone = self.open.pop(transaction)
        self.journal.append(Line(Abort(gone.primary or "")))

    def _held(self, key: str, version: Version) -> frozenset[Version]:
        truncates = self.truncates.get(table_of(key), frozenset())
        return self.seen.get(key, frozenset([ABSENT])) | truncates | {version}

    def _copied(self, key: str) -> int:
        (table, of_row), order = row_of(key), key_order(TABLE)
        epochs = (
            hub_epoch
            for held, hub_epoch in self.copied.items()
            if held.table == table and held.holds(of_row, order)
        )
        return max(epochs, default=0)

    def _copied_behind(self, table: str, after: str | None) -> int:
        """The hub epoch up to which all keys behind this one were copied, range by range."""
        epochs = (
            hub_epoch if held.to is None else min(hub_epoch, self._copied_behind(table, held.to))
            for held, hub_epoch in self.copied.items()
            if (held.table, held.after) == (table, after)
        )
        return max(epochs, default=0)

    def _hold(self, key: str, version: Version) -> None:
        self.rows[key] = version
        self.seen[key] = self._held(key, version)

    def _empty(self, table: str, version: Version) -> None:
        """Hold nothing in a table."""
        self.truncates[table] = self.truncates.get(table, frozenset()) | {version}
        for key in [key for key in self.rows if table_of(key) == table]:
            self._hold(key, version)

    # -- the agent --------------------------------------------------------------------------

    def end(self) -> None:
        """End the agent; its database and the open transactions in it live on."""
        self.is_up, self.inbox, self.is_ended = False, 0, True

    def crash(self, *, database: bool, forgotten: int = 0) -> None:
        """Lose the agent; with its database all that is not committed is rolled back.

        forgotten: so many of the last lines reached the topic without being marked as such.
        """
        self.is_up, self.inbox, self.is_ended = False, 0, False
        reached = [line for line in self.journal if line.reached]
        for line in reached[len(reached) - forgotten :]:
            line.reached = False
        if database:
            void = {transaction.primary for transaction in self.open.values()}
            self.open.clear()
            self.journal = [line for line in self.journal if line.reached or not _is_of(line, void)]

    def back_up(self) -> None:
        """Keep the database as it is, for `restore`; nothing may be open in it."""
        self.backup = Backup(
            dict(self.rows),
            dict(self.seen),
            dict(self.truncates),
            dict(self.copied),
            self.snapshot,
            tuple(self.to_tell),
            self.epoch,
            self.position,
            tuple(self.journal),
            self.generator,
            self.opno,
            self.forgiven,
            self.is_emptied,
        )

    def restore(self) -> None:
        """Lose everything since the backup; the agent is dead until it sends a hello."""
        old = self.backup
        assert old is not None
        self.given_up |= set(self.rows.values()) - set(old.rows.values())
        self.rows, self.seen, self.journal = dict(old.rows), dict(old.seen), list(old.journal)
        self.truncates, self.copied = dict(old.truncates), dict(old.copied)
        self.snapshot, self.to_tell = old.snapshot, list(old.to_tell)
        self.epoch, self.generator, self.opno = old.epoch, old.generator, old.opno
        self.position, self.forgiven = old.position, old.forgiven
        self.is_emptied = old.is_emptied
        self.open.clear()
        self.is_up, self.inbox = False, 0

    def reinit(self) -> None:
        """Empty the database; what it knew, and what it did not publish, is gone."""
        self.crash(database=True)
        for key in self.rows:
            self._save(key)
        self.rows.clear()
        self.seen.clear()
        self.truncates.clear()
        self.copied.clear()
        self.snapshot, self.to_tell = None, []
        self.journal.clear()
        self.position, self.is_emptied, self.is_told_to_stop = Position(), True, False

    def hello(self, topic: Sequence[Record]) -> tuple[str, Hello]:
        """Start a session, having read its own topic to the end."""
        self.is_up, self.is_ended, self.is_told_to_stop = True, False, False
        self.sessions += 1
        session = f"{self.name}-{self.sessions}"
        self.position = self.position.moved(self.agreement).in_session(session)
        changes = [record for record in topic if isinstance(record, Change)]
        self._move_past(changes)
        told = (one.epoch + 1 for one in topic if isinstance(one, Applied | Hello))
        self.epoch = max([self.epoch, *told])
        if self.is_emptied and not self._has_published(changes):
            self.forgiven |= {change.csn for change in changes}
            self.position = replace(self.position, epoch=self.epoch)
            self.epoch += 1
            return session, replace(
                self.position.hello(None, lost=False, agreement=self.agreement),
                reinit=True,
                snapshot=self.named_snapshot,
            )
        done = {record.prim_csn for record in topic if isinstance(record, Commit)}
        whole = [c for c in changes if c.prim_csn is None or c.prim_csn in done]
        there, counted = self._own_changes(), {change.csn for change in whole}
        lost = {c.csn for c in whole if (c.csn, c.content) not in there} - self.forgiven
        known = (csn for csn in counted if not lost or csn < min(lost))
        self.forgiven |= lost
        own = max(known, default=None)
        hello = self.position.hello(own, lost=bool(lost), agreement=self.agreement)
        return session, replace(hello, snapshot=self.named_snapshot)

    def resume(self, topic: Sequence[Record]) -> bool:
        """Go on in the session in force, which lasts over restarts; False: it needs a new one.

        What its outbox holds of transactions that are not there any more is aborted.
        """
        changes = [record for record in topic if isinstance(record, Change)]
        closed = {record.prim_csn for record in topic if isinstance(record, Commit | Abort)}
        whole = [one for one in changes if one.prim_csn is None or one.prim_csn in closed]
        there = self._own_changes()
        lost = {one.csn for one in whole if (one.csn, one.content) not in there} - self.forgiven
        told = max((one.epoch + 1 for one in topic if isinstance(one, Applied | Hello)), default=0)
        if lost or self.is_emptied or told > self.epoch or self.snapshot is not None:
            return False
        self.is_up, self.is_ended, self.is_told_to_stop = True, False, False
        self._move_past(changes)
        here = {transaction.primary for transaction in self.open.values()} | self.done
        left = {one.prim_csn: None for one in changes if one.prim_csn is not None}
        for prim_csn in left:
            if prim_csn not in closed | here:
                self.journal.append(Line(Abort(prim_csn)))
        return True

    @property
    def named_snapshot(self) -> str | None:
        """The snapshot whose end is not known to be in its topic."""
        ends = (one.record for one in self.unpublished())
        open_end = (one.id for one in ends if isinstance(one, Snapshot) and one.phase == "end")
        return self.snapshot or next(open_end, None)

    def _has_published(self, topic: Sequence[Change]) -> bool:
        """Return whether a record of its journal is in the topic, marked as published or not."""
        is_marked = any(line.reached for line in self.journal)
        there = self._own_changes()
        return is_marked or any((change.csn, change.content) in there for change in topic)

    def _own_changes(self) -> set[tuple[str, str]]:
        """The (CSN, content) of its own changes that the database has.

        One that was restored may give the CSN of what it lost to another change.
        """
        changes = (line.record for line in self.journal)
        return {(one.csn, one.content) for one in changes if isinstance(one, Change)}

    def _move_past(self, changes: Sequence[Change]) -> None:
        """Give no CSN, epoch or opno that is in the topic."""
        there = self._own_changes()
        for change in changes:
            passed = Generator.behind(self.rid, change.csn)
            self.generator = max(self.generator, passed, key=lambda one: (one.time_s, one.sequence))
            self.opno = max(self.opno, change.opno or 0)
            if (change.csn, change.content) not in there:
                self.epoch = max(self.epoch, change.epoch + 1)

    @property
    def has_told(self) -> bool:
        """Return whether its topic tells all that it has applied."""
        return not any(isinstance(line.record, Applied) for line in self.unpublished())

    def unpublished(self) -> list[Line]:
        """The lines that are not known to be in the topic, in journal order."""
        return [line for line in self.journal if not line.reached]

    def publish(self, line: Line) -> tuple[str, Record]:
        """The record that goes to the topic now, with its session; numbered in that order."""
        self.number(line)
        line.reached = True
        return line.session or self.position.session or "", line.record

    def number(self, line: Line) -> None:
        """Give a change of a replica that numbers them the next opno, unless it has one."""
        if self.numbered and isinstance(line.record, Change) and line.record.opno is None:
            self.opno += 1
            line.record = line.record._replace(opno=self.opno)

    def receive(self, topic: Sequence[Update | Stopped], clock_s: int) -> bool:
        """Take the next record of the updates topic; False: there is none, or a row is locked."""
        if not self.has_next(topic):
            return False
        match receive(self.position, topic[self.inbox]):
            case ApplyBatch() as batch:
                if any(self._is_locked_for(item) for item in batch.items):
                    return False
                self._apply(batch, clock_s)
            case BufferChunk(position):
                self.position = position
            case SendHello(position, _):
                self.position, self.is_up = position, False
                return True
            case EndAgent():
                self.is_up, self.is_told_to_stop = False, True
                return True
            case _:
                pass
        self.inbox += 1
        return True

    def _refuses(self, key: str, after: str | None) -> str | None:
        """The code with which the database refuses an item, if it does."""
        table = table_of(key)
        if after is not None and (table in self.without or (table in self.narrow and _s_of(after))):
            return COLUMN
        if self.will_refuse.get(key, 0):
            self.will_refuse[key] -= 1
            return "check"
        return "unique" if after is not None and self.would_break(key) else None

    def would_break(self, key: str) -> bool:
        """Return whether a row beside those that stand would break the unique constraint."""
        there = {name for name, version in self.rows.items() if version.image is not None}
        there |= {name for one in self.open.values() for name in one.rows}
        table = row_of(key)[0]
        return self.is_unique and any(
            name != key and row_of(name)[0] == table for name in there - {key}
        )

    def has_next(self, topic: Sequence[Update | Stopped]) -> bool:
        """Return whether there is a record of the updates topic that it can read."""
        while self.inbox in self.missing:
            self.inbox += 1
        return self.is_up and self.inbox < len(topic)

    def _apply(self, batch: ApplyBatch, clock_s: int) -> None:
        """Rows, position, epoch and `applied`: one local transaction."""
        refused = dict[str, Refused]()
        items = list[Item]()
        for item in batch.items:
            if isinstance(item, Item):
                items += [item] if item.type is not ItemType.KEPT else []
                continue
            items += self._strangers(item, batch.items)
            self._copy_absence(item, batch.hub_epoch)
        for item in items:
            csn = item.csn or "0" * 20
            key = "" if item.op == Op.TRUNCATE else name_of(item.table, item.key)
            if item.op == Op.TRUNCATE:
                refused |= self._apply_truncate(item, batch.hub_epoch, refused)
            elif code := self._refuses(key, item.after):
                refused[key] = Refused(batch.hub_epoch, csn, item.table, item.key, code, "no")
            else:
                refused.pop(key, None)
                self._write_item(key, item)
            if item.csn is not None:
                with suppress(CsnError):  # as an agent does: another one's clock does not stop it
                    self.generator = self.generator.seen(item.csn, clock_s + self.skew_s)
        self._write_what_others_freed(items, refused)
        self.journal += map(Line, refused.values())
        self.position = replace(batch.position, epoch=self.epoch)
        self.is_emptied = False
        self.epoch += 1
        self.journal.append(Line(self.position.applied(), self.position.session))

    def _write_what_others_freed(self, items: Sequence[Item], refused: dict[str, Refused]) -> None:
        """Write the rows that the state behind the batch lets stand, whatever their order."""
        last = {name_of(item.table, item.key): item for item in items if item.op != Op.TRUNCATE}
        for key, refusal in list(refused.items()):
            if refusal.code == "unique" and not self.would_break(key):
                del refused[key]
                self._write_item(key, last[key])

    def _write_item(self, key: str, item: Item) -> None:
        """Write a row as it was sent; column s keeps its value if the item says nothing of it."""
        self._save(key)
        there, after = self.rows.get(key, ABSENT).image, item.after
        if after and there and table_of(key) in self.wide and "s" not in item.unset:
            kept = {} if _s_of(after) or not _s_of(there) else {"s": _s_of(there)}
            after = json.dumps({**json.loads(after), **kept}, separators=(",", ":"))
        self._hold(key, Version(item.csn, after, is_sent=True))

    def _note_long(self, prim_csn: str | None, version: Version) -> None:
        if is_long(version.image):
            self.longs.append((prim_csn, version))

    def _save(self, key: str) -> None:
        """Save the image of a row that no record holds, before it is overwritten or deleted."""
        there = self.rows.get(key, ABSENT)
        if is_long(there.image):
            self.saved.add(there)

    def _apply_truncate(
        self, item: Item, hub_epoch: int, refused: dict[str, Refused]
    ) -> dict[str, Refused]:
        """Delete all rows of a table, those apart that the database does not let go."""
        csn, kept, lacking = item.csn or "", dict[str, Version](), dict[str, Refused]()
        for key in [key for key in refused if table_of(key) == item.table]:
            del refused[key]
        for key in [key for key in self.rows if table_of(key) == item.table]:
            if code := self._refuses(key, None):
                kept[key] = self.rows[key]
                lacking[key] = Refused(hub_epoch, csn, *row_of(key), code, "no")
            else:
                self._save(key)
        self._empty(item.table, Version(item.csn, is_sent=True))
        for key, version in kept.items():
            self._hold(key, version)
        return lacking

    def _copy_absence(self, span: RangeItem, hub_epoch: int) -> None:
        """What is not here in the range of a copy is so because the hub says so, from now on."""
        self.copied[_range_of(span)] = hub_epoch
        for name in self._rows_in(span):
            if self.rows[name].image is None:
                self._hold(name, Version(is_sent=True))

    def _strangers(self, span: RangeItem, items: Sequence[Item | RangeItem]) -> list[Item]:
        """The deletes of the rows in a range that are not among the items behind it."""
        if not span.deletes:
            return []
        place = items.index(span) + 1
        kept = {one.key for one in items[place : place + span.count] if isinstance(one, Item)}
        here = (row_of(name)[1] for name in self._rows_in(span) if self.rows[name].image)
        gone = [key for key in here if key not in kept]
        cause = cause_of_strangers(span, len(gone), is_captured=True)
        self._save_strangers([name_of(span.table, key) for key in gone], cause)
        return strangers_deleted(span, gone, cause)

    def _save_strangers(self, names: Sequence[str], cause: str) -> None:
        """Save the rows that go with a range, unless the journal or the hub has them."""
        for name in names:
            there = self.rows[name]
            if cause == HIDDEN:
                self.hidden_away.add(there)
            elif not self._is_journalled(name, there):
                self.saved.add(there)

    def _is_journalled(self, name: str, version: Version) -> bool:
        """Return whether the last change of the row in the journal has left it so."""
        changes = (
            line.record
            for line in reversed(self.journal)
            if isinstance(line.record, Change) and line.record.op is not Op.TRUNCATE
        )
        last = next((one for one in changes if name_of(*one.row) == name), None)
        return last is not None and last.after == version.image

    def _rows_in(self, span: RangeItem) -> list[str]:
        """The names of the rows that it has, or had, in a range."""
        return [name for name in self.rows if _holds(span, name)]


def _range_of(span: RangeItem) -> KeyRange:
    """The range of a copy."""
    return KeyRange(span.table, span.after, span.to)


def _holds(span: RangeItem, name: str) -> bool:
    """Return whether the row of this name is in a range."""
    table, key = row_of(name)
    return table == span.table and _range_of(span).holds(key, key_order(TABLE))


def _is_of(line: Line, primaries: set[str | None]) -> bool:
    """Return whether the line is a change of one of these transactions."""
    change = line.record
    return (
        isinstance(change, Change) and change.prim_csn is not None and change.prim_csn in primaries
    )
