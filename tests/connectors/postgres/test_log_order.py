"""The law of the log: who wrote behind an apply overwrote what that left, or something later."""

import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import psycopg
import pytest

from connectors.agent.images import WireImage
from connectors.postgres.log.fold import Captured, FoldState, numbered
from connectors.postgres.log.transactions import (
    Assembler,
    LogTransaction,
    Row,
    RowWrite,
    TableTruncate,
    Whose,
)
from connectors.postgres.messages import PREFIX, AppliedMessage, encode
from streaming.core.model.change import Change, Op
from streaming.core.model.csn import Generator
from streaming.core.model.ruv import NOTHING_KNOWN
from streaming.core.records.record import Applied
from tests.connectors.postgres.log_reading import read_log
from tests.harness.rotation import ROTATION

KEYS = 6
WRITES = (
    "INSERT INTO item VALUES ({key}, {value}) ON CONFLICT (id) DO UPDATE SET v = {value}",
    "UPDATE item SET v = {value} WHERE id = {key}",
    "UPDATE item SET v = {value} WHERE id IN ({key}, {other})",
    "UPDATE item SET id = {other}, v = {value} WHERE id = {key}",
    "DELETE FROM item WHERE id = {key}",
    "INSERT INTO item VALUES ({key}, {value})",
)
LEVELS = ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")
EMPTY = WireImage("{}", "{}")


@dataclass(slots=True)
class Site:
    """A database with the table `item`, a slot and an origin, both of its name."""

    dsn: str
    name: str = ""
    failures: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        with self.client() as client:
            self.name = client.info.dbname
            for statement in (
                "CREATE TABLE item (id int PRIMARY KEY, v bigint, large text)",
                "ALTER TABLE item ALTER large SET STORAGE EXTERNAL",
                "ALTER TABLE item REPLICA IDENTITY FULL",
                "CREATE PUBLICATION p FOR TABLE item",
            ):
                client.execute(statement)
            client.execute("SELECT pg_replication_origin_create(%s)", (self.name,))
            client.execute(
                "SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (self.name,)
            )

    def client(self) -> "psycopg.Connection[tuple[object, ...]]":
        """A client's connection."""
        return psycopg.connect(self.dsn, autocommit=True)

    def messages(self) -> list[bytes]:
        """What the log holds; the slot is dropped, and so is the origin."""
        with self.client() as client:
            found = read_log(client, self.name)
            client.execute("SELECT pg_drop_replication_slot(%s)", (self.name,))
            client.execute("SELECT pg_replication_origin_drop(%s)", (self.name,))
        return found


@pytest.fixture
def site(dsn: str) -> Site:
    """A database to be read."""
    return Site(dsn)


def transactions(messages: Sequence[bytes], origin: str) -> list[LogTransaction]:
    """The transactions of a log, as the agent of this origin reads them."""
    assembler = Assembler(origin)
    return [one for data in messages if (one := assembler.add(data)) is not None]


def write_as_clients(site: Site, seed: str, times: int) -> None:
    """Write the same few rows in transactions of every isolation; some are rolled back."""
    random_ = random.Random(seed)
    with site.client() as client:
        for n in range(times):
            level = random_.choice(LEVELS)
            client.execute(f"BEGIN ISOLATION LEVEL {level}".encode())
            try:
                for _ in range(random_.randint(1, 3)):
                    key, other = random_.randint(1, KEYS), random_.randint(1, KEYS)
                    value = random_.randrange(10**9)
                    text = random_.choice(WRITES).format(key=key, other=other, value=value)
                    client.execute(text.encode())
                client.execute("ROLLBACK" if n % 7 == 0 else "COMMIT")
            except (
                psycopg.errors.UniqueViolation,
                psycopg.errors.SerializationFailure,
                psycopg.errors.DeadlockDetected,
            ):
                client.execute("ROLLBACK")


def apply_as_agent(site: Site, seed: str, times: int) -> None:
    """Write the same rows with the origin, and say so in the log."""
    random_, epoch = random.Random(seed), 1
    with site.client() as agent:
        agent.execute("SET deadlock_timeout = '10s'")
        agent.execute("SET lock_timeout = '300ms'")
        agent.execute("SELECT pg_replication_origin_session_setup(%s)", (site.name,))
        while epoch <= times:
            try:
                with agent.transaction():
                    for key in sorted(random_.sample(range(1, KEYS + 1), 2)):
                        text = WRITES[random_.choice([0, 0, 4])]
                        value = random_.randrange(10**9)
                        agent.execute(text.format(key=key, value=value).encode())
                    message = AppliedMessage(
                        Applied(epoch, epoch, 1, NOTHING_KNOWN, epoch), "s1", (0, 0)
                    )
                    agent.execute(
                        "SELECT pg_logical_emit_message(true, %s, %s)", (PREFIX, encode(message))
                    )
                epoch += 1
            except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
                pass


