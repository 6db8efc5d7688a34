"""A database that its own topic knows more of, or less, says so and goes on without harm."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import count, groupby, pairwise
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from connectors import wire
from connectors.agent.loop import Agent, wall_ms
from connectors.agent.outage import StopRequested
from connectors.sqlite.journal.entries import JOURNAL_BOUND, JournalBound
from connectors.sqlite.transaction import transaction
from streaming.core.model.change import Change, Op
from streaming.core.model.csn import MAX_SKEW_S, CsnParts, format_csn, is_skewed, parse
from streaming.core.records.record import Commit, Goodbye, Heartbeat, Hello, Record
from tests.connectors.sqlite.sqlite_replica import CREATE_ITEMS, ITEMS, RID, Replica, make
from tests.harness.examples import examples


@dataclass(slots=True)
class Topic:
    """A topic in memory; the broker goes away after `room` more records.

    `times`: of what was published, by a clock that is `ahead_s` ahead.
    """

    values: list[bytes] = field(default_factory=list)
    room: int = 10**6
    times: list[int] = field(default_factory=list)
    ahead_s: int = 0

    def clock_ms(self) -> int:
        """The clock of the machine on which the agent runs."""
        return wall_ms() + self.ahead_s * 1_000

    def read(self, offset: int) -> Iterator[tuple[int, bytes]]:
        """What is there."""
        yield from list(enumerate(self.values))[offset:]

    is_connected: bool = True

    def last(self) -> bytes | None:
        """The last of them."""
        return self.values[-1] if self.values else None

    def publish(self, values: list[bytes]) -> None:
        """Write as many as there is room for."""
        self.values += values[: self.room]
        self.times += [self.clock_ms()] * len(values[: self.room])
        self.room -= len(values)
        if self.room < 0:
            raise StopRequested

    def records(self) -> list[tuple[str, Record]]:
        """What is there, as values."""
        return [wire.decode(value) for value in self.values]

    def hellos(self) -> list[Hello]:
        """The hellos."""
        return [record for _, record in self.records() if isinstance(record, Hello)]


@dataclass(slots=True)
class Life:
    """A replica through crashes and restores, and its topic."""

    replica: Replica
    topic: Topic = field(default_factory=Topic)
    ids: Iterator[int] = field(default_factory=lambda: count(1))
    bound: JournalBound = JOURNAL_BOUND

    def write(self, times: int = 1) -> None:
        """Commit so many changes."""
        for _ in range(times):
            self.replica.client.execute("INSERT INTO items (id) VALUES (?)", (next(self.ids),))

    def write_group(self, changes: int = 3) -> None:
        """Commit changes in one transaction."""
        with transaction(self.replica.client):
            self.write(changes)

    def run(self, room: int = 10**6) -> None:
        """Run an agent until all is published, or until it is killed after `room` records."""
        self.topic.room = room
        with closing(self.replica.store(self.bound)) as store:
            agent = Agent(RID, store, self.topic, None, clock_ms=self.topic.clock_ms)
            try:
                agent.start()
                while agent.publish():
                    pass
            except StopRequested:
                pass

    def jump(self, ahead_s: int) -> None:
        """Go on behind a CSN that is so far ahead, as the generator does of a clock that was."""
        self.replica.client.execute(
            "UPDATE _slackwater_origin SET time_s = ?1, sequence = 0 WHERE time_s < ?1",
            (now_s() + ahead_s,),
        )

    def backup(self, path: Path) -> None:
        """Copy the database."""
        path.unlink(missing_ok=True)
        with closing(sqlite3.connect(path)) as copy:
            self.replica.client.backup(copy)

    def restore(self, path: Path) -> None:
        """Put a copy back."""
        self.replica.client.close()
        for name in (f"{self.replica.path}-wal", f"{self.replica.path}-shm"):
            Path(name).unlink(missing_ok=True)
        shutil.copy(path, self.replica.path)
        client = sqlite3.connect(self.replica.path, isolation_level=None)
        self.replica = replace(self.replica, client=client)

    def csns(self) -> list[str]:
        """The CSNs of the changes in the topic, in its order, repeats left out."""
        changes = [r.csn for _, r in self.topic.records() if isinstance(r, Change)]
        return list(dict.fromkeys(changes))

    def opnos(self) -> list[int | None]:
        """The opnos of the changes in the topic, in its order, repeats left out."""
        opnos = {r.csn: r.opno for _, r in self.topic.records() if isinstance(r, Change)}
        return list(opnos.values())


def now_s() -> int:
    """The right time."""
    return wall_ms() // 1_000


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    """A replica that has published nothing yet."""
    lived = Life(make(tmp_path / "r.db", {CREATE_ITEMS: ITEMS}))
    yield lived
    lived.replica.client.close()


def test_the_first_hello_stands_first(life: Life) -> None:
    """The hub quarantines what precedes a hello."""
    life.write(2)
    life.run()

    sessions = {session for session, _ in life.topic.records()}
    assert len(sessions) == 1
    assert isinstance(life.topic.records()[0][1], Hello)
    assert life.topic.hellos()[0].own is None
    assert [record for _, record in life.topic.records()[1:]] == life.replica.changes()


def test_every_session_is_a_new_one(life: Life) -> None:
    """A hello of a known session is a duplicate."""
    life.run()
    life.run()

    assert len({session for session, _ in life.topic.records()}) == 2


def test_a_restart_reports_what_it_has_and_publishes_the_rest(life: Life) -> None:
    """A crash while Kafka was away loses nothing."""
    life.write(3)
    life.run()
    life.write(2)
    life.run()

    second = life.topic.hellos()[1]
    assert (second.own, second.lost) == (life.csns()[2], False)
    assert life.csns() == [change.csn for change in life.replica.changes()]


@pytest.mark.parametrize("room", range(9))
def test_a_crash_between_acknowledgement_and_mark_repeats_nothing_and_loses_nothing(
    life: Life, room: int
) -> None:
    """What the topic has of the journal counts as published."""
    life.write(2)
    life.write_group()
    life.write()

    life.run(room)
    life.run()

    changes = [r for _, r in life.topic.records() if isinstance(r, Change)]
    assert changes == life.replica.changes()
    assert not any(hello.lost for hello in life.topic.hellos())


@pytest.mark.parametrize("room", range(2, 6))
def test_a_transaction_that_was_cut_off_is_finished_before_the_hello(life: Life, room: int) -> None:
    """A hello aborts what is pending, but this transaction is committed here."""
    life.write_group(4)
    life.run(room)
    life.run()

    records = life.topic.records()
    last_hello = max(i for i, (_, r) in enumerate(records) if isinstance(r, Hello))
    grouped = [(i, s) for i, (s, r) in enumerate(records) if isinstance(r, Change | Commit)]
    assert len(grouped) == 5
    assert all(i < last_hello and session == records[0][0] for i, session in grouped)


def test_a_restored_database_reports_what_it_lost(
    life: Life, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """`own`: up to there it has everything; generator, epoch and opno move past the topic."""
    life.write(3)
    life.run()
    life.backup(tmp_path / "backup.db")
    life.write(2)
    life.run()
    session = life.topic.records()[-1][0]
    life.topic.values.append(wire.encode(session, Heartbeat(8)))

    life.restore(tmp_path / "backup.db")
    life.run()
    life.write()
    life.run()

    hello = life.topic.hellos()[2]
    (line,) = [one for one in caplog.messages if "older copy" in one]
    assert (hello.own, hello.lost) == (life.csns()[2], True)
    assert line.startswith("the database lacks 2 changes that it published, the first of 20")
    assert "\n" not in line
    assert life.csns() == sorted(life.csns())
    assert life.opnos() == [1, 2, 3, 4, 5, 6]
    assert life.replica.changes()[-1].epoch == 9


def test_a_transaction_that_was_named_like_a_lost_one_is_published_whole(
    life: Life, tmp_path: Path
) -> None:
    """A restored database that writes in the second of what it lost names it alike."""
    life.replica.client.execute("UPDATE _slackwater_origin SET time_s = time_s + 1000")
    life.backup(tmp_path / "backup.db")
    life.write_group(1)
    life.run()

    life.restore(tmp_path / "backup.db")
    life.write_group(2)
    life.run()

    (lost, *kept), *other = (
        [r for _, r in group if isinstance(r, Change)]
        for is_hello, group in groupby(life.topic.records(), lambda r: isinstance(r[1], Hello))
        if not is_hello
    )
    assert not kept
    assert [[r.key for r in changes] for changes in other] == [['{"id":"2"}', '{"id":"3"}']]
    assert {r.prim_csn for r in other[0]} == {other[0][0].csn} != {lost.prim_csn}


def test_a_loss_is_reported_once(life: Life, tmp_path: Path) -> None:
    """The hub gives back what was lost; a second report would give it back again."""
    life.run()
    life.backup(tmp_path / "backup.db")
    life.write(2)
    life.run()

    life.restore(tmp_path / "backup.db")
    life.run()
    life.run()

    assert [hello.lost for hello in life.topic.hellos()] == [False, False, True, False]
    assert [hello.own for hello in life.topic.hellos()] == [None, None, None, life.csns()[1]]


def test_a_backup_that_is_put_back_again_is_noticed_again(
    life: Life, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The hub keeps what was reported; the operator wants to know all the same."""
    life.run()
    life.backup(tmp_path / "backup.db")
    life.write(2)
    life.run()
    life.restore(tmp_path / "backup.db")
    life.run()
    life.restore(tmp_path / "backup.db")
    life.run()
    life.run()

    assert [hello.lost for hello in life.topic.hellos()] == [False, False, True, False, False]
    lines = [one for one in caplog.messages if "older copy" in one]
    assert len(lines) == 2
    assert lines[0] == lines[1]


