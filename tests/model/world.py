"""The world in memory: replicas, a hub, and nothing between them but topics.

A write is named by the value that it writes, so a story can speak of it; whose backend is the
pure hub is the specification in code, and another backend must come to the same end.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from checkpoints.commit.faults import FaultPoint
from connectors.packets.arrived import Arrival
from streaming.core.conflict.winner import ConflictFacts, Image, Winner
from streaming.core.matrix.packets import Place
from streaming.core.model.change import HUB_RID, Change, Op
from streaming.core.model.column_filter import ColumnFilter
from streaming.core.model.command import UndoOrder
from streaming.core.model.function import ConflictFunction, parse_function
from streaming.core.model.row_filter import RowFilter
from streaming.core.model.ruv import Ruv
from streaming.core.model.statuses import AgreementStatus, AwayReason
from streaming.core.model.table import OnHidden, OnRefused
from streaming.core.records.record import Goodbye, Heartbeat, PublishedSchema, Record, Update
from streaming.core.state.sending_times import AT_ONCE, SendingTimes
from streaming.core.state.topology import Subscription, Topology
from streaming.filters.row_predicate import RowPredicate
from tests.model.backend import Backend, Judgement
from tests.model.post import Post
from tests.model.renumber import renumber
from tests.model.replica import (
    ABSENT,
    TABLE,
    UNSENT,
    WIDE,
    Line,
    Replica,
    Write,
    name_of,
    row_of,
    table_of,
    value_of,
)

ROUNDS = 30
"""So many rounds of everybody doing all that can be done must be enough to become quiet.

A page of a resync has one row and takes a round, so that each row may take one more.
"""

ROUND_S = 10
MAX_AWAY_S = 15
"""Longer than a round, shorter than two."""

PACKET_EVERY_MS = 1
"""So a batch exports a packet whenever there is something to say."""

DELAY_S = 12
"""Longer than a round."""

NEVER_MS = 10**12
ALL_EPOCHS = 1_000_000
"""More hub epochs than any story has."""
AWAY = f"{AgreementStatus.CHANGE_TRACKING}: {AwayReason.SILENT}"


class RestlessError(AssertionError):
    """The world never becomes quiet."""


MERGE = "tests.model.world:merge"
"""The user's conflict function of the model, by its import path."""


SHORT = ColumnFilter(frozenset(TABLE.columns))
"""What is sent of a table whose column s is not."""


def merge(row: Image | None, change: Image | None, _facts: ConflictFacts) -> Image | Winner:
    """Both values, whoever wrote them; a delete wins."""
    if row is None or change is None:
        return Winner.CHANGE
    values = {*str(row["v"]).split("+"), *str(change["v"]).split("+")}
    return {**row, **change, "v": "+".join(sorted(values))}