def check_law(site: Site, seed: int, *, times: int, applies: int) -> None:
    """Each old image is the image before it in the log, and epochs count the applies before."""
    workers = [
        threading.Thread(target=write_as_clients, args=(site, f"{seed} {n}", times))
        for n in range(3)
    ]
    workers.append(threading.Thread(target=apply_as_agent, args=(site, f"{seed} agent", applies)))
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    messages = site.messages()

    rows, own = dict[str, Row](), 0
    for transaction in transactions(messages, "of another agent, so that all rows are read"):
        own += transaction.whose is Whose.OTHER
        for write in transaction.writes:
            assert isinstance(write, RowWrite)
            if write.old is not None:
                assert rows.pop(str(write.old["id"])) == write.old
            if write.new is not None:
                key = str(write.new["id"])
                assert key not in rows
                rows[key] = write.new
    assert own == applies
    with site.client() as client:
        stand = client.execute("SELECT id::text, v::text, large FROM item").fetchall()
    assert {one[0]: one for one in stand} == {k: tuple(row.values()) for k, row in rows.items()}

    state, seen, count = FoldState(Generator(7)), 1, 0
    for transaction in transactions(messages, site.name):
        captured = [Captured("item", Op.UPDATE, EMPTY, EMPTY, EMPTY) for _ in transaction.writes]
        assert transaction.whose is not Whose.OWN or not captured
        entries, state = numbered(state, transaction, captured)
        told = [one.record.epoch for one in entries if isinstance(one.record, Change)]
        assert set(told) <= {seen}
        count += len(told)
        seen += transaction.whose is Whose.OWN
    assert (state.epoch, state.opno) == (applies + 1, count)
    assert count > times


def test_an_old_image_is_the_image_before_it_in_the_log(site: Site) -> None:
    """A few hundred transactions of clients beside an agent that applies."""
    check_law(site, 1, times=80, applies=60)


@pytest.mark.more
def test_the_law_holds_for_thousands_of_transactions(site: Site) -> None:
    """With another seed on each day."""
    check_law(site, ROTATION or 0, times=1_000, applies=600)


def test_what_a_savepoint_takes_back_is_not_there(site: Site) -> None:
    """Nor is what a transaction takes back, nor an empty one."""
    with site.client() as client:
        client.execute("BEGIN")
        client.execute("INSERT INTO item VALUES (1, 1)")
        client.execute("SAVEPOINT s")
        client.execute("INSERT INTO item VALUES (2, 2)")
        client.execute("ROLLBACK TO s")
        client.execute("COMMIT")

    (transaction,) = transactions(site.messages(), site.name)

    assert [one.new for one in transaction.writes if isinstance(one, RowWrite)] == [
        {"id": "1", "v": "1", "large": None}
    ]


def test_a_large_value_that_stays_is_whole_in_the_new_row(site: Site) -> None:
    """The log does not repeat it; the old row has it."""
    with site.client() as client:
        client.execute("INSERT INTO item VALUES (1, 1, repeat('x', 9000))")
        client.execute("UPDATE item SET v = 2")

    _, update = transactions(site.messages(), site.name)

    (write,) = update.writes
    assert isinstance(write, RowWrite)
    assert write.new == {"id": "1", "v": "2", "large": "x" * 9000}


def test_a_message_of_anybody_else_counts_nothing(site: Site) -> None:
    """Every client of a database may write one."""
    forged = encode(AppliedMessage(Applied(9, 9, 1, NOTHING_KNOWN, 9), "s1", (0, 0)))
    with site.client() as client:
        client.execute("SELECT pg_logical_emit_message(true, %s, %s)", (PREFIX, forged))
        client.execute("SELECT pg_logical_emit_message(false, %s, %s)", (PREFIX, forged))
        client.execute("TRUNCATE item")

    read = transactions(site.messages(), site.name)

    assert [(one.whose, one.messages) for one in read] == [(Whose.LOCAL, ())] * 2
    assert isinstance(read[-1].writes[0], TableTruncate)