def test_a_loss_that_was_reported_just_before_a_crash_is_not_reported_again(
    life: Life, tmp_path: Path
) -> None:
    """The hello in the topic shows that it was."""
    life.run()
    life.backup(tmp_path / "backup.db")
    life.write(2)
    life.run()

    life.restore(tmp_path / "backup.db")
    life.run(room=0)
    life.run()
    life.restore(tmp_path / "backup.db")
    life.run()

    assert [hello.lost for hello in life.topic.hellos()] == [False, False, True, False]


def test_what_was_written_before_the_agent_started_stands_above_what_was_lost(
    life: Life, tmp_path: Path
) -> None:
    """Its CSNs and opnos are taken, so it gets new ones; nobody has seen the old."""
    life.write(2)
    life.run()
    life.backup(tmp_path / "backup.db")
    life.write(4)
    life.run()

    life.restore(tmp_path / "backup.db")
    life.write()
    life.write_group(2)
    life.run()

    hello = life.topic.hellos()[-1]
    assert (hello.own, hello.lost) == (life.csns()[1], True)
    assert life.csns() == sorted(life.csns())
    assert life.opnos() == list(range(1, 10))
    single, first, second = [r for _, r in life.topic.records() if isinstance(r, Change)][-3:]
    assert single.prim_csn is None
    assert first.prim_csn == second.prim_csn == first.csn
    assert life.topic.records()[-1][1] == Commit(first.csn)