def topology(
    replicas: Sequence[Replica],
    functions: Mapping[str, str] | None = None,
    hidden: Collection[tuple[str, str]] = (),
    *,
    covers_interval_ms: int = 0,
    page_items: int = 3,
    ack_timeout_ms: int = NEVER_MS,
    on_refused: Mapping[str, OnRefused] = MappingProxyType({}),
    on_hidden: Mapping[str, OnHidden] = MappingProxyType({}),
    by_packets: Collection[str] = (),
    shown: Mapping[tuple[str, str], str] = MappingProxyType({}),
    delayed: Collection[str] = (),
    lacking: Collection[tuple[str, str]] = (),
    wide: Collection[str] = (),
    archives: Collection[str] = (),
) -> Topology:
    """One agreement per replica, named after it; pages small enough to need several.

    `functions`: table -> its conflict function. `hidden`: (table, replica) that do not meet.
    `on_refused`: table -> what follows a refused row of it; `skip` where none is named.
    `on_hidden`: table -> what follows a write on a row that is hidden; `judge` where none is named.
    `by_packets`: the replicas that Kafka does not reach. `shown`: (table, replica) -> the condition
    of the rows that it is shown. `delayed`: the replicas that are sent what is DELAY_S old.
    `lacking`: (table, replica) of which it is sent no column s. `wide`: the tables with that
    column. `archives`: the replicas that are
    sent no deletes.
    """
    rids = {r.name: r.rid for r in replicas}
    tables = {
        name: replace(
            WIDE if name in wide else TABLE,
            name=name,
            function=_function(text, rids),
            on_refused=on_refused.get(name, OnRefused.SKIP),
            on_hidden=on_hidden.get(name, OnHidden.JUDGE),
        )
        for name, text in (functions or {TABLE.name: "EPOCH"}).items()
    }
    subscriptions = {
        r.name: Subscription(
            r.name,
            r.rid,
            frozenset(name for name in tables if (name, r.name) not in hidden),
            PACKET_EVERY_MS if r.name in by_packets else None,
            {
                table: RowPredicate(text, tables[table])
                for (table, replica), text in shown.items()
                if replica == r.name
            },
            SendingTimes(DELAY_S * 1_000) if r.name in delayed else AT_ONCE,
            columns={table: SHORT for table, replica in lacking if replica == r.name},
            sends_deletes=r.name not in archives,
        )
        for r in replicas
    }
    return Topology(
        tables,
        subscriptions,
        {MERGE: merge},
        covers_interval_ms=covers_interval_ms,
        page_items=page_items,
        refused_again_ms=1,
        ack_timeout_ms=ack_timeout_ms,
        resync_page_rows=1,
        max_away_ms=MAX_AWAY_S * 1_000,
    )


def _function(text: str, rids: Mapping[str, int]) -> ConflictFunction:
    function = parse_function(text)
    return replace(function, replica=rids.get(function.argument or ""))