@pytest.mark.parametrize("room", [3, 4])
def test_a_torn_transaction_is_published_anew(life: Life, tmp_path: Path, room: int) -> None:
    """Its rest had other numbers in the topic than the restored database has for it.

    The first run ends within it; the second gives the rest numbers of a clock that was corrected.
    """
    life.write_group(4)
    life.run(room)
    life.jump(30 * 3_600)
    life.write()
    life.backup(tmp_path / "backup.db")
    life.topic.ahead_s = 10
    life.run(room=2)

    life.restore(tmp_path / "backup.db")
    life.run()

    hello = max(n for n, (_, r) in enumerate(life.topic.records()) if isinstance(r, Hello))
    *rows, commit, single = [r for _, r in life.topic.records()[hello + 1 :]]
    group = [r for r in rows if isinstance(r, Change)]
    assert [r.key for r in group] == [f'{{"id":"{n}"}}' for n in range(1, 5)]
    assert {r.prim_csn for r in group} == {group[0].csn}
    assert commit == Commit(group[0].csn)
    assert isinstance(single, Change)
    assert life.opnos() == list(range(1, len(life.opnos()) + 1))
    assert life.csns() == sorted(life.csns())


def test_the_rest_of_a_transaction_that_is_lost_in_part_is_one_of_its_own(
    life: Life, tmp_path: Path
) -> None:
    """The hub has committed the one of which it would take the name."""
    life.write_group(3)
    life.run(room=3)
    life.jump(30 * 3_600)
    life.write()
    life.backup(tmp_path / "backup.db")
    life.topic.ahead_s = 10
    life.run()

    life.restore(tmp_path / "backup.db")
    life.run()

    assert life.topic.hellos()[-1].lost
    rest, commit, single = [r for _, r in life.topic.records()[-3:]]
    assert isinstance(rest, Change)
    assert isinstance(single, Change)
    assert rest.prim_csn == rest.csn
    assert commit == Commit(rest.csn)


def test_a_csn_that_was_given_twice_is_found_by_its_content(life: Life, tmp_path: Path) -> None:
    """A restored generator may give the same CSN again."""
    life.run()
    life.backup(tmp_path / "backup.db")
    life.write()
    life.run()
    given_twice = parse(life.csns()[0])

    life.restore(tmp_path / "backup.db")
    life.replica.client.execute(
        "UPDATE _slackwater_origin SET time_s = ?, sequence = ?",
        (given_twice.time_s + 10**6, given_twice.sequence - 1),
    )
    life.write()
    life.replica.client.execute(
        "UPDATE _slackwater_journal SET csn = ?", (format_csn(given_twice),)
    )
    life.run()

    assert life.topic.hellos()[-1].lost
    assert len(life.csns()) == 2
    assert life.opnos() == [1, 2]


def test_what_was_aborted_or_not_finished_is_not_lost(life: Life, tmp_path: Path) -> None:
    """The hub never made it part of anything."""
    life.run()
    life.backup(tmp_path / "backup.db")
    life.write_group(3)
    life.run(room=3)

    life.restore(tmp_path / "backup.db")
    life.run()

    hello = life.topic.hellos()[-1]
    assert (hello.own, hello.lost) == (None, False)


def test_what_another_session_said_is_not_lost(life: Life) -> None:
    """The hub has put it into quarantine; its CSN is passed all the same."""
    life.run()
    stray = Change(
        format_csn(CsnParts(2**31, 5, RID, 0)), RID, 3, "items", '{"id":"1"}', Op.INSERT, "{}"
    )
    life.topic.values.append(wire.encode("stray", stray))
    life.topic.values.append(b"not a record")
    life.run()
    life.topic.values.remove(b"not a record")
    life.write()

    assert not life.topic.hellos()[-1].lost
    assert life.replica.changes()[-1].csn > stray.csn


def after_another_hello(life: Life) -> str:
    """Let another agent of this replica start, on a copy of the database; returns its session."""
    life.topic.values.append(wire.encode("another", replace(life.topic.hellos()[0])))
    return "another"


@pytest.mark.parametrize("room", range(1, 9))
def test_what_came_behind_the_hello_of_another_agent_is_published_again(
    life: Life, caplog: pytest.LogCaptureFixture, room: int
) -> None:
    """The hub took none of it, and what is written later waits for it; a crash changes nothing."""
    life.write()
    life.run()
    session = life.topic.records()[0][0]
    after_another_hello(life)
    life.write()
    life.write_group(2)
    late = life.replica.changes()[1:]
    stranded: list[Change | Commit] = [*late, Commit(late[-1].prim_csn or "")]
    life.topic.values += [wire.encode(session, record) for record in stranded]

    life.run(room)
    life.write()
    life.run()

    records = life.topic.records()
    last_hello = max(i for i, (_, r) in enumerate(records) if isinstance(r, Hello))
    mine = [r for s, r in records if s not in (session, "another")]
    taken = [r for r in mine if not isinstance(r, Hello | Goodbye)]
    assert [*dict.fromkeys(taken)] == [*stranded, life.replica.changes()[-1]]
    assert all(session == records[last_hello][0] for session, _ in records[last_hello:])
    assert caplog.text.count("4 records of this database came after the hello of another") in (1, 2)
    assert not any(hello.lost for hello in life.topic.hellos())