@dataclass(slots=True)
class World:
    """Replicas and a hub; `received`: what was appended to each replica's topic, in order.

    `told`: replica -> the lines that it had not published when its agent last said how many.
    `lost`: (csn, content) of the changes that were deleted from a topic unread; `begins`: replica
    -> where its topic begins, if records were. `renumbered`: replica -> the CSNs that its agent
    gave instead of others, by the clock that its records have. `posts`: of the replicas that Kafka
    does not reach; their topics in `received` are what stands in their outboxes. `taken_out`: the
    rids of those that were ever retired for good. `filters`: (rid, table) -> what it was ever shown
    of the table. `archives`: the rids of those that were ever sent no deletes.
    """

    replicas: Mapping[str, Replica]
    hub: Backend
    now_s: int = 1_700_000_000
    names: dict[str, Write] = field(default_factory=dict)
    received: dict[str, list[tuple[str | None, Record]]] = field(default_factory=dict)
    told: dict[str, Sequence[Line]] = field(default_factory=dict)
    lost: set[tuple[str, str]] = field(default_factory=set)
    taken_out: set[int] = field(default_factory=set)
    preferred: list[Change] = field(default_factory=list)
    begins: dict[str, int] = field(default_factory=dict)
    renumbered: dict[str, set[str]] = field(default_factory=dict)
    posts: dict[str, Post] = field(default_factory=dict)
    filters: dict[tuple[int, str], list[RowFilter]] = field(default_factory=dict)
    archives: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Note the filters of the beginning."""
        self.note_filters()

    def note_filters(self) -> None:
        """Note what consumers are shown from now on."""
        for rid, one in self.hub.topology.by_consumer.items():
            for table, known in one.rows.items():
                self.filters.setdefault((rid, table), []).append(known)
            if not one.sends_deletes:
                self.archives.add(rid)

    def was_hidden(self, rid: int, table: str, image: str) -> bool:
        """Return whether a filter may have kept this image of a row from a replica."""
        known = self.filters.get((rid, table), ())
        return not all(one.shown([image])[0] for one in known)

    # -- writing ----------------------------------------------------------------------------

    def write(
        self,
        replica: str,
        key: str,
        name: str,
        *,
        delete: bool = False,
        transaction: str | None = None,
        reuse: str | None = None,
        kind: str | None = None,
    ) -> None:
        """Write the value `name` to a row, or delete the row by a change of that name.

        `kind`: LONG or ODD, of a value that nobody else can take.
        """
        self.now_s += 1
        value = None if delete else name if kind is None else {kind: name}
        csn = self.names[reuse].change.csn if reuse else None
        one = self.replicas[replica]
        self.names[name] = one.write(key, value, self.now_s, transaction, csn)

    def truncate(
        self, replica: str, table: str, name: str, *, transaction: str | None = None
    ) -> None:
        """Delete all rows of a table by a change of that name."""
        self.now_s += 1
        one = self.replicas[replica]
        self.names[name] = one.truncate(table, self.now_s, transaction)

    def tell(self, replica: str, count: int | None = None) -> None:
        """Tell so many rows of a snapshot, or all that are left; each by its value's name."""
        one = self.replicas[replica]
        for _ in range(len(one.to_tell) if count is None else min(count, len(one.to_tell))):
            self.now_s += 1
            write = one.tell(self.now_s)
            if write is not None:
                value = value_of(write.change.after or "")
                self.names[f"{value} of {replica}"] = write
                self.names.setdefault(value, write)

    # -- topics -----------------------------------------------------------------------------

    def send(self, replica: str, session: str | None, record: Record) -> None:
        """Append a record to a replica's topic."""
        self.received.setdefault(replica, []).append((session, record))
        if replica not in self.posts:
            self._send(replica, session, record)

    def _send(
        self, replica: str, session: str | None, record: Record, place: Place | None = None
    ) -> None:
        one = self.replicas[replica]
        self.hub.send(one.rid, session, record, (self.now_s + one.dated_s) * 1000, place)

    def publish(self, replica: str, lines: Sequence[Line]) -> None:
        """Publish lines of the journal, in this order."""
        for line in lines:
            self.send(replica, *self.replicas[replica].publish(line))

    def publish_all(self, replica: str, at_most: int | None = None) -> None:
        """Publish what is not known to be in the topic yet, in journal order."""
        self.publish(replica, self.replicas[replica].unpublished()[:at_most])

    def repeat(self, replica: str, place: int) -> None:
        """The broker delivers a record once more, exactly as it was; an old count is the last one.

        A real one does not repeat a record behind a newer one of its agent.
        """
        session, record = self.received[replica][place]
        if isinstance(record, Heartbeat):
            self.told[replica] = ()
        self.send(replica, session, record)

    def retire(self, replica: str) -> None:
        """Take it out for good."""
        self.taken_out.add(self.replicas[replica].rid)
        self.hub.retire(self.replicas[replica].rid)

    def readmit(self, replica: str) -> None:
        """Let it have its rid as a new replica; what it published since it was retired is lost."""
        rid = self.replicas[replica].rid
        records = [record for _, record in self.received.get(replica, [])[self.hub.offset(rid) :]]
        self.lost |= {(r.csn, r.content) for r in records if isinstance(r, Change)}
        self.hub.readmit(rid)

    def lose_unread(self, replica: str) -> None:
        """Delete from a replica's topic what the hub has not taken."""
        rid = self.replicas[replica].rid
        received = self.received.get(replica, [])
        records = [record for _, record in received[self.hub.offset(rid) :]]
        self.lost |= {(r.csn, r.content) for r in records if isinstance(r, Change)}
        self.begins[replica] = len(received)
        self.hub.lose_unread(rid)

    # -- agents and the hub -----------------------------------------------------------------

    def renumber(self, replica: str) -> Mapping[str, str]:
        """Have an agent give what nobody has seen new CSNs, if its clock says that it must."""
        one = self.replicas[replica]
        topic = [record for _, record in self.received.get(replica, [])]
        old = one.unpublished()
        new = renumber(one, topic, self.now_s + one.dated_s)
        by_line = {id(line): renamed for line, renamed in zip(old, one.unpublished(), strict=True)}
        writes = {id(write.line): write for write in one.writes}
        for name, write in self.names.items():
            self.names[name] = writes.get(id(by_line.get(id(write.line))), write)
        lines = self.told.get(replica, ())
        self.told[replica] = [by_line.get(id(line), line) for line in lines]
        self.renumbered.setdefault(replica, set()).update(new.values())
        return new

    def hello(self, replica: str, *, ruv: Ruv | None = None) -> None:
        """Start a session of this replica's agent; `ruv`: another one than its database has.

        One that is fed by packets goes on in its session, unless it lost something, or has to.
        """
        topic = [record for _, record in self.received.get(replica, [])]
        post = self.posts.get(replica)
        if post is not None:
            if post.answered and ruv is None and self.replicas[replica].resume(topic):
                return
            post.answered = True
        one = self.replicas[replica]
        one.agreement = self.hub.agreement_read_by(one.rid)
        session, hello = one.hello(topic)
        hello = replace(hello, unpublished=self._counted(replica))
        self.send(replica, session, hello if ruv is None else replace(hello, ruv=ruv))
        if one.is_altered:
            self.tell_schema(replica)

    def alter(self, replica: str, table: str, *, has_column: bool) -> None:
        """Have a replica's table lose its column of values, or get what it lacks.

        Its agent says so.
        """
        one = self.replicas[replica]
        one.is_altered = True
        if has_column:
            one.narrow.discard(table)
        (one.without.discard if has_column else one.without.add)(table)
        if one.is_up:
            self.tell_schema(replica)

    def tell_schema(self, replica: str) -> None:
        """Publish what a replica's tables lack, at once: what its journal holds comes behind."""
        one = self.replicas[replica]
        lacking = (
            *(f"{table}.v" for table in sorted(one.without)),
            *(f"{table}.s" for table in sorted(one.narrow)),
        )
        self.send(replica, one.position.session, PublishedSchema("d", "{}", lacking or None))

    def beat(self, replica: str) -> None:
        """Send a heartbeat, if this replica's agent is up."""
        one = self.replicas[replica]
        if one.is_up:
            heartbeat = Heartbeat(one.epoch, self._counted(replica))
            self.send(replica, one.position.session, heartbeat)

    def _counted(self, replica: str) -> int | None:
        """How many lines this replica has not published, from now on what its agent last said."""
        self.told[replica] = self.replicas[replica].unpublished()
        return len(self.told[replica]) or None

    def end(self, replica: str) -> None:
        """End this replica's agent in order: its goodbye stands behind all that it published."""
        one = self.replicas[replica]
        if one.is_up:
            goodbye = Goodbye(one.epoch, len(one.unpublished()))
            self.send(replica, one.position.session, goodbye)
            one.end()

    def apply(self, replica: str, at_most: int | None = None) -> bool:
        """Let a replica read records of its updates topic; return whether it read one."""
        one = self.replicas[replica]
        if replica in self.posts:
            return self._apply_packets(one, self.posts[replica], at_most)
        taken = 0
        while at_most is None or taken < at_most:
            if not one.receive(self.hub.updates(one.rid), self.now_s):
                break
            taken += 1
        return taken > 0

    def _apply_packets(self, one: Replica, post: Post, at_most: int | None) -> bool:
        """Apply packets that are there, as far as no lock and no new session stands in the way."""
        taken = 0
        while one.is_up and (at_most is None or taken < at_most):
            packet = post.next_packet(one.position, is_told=one.has_told)
            if packet is None:
                break
            one.inbox = 0
            while one.receive(packet.records, self.now_s):
                pass
            is_greeting = not one.is_up
            post.answered = not is_greeting
            if one.inbox < len(packet.records) and not is_greeting:
                break  # a row is locked
            if packet in post.bay and packet.at(one.position) is not Arrival.APPLIED:
                post.bay.remove(packet)
            taken += 1
        return taken > 0

    # -- packets ----------------------------------------------------------------------------

    def carry_down(self, replica: str) -> None:
        """Bring the hub's packets to a replica."""
        post, rid = self.posts[replica], self.replicas[replica].rid
        post.fetch(self.hub.packets_to(rid))
        post.arrive()

    def carry_up(self, replica: str) -> None:
        """Bring a replica's packets to the hub, whose importer takes what continues its topic."""
        post = self.posts[replica]
        for place in post.importable():
            session, record = self.received[replica][place]
            self._send(replica, session, record, Place(f"outbox of {replica}", place + 1))
            post.imported = place + 1

    def export(self, replica: str) -> None:
        """Have a replica make a packet of what stands in its outbox."""
        self.posts[replica].export(len(self.received.get(replica, ())))

    def has_all(self, replica: str) -> bool:
        """Return whether the hub's topic has all that a replica has published."""
        post = self.posts.get(replica)
        return post is None or post.imported == len(self.received.get(replica, ()))

    def send_lost_again(self, replica: str) -> None:
        """`chepoch --actual` on either side: all behind the other's own word is sent again."""
        post = self.posts[replica]
        post.was_lost, post.exported = False, post.got
        self.hub.lower_row(self.replicas[replica].rid, ALL_EPOCHS)

    def lose(self, replica: str) -> bool:
        """Let the next record to a replica never come; False: none is on its way."""
        one = self.replicas[replica]
        topic = self.hub.updates(one.rid)
        is_under_way = one.has_next(topic) and isinstance(topic[one.inbox], Update)
        if is_under_way:
            one.missing.add(one.inbox)
        return is_under_way

    def take(
        self,
        counts: Mapping[str, int] | None = None,
        kill: FaultPoint | None = None,
        pages: Collection[str] = (),
    ) -> None:
        """The hub processes a micro-batch of so many records per replica (None: all).

        `pages`: the replicas that it sends a page of their resync, if there is one.
        """
        by_rid = None
        if counts is not None:
            by_rid = {self.replicas[name].rid: n for name, n in counts.items()}
        rids = [self.replicas[name].rid for name in pages]
        self.hub.take(by_rid, self.now_s * 1000, kill, rids)

    def run_until_quiet(self) -> None:
        """Do all that can be done until nothing is left to do; RestlessError when it never ends."""
        rounds = ROUNDS + len({write.change.row for write in self.names.values()})
        for _ in range(rounds):
            before = self._progress()
            self.turn()
            if self._progress() == before and not self.hub.holds_back():
                return
        raise RestlessError(f"not quiet after {rounds} rounds: {self._progress()}")

    def turn(self) -> None:
        """Everybody does what can be done, once."""
        self.now_s += ROUND_S
        if not self.hub.is_up():
            self.hub.restart(self.now_s * 1000)
        for name, one in self.replicas.items():
            if one.is_absent:
                continue
            if one.snapshot is not None and one.is_up:
                self.tell(name)
                one.end_snapshot()
            self.publish_all(name)
            if not one.is_up and not one.is_told_to_stop:
                self.hello(name)
            elif self.told.get(name) or self.hub.standing(one.rid).state == AWAY:
                self.beat(name)
            if name in self.posts:
                self.export(name)
                self.carry_up(name)
        self.take(pages=[*self.replicas])
        self.hub.take_beside(self.now_s * 1000, [one.rid for one in self.replicas.values()])
        for name, post in self.posts.items():
            self.carry_down(name)
            if post.was_lost:
                self.send_lost_again(name)
        for name in self.replicas:
            self.apply(name)

    def _progress(self) -> list[tuple[int, int, int, bool, str, int]]:
        """What moves on, by replica; a resync that a command began may have sent nothing yet."""
        return [
            (
                len(self.received.get(name, ())),
                len(self.hub.updates(one.rid)),
                one.inbox,
                one.is_up,
                self.hub.standing(one.rid).state,
                len(self.hub.packets_to(one.rid)),
            )
            for name, one in self.replicas.items()
        ]

    # -- what can be seen -------------------------------------------------------------------

    def prefer(self, replica: str, key: str) -> None:
        """Let the row of a replica stand for everybody."""
        one, row = self.replicas[replica], row_of(key)
        after = one.rows.get(key, ABSENT).image
        op = Op.DELETE if after is None else Op.UPDATE
        self.preferred.append(Change("", HUB_RID, 0, *row, op, after, self.hub.rows().get(row)))
        self.hub.prefer(one.rid, row, after)

    def undo(self, name: str) -> None:
        """Undo the change of this name with its transaction, if it was accepted."""
        change = self.names[name].change
        judged = [one for one in self.hub.changelog() if one.csn == change.csn]
        if judged:
            to, transaction = judged[0].hub_epoch - 1, change.prim_csn or change.csn
            order = UndoOrder(change.table, to, "operator", "it was wrong", transaction=transaction)
            self.hub.undo(order)

    def rows_of(self, replica: str) -> dict[str, str]:
        """Key -> image of the rows that exist at a replica, without a default that is not sent."""
        one = self.replicas[replica]
        found = {key: row.image for key, row in one.rows.items() if row.image is not None}
        default = f',"s":"{UNSENT}"}}'
        return {
            key: image.replace(default, "}") if table_of(key) in one.lacking else image
            for key, image in found.items()
        }

    def rows_of_hub(self) -> dict[str, str]:
        """Key -> image of the rows that exist at the hub."""
        return {name_of(*row): text for row, text in self.hub.rows().items()}

    def sees(self, replica: str, key: str) -> bool:
        """Return whether a replica is sent this row."""
        return self.hub.topology.sees(self.replicas[replica].rid, row_of(key)[0])

    def shown(self, replica: str, rows: Mapping[str, str]) -> dict[str, str]:
        """The rows of the hub, key -> image, that a replica is shown, with the columns it has."""
        filters = self.hub.topology.by_consumer[self.replicas[replica].rid].rows
        columns = self.hub.topology.by_consumer[self.replicas[replica].rid].columns
        return {
            key: image
            if (short := columns.get(row_of(key)[0])) is None
            else short.shown(image) or ""
            for key, image in rows.items()
            if (known := filters.get(row_of(key)[0])) is None or known.shown([image])[0]
        }

    def held(self, replica: str, rows: Mapping[str, str]) -> dict[str, str]:
        """The rows of a replica, key -> image; of an archive those that it is shown of these."""
        mine = self.rows_of(replica)
        if self.hub.topology.by_consumer[self.replicas[replica].rid].sends_deletes:
            return mine
        return {key: image for key, image in mine.items() if key in self.shown(replica, rows)}

    def refused_at(self, replica: str) -> set[str]:
        """The rows that are listed as refused by this replica's database."""
        rid = self.replicas[replica].rid
        return {name_of(*row) for refused_by, row in self.hub.refused() if refused_by == rid}

    def uncarried_at(self, replica: str) -> set[str]:
        """The rows that are listed as uncarried at this replica; of a truncate its table."""
        rid = self.replicas[replica].rid
        return {
            name_of(*row) if row[1] else row[0]
            for written_by, row in self.hub.uncarried()
            if written_by == rid
        }

    def is_level(self, replica: str) -> bool:
        """Return whether the replica's last position record has the hub's covers and RUV."""
        standing = self.hub.standing(self.replicas[replica].rid)
        level = standing.covers == self.hub.hub_epoch()
        return level and standing.ruv.max_csns() == self.hub.ruv().max_csns()

    def judgement(self, name: str) -> Judgement | None:
        """The changelog row of a change; None: it was not judged."""
        change = self.names[name].change
        found = [
            judged
            for judged in self.hub.changelog()
            if (judged.csn, judged.content) == (change.csn, change.content)
        ]
        if len(found) > 1:
            raise AssertionError(f"{name} is {len(found)} times in the changelog")
        return found[0] if found else None

    def reasons(self, replica: str, record: Record) -> list[str]:
        """The reasons for which this record of a replica is in quarantine."""
        rid, received = self.replicas[replica].rid, self.received.get(replica, [])
        kept = [kept for kept in self.hub.quarantine() if kept.rid == rid]
        return [kept.reason for kept in kept if received[kept.offset][1] == record]