def test_what_another_database_published_is_not_published_again(life: Life) -> None:
    """Only what this one has is its own; the hub has put the rest into quarantine."""
    life.write()
    life.run()
    session = life.topic.records()[0][0]
    after_another_hello(life)
    csn = format_csn(CsnParts(2**31, 5, RID, 0))
    stray = Change(csn, RID, 3, "items", '{"id":"9"}', Op.INSERT, '{"id":"9"}')
    life.topic.values += [wire.encode(session, stray), wire.encode(session, Commit(csn))]

    life.run()

    assert [r for _, r in life.topic.records()].count(stray) == 1
    assert isinstance(life.topic.records()[-1][1], Hello)


def test_a_new_database_under_an_old_name_lost_everything(life: Life, tmp_path: Path) -> None:
    """It starts at covers 0 and is given back what its forerunner wrote."""
    life.write(3)
    life.run()
    again = replace(life, replica=make(tmp_path / "new.db", {CREATE_ITEMS: ITEMS}))

    again.run()
    again.write()
    again.run()

    hello = life.topic.hellos()[1]
    assert (hello.own, hello.lost, hello.covers) == (None, True, 0)
    assert again.opnos() == [1, 2, 3, 4]
    again.replica.client.close()


SHORT = JournalBound(kept=1, step=1)
"""A journal that is trimmed of nearly everything that is published."""


def test_a_journal_is_trimmed_of_what_is_published(life: Life) -> None:
    """The database would grow by every write that was ever made."""
    life.bound = JournalBound(kept=20, step=50)
    for _ in range(5):
        life.write(100)
        life.run()

    (rows,) = life.replica.client.execute("SELECT count(*) FROM _slackwater_journal").fetchone()
    assert rows <= 20 + 50
    assert life.opnos() == list(range(1, 501))
    assert [hello.own for hello in life.topic.hellos()[1:]] == life.csns()[99:499:100]
    assert not any(hello.lost for hello in life.topic.hellos())


def test_what_was_trimmed_is_not_published_again(life: Life) -> None:
    """Nothing is, so that no hole comes into the replica's own changes."""
    life.bound = SHORT
    life.write(5)
    life.run()

    with closing(life.replica.store(life.bound)) as store:
        assert not store.publish_again(life.csns()[0])
        assert store.unpublished(10, 10**6) == []
        assert store.publish_again(life.csns()[-1])


def test_a_trimmed_database_that_is_restored_reports_what_it_lost(
    life: Life, tmp_path: Path
) -> None:
    """It has what was trimmed before the backup, and nothing of what was written after it."""
    life.bound = SHORT
    life.write(3)
    life.run()
    life.backup(tmp_path / "backup.db")
    life.write(2)
    life.run()

    life.restore(tmp_path / "backup.db")
    life.write()
    life.run()

    hello = life.topic.hellos()[-1]
    assert (hello.own, hello.lost) == (life.csns()[2], True)
    assert life.opnos() == [1, 2, 3, 4, 5, 6]


def test_a_topic_that_is_read_from_its_beginning_again_shows_no_loss(life: Life) -> None:
    """What was trimmed was in the database, whatever offset the comparison starts from."""
    life.bound = SHORT
    life.write(3)
    life.run()
    life.replica.client.execute("UPDATE _slackwater_position SET changes_offset = 0, own = NULL")

    life.run()

    assert (life.topic.hellos()[-1].own, life.topic.hellos()[-1].lost) == (life.csns()[2], False)


class Lives(RuleBasedStateMachine):
    """Any sequence of writes, runs that are killed, backups and restores."""

    bound = JOURNAL_BOUND

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(mkdtemp())
        self.life = Life(make(self.folder / "r.db", {CREATE_ITEMS: ITEMS}), bound=self.bound)
        self.has_backup = False
        self.restores = 0

    def teardown(self) -> None:
        """Remove the files."""
        self.life.replica.client.close()
        shutil.rmtree(self.folder)

    @rule(times=st.integers(1, 3))
    def write(self, times: int) -> None:
        """Single changes."""
        self.life.write(times)

    @rule(changes=st.integers(1, 3))
    def write_group(self, changes: int) -> None:
        """One transaction."""
        self.life.write_group(changes)

    @rule(room=st.integers(0, 8))
    def run_and_kill(self, room: int) -> None:
        """An agent that is killed at any record."""
        self.life.run(room)

    @rule()
    def run(self) -> None:
        """An agent that says all there is."""
        self.life.run()

    @rule(hours=st.sampled_from([1, 30, 60]))
    def write_by_a_clock_ahead(self, hours: int) -> None:
        """What is written from now on goes on behind what a clock ahead gave."""
        self.life.jump(hours * 3_600)
        self.life.write()

    @rule(hours=st.sampled_from([0, 0, 30, -30]))
    def set_the_clock(self, hours: int) -> None:
        """The agent's machine has another time, by which its records are dated."""
        self.life.topic.ahead_s = hours * 3_600

    @rule()
    def backup(self) -> None:
        """Keep a copy."""
        self.life.backup(self.folder / "backup.db")
        self.has_backup = True

    @precondition(lambda self: self.has_backup)
    @rule()
    def restore(self) -> None:
        """Put it back."""
        self.life.restore(self.folder / "backup.db")
        self.restores += 1

    @invariant()
    def a_loss_is_reported_only_after_a_restore(self) -> None:
        """And once at most for each."""
        assert sum(hello.lost for hello in self.life.topic.hellos()) <= self.restores

    @invariant()
    def the_topic_is_good(self) -> None:
        """CSNs rise, opnos have no hole, a CSN or opno never means two changes."""
        csns, opnos = self.life.csns(), self.life.opnos()
        assert all(one < other for one, other in pairwise(csns))
        assert opnos == list(range(1, len(opnos) + 1))
        changes = {r for _, r in self.life.topic.records() if isinstance(r, Change)}
        assert len(changes) == len(csns)

    @invariant()
    def the_hub_refuses_no_clock(self) -> None:
        """Nothing is too far ahead of its record's time without going on behind what was taken."""
        largest = ""
        for time_ms, (_, record) in zip(
            self.life.topic.times, self.life.topic.records(), strict=True
        ):
            if isinstance(record, Change):
                assert not is_skewed(record.csn, largest, time_ms, MAX_SKEW_S)
                largest = max(largest, record.csn)

    @invariant()
    def no_transaction_is_torn(self) -> None:
        """Between two hellos, a transaction that has a commit has all its changes.

        A restored database may give the name of a lost transaction to another one, until its
        agent starts: nothing of that one is in the topic.
        """
        published = {r for _, r in self.life.topic.records() if isinstance(r, Change)}
        open_prims = dict[str, set[Change]]()
        committed = dict[str, set[Change]]()
        for _, record in self.life.topic.records():
            match record:
                case Hello():
                    open_prims.clear()
                case Change(prim_csn=str(prim)):
                    open_prims.setdefault(prim, set()).add(record)
                case Commit(prim):
                    committed[prim] = open_prims.pop(prim, set())
                case _:
                    pass
        for prim, told in committed.items():
            changes = {c for c in self.life.replica.changes() if c.prim_csn == prim}
            is_whole = self.bound == JOURNAL_BOUND
            assert not is_whole or published.isdisjoint(changes) or changes <= told


TestLives = Lives.TestCase
TestLives.settings = settings(examples(15, share=15), stateful_step_count=15)


class TrimmedLives(Lives):
    """The same with a journal that keeps next to nothing."""

    bound = SHORT


TestTrimmedLives = TrimmedLives.TestCase
TestTrimmedLives.settings = settings(examples(15, share=15), stateful_step_count=15)
