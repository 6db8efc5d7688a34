"""The log of a real server as transactions: whose each is, and what it wrote, in order."""

import time
from collections.abc import Iterator

import psycopg
import pytest

from connectors.postgres.log.pgoutput import MessageError
from connectors.postgres.log.transactions import (
    Assembler,
    LogTransaction,
    Row,
    RowWrite,
    TableTruncate,
    Whose,
)
from connectors.postgres.messages import EpochMessage, encode
from tests.connectors.postgres.log_reading import read_log
from tests.connectors.postgres.test_pgoutput import SAMPLES

TABLES = (
    "CREATE TABLE item (id int PRIMARY KEY, name text, large text)",
    "ALTER TABLE item ALTER large SET STORAGE EXTERNAL",
    "ALTER TABLE item REPLICA IDENTITY FULL",
    "CREATE TABLE keyed (id int PRIMARY KEY, name text)",
    "CREATE TABLE part (id int PRIMARY KEY, item int REFERENCES item ON DELETE CASCADE)",
    "ALTER TABLE part REPLICA IDENTITY FULL",
    "CREATE PUBLICATION p FOR TABLE item, keyed, part",
    "SELECT pg_create_logical_replication_slot(current_database() || '_log', 'pgoutput')",
)
OWN, USERS = "_own", "_users"
EPOCH = encode(EpochMessage(7))
LARGE = "x" * 9000


class Site:
    """A database whose tables are published."""

    def __init__(self, client: psycopg.Connection) -> None:
        self.client = client
        for statement in TABLES:
            client.execute(statement.encode())
        (self.name,) = client.execute("SELECT current_database()").fetchone() or ("",)
        for origin in (OWN, USERS):
            client.execute("SELECT pg_replication_origin_create(%s)", (self.name + origin,))

    def write(self, *statements: str, origin: str | None = None) -> None:
        """One transaction of these statements, in a session of the origin."""
        if origin:
            setup = "SELECT pg_replication_origin_session_setup(%s)"
            self.client.execute(setup, (self.name + origin,))
        with self.client.transaction():
            for statement in statements:
                self.client.execute(statement.encode())
        if origin:
            self.client.execute("SELECT pg_replication_origin_session_reset()")

    def read(self) -> list[LogTransaction]:
        """The transactions that nobody has read yet, of one connection."""
        assembler = Assembler(self.name + OWN)
        found = [assembler.add(data) for data in read_log(self.client, f"{self.name}_log")]
        return [one for one in found if one is not None]


@pytest.fixture
def site(dsn: str) -> Iterator[Site]:
    """A database whose slot is dropped with the test, for slots are the server's."""
    with psycopg.connect(dsn, autocommit=True) as client:
        yield Site(client)
        client.execute("SELECT pg_drop_replication_slot(current_database() || '_log')")


def message(content: str) -> str:
    """The statement that writes a message of the agent."""
    return f"SELECT pg_logical_emit_message(true, 'slackwater', '{content}')"


@pytest.mark.postgres15
def test_whose_a_transaction_is(site: Site) -> None:
    """A forged message counts nothing, and rows of the own origin are those of the hub."""
    forged = message("forged")
    site.write("INSERT INTO item VALUES (1)", message(EPOCH), origin=OWN)
    site.write("INSERT INTO item VALUES (2)", forged)
    site.write("INSERT INTO item VALUES (3)", forged, origin=USERS)

    own, local, other = site.read()

    assert (own.whose, own.writes, own.messages) == (Whose.OWN, (), (EpochMessage(7),))
    assert [new for *_, new in told(local)] == [{"id": "2", "name": None, "large": None}]
    assert [new for *_, new in told(other)] == [{"id": "3", "name": None, "large": None}]
    assert (local.whose, other.whose) == (Whose.LOCAL, Whose.OTHER)
    assert local.messages == other.messages == ()
    ends = [one.end_lsn or 0 for one in (own, local, other)]
    assert 0 < ends[0] < ends[1] < ends[2]
    assert [one.lsn < end for one, end in zip((own, local, other), ends, strict=True)] == [True] * 3
    assert local.commit_s == pytest.approx(time.time(), abs=600)


def told(transaction: LogTransaction) -> list[tuple[str, Row | None, Row | None]]:
    """Its row writes: the table, the row before and the row after."""
    rows = (one for one in transaction.writes if isinstance(one, RowWrite))
    return [(one.relation.name, one.old, one.new) for one in rows]


@pytest.mark.postgres15
def test_what_was_left_unchanged_is_filled_from_the_old_row(site: Site) -> None:
    """The log leaves a large value out, which is not its removal."""
    site.write(f"INSERT INTO item VALUES (1, 'a', '{LARGE}')")
    site.write("UPDATE item SET name = 'b'")

    _, update = site.read()

    old = {"id": "1", "name": "a", "large": LARGE}
    assert told(update) == [("item", old, {**old, "name": "b"})]


@pytest.mark.postgres15
def test_of_a_row_without_its_old_image_the_key_alone_is_known(site: Site) -> None:
    """A null in the key's tuple stands for a column that was not logged."""
    site.write("INSERT INTO keyed VALUES (1, 'a')")
    site.write("UPDATE keyed SET name = 'b'", "UPDATE keyed SET id = 2", "DELETE FROM keyed")

    _, writes = site.read()

    assert told(writes) == [
        ("keyed", {"id": "1"}, {"id": "1", "name": "b"}),
        ("keyed", {"id": "1"}, {"id": "2", "name": "b"}),
        ("keyed", {"id": "2"}, None),
    ]


@pytest.mark.postgres15
def test_cascades_and_truncates_are_of_the_transaction(site: Site) -> None:
    """What a foreign key deletes is a write, and every table of a TRUNCATE is emptied."""
    site.write("INSERT INTO item VALUES (1)", "INSERT INTO part VALUES (5, 1)")
    site.write("DELETE FROM item")
    site.write("TRUNCATE item CASCADE")

    _, deletes, truncate = site.read()

    assert [(table, new) for table, _, new in told(deletes)] == [("item", None), ("part", None)]
    emptied = [one for one in truncate.writes if isinstance(one, TableTruncate)]
    assert {one.relation.name for one in emptied} == {"item", "part"}
    assert told(truncate) == []


@pytest.mark.postgres15
def test_a_transaction_is_what_committed_of_it_when_it_committed(site: Site) -> None:
    """What a savepoint rolled back is absent; a prepared one comes at COMMIT PREPARED."""
    site.write(
        "INSERT INTO item VALUES (1)",
        "SAVEPOINT s",
        "INSERT INTO item VALUES (2)",
        "ROLLBACK TO s",
        "INSERT INTO item VALUES (3)",
    )
    for statement in ("BEGIN", "INSERT INTO item VALUES (4)", f"PREPARE TRANSACTION '{site.name}'"):
        site.client.execute(statement.encode())
    site.write("INSERT INTO item VALUES (5)")
    site.client.execute(f"COMMIT PREPARED '{site.name}'".encode())

    written = [[(new or {})["id"] for *_, new in told(each)] for each in site.read()]

    assert written == [["1", "3"], ["5"], ["4"]]


@pytest.mark.postgres15
def test_a_large_transaction_comes_in_parts(site: Site) -> None:
    """It may be larger than the memory; the last part alone says where it ends."""
    site.write("INSERT INTO item SELECT generate_series(1, 5)", "INSERT INTO part VALUES (7, 1)")
    site.write("INSERT INTO item VALUES (6)")
    assembler = Assembler(site.name + OWN, part_writes=2)

    read = [assembler.add(data) for data in read_log(site.client, f"{site.name}_log")]

    *large, small = (one for one in read if one is not None)
    written = [[(new or {})["id"] for *_, new in told(part)] for part in large]
    assert written == [["1", "2"], ["3", "4"], ["5", "7"], []]
    assert [part.end_lsn is None for part in large] == [True, True, True, False]
    assert len({(part.lsn, part.commit_s, part.whose) for part in large}) == 1
    assert large[-1].end_lsn is not None
    assert large[0].lsn < large[-1].end_lsn <= small.lsn


@pytest.mark.postgres15
def test_rows_that_stay_are_counted_by_table(site: Site) -> None:
    """None of them is told; a truncate counts as one of each of its tables."""
    tables = "SELECT relname, oid::int FROM pg_class WHERE relkind = 'r'"
    oids: dict[str, int] = dict(site.client.execute(tables).fetchall())
    site.write(
        "INSERT INTO item SELECT generate_series(1, 5)",
        "UPDATE item SET name = 'x' WHERE id < 3",
        "DELETE FROM item WHERE id = 5",
        "INSERT INTO keyed VALUES (1)",
        "TRUNCATE keyed, part",
        origin=USERS,
    )
    site.write("INSERT INTO keyed VALUES (2)")
    assembler = Assembler(site.name + OWN, site.name + USERS, part_writes=2)

    read = [assembler.add(data) for data in read_log(site.client, f"{site.name}_log")]

    stays, local = (one for one in read if one is not None)
    counts = {"item": 8, "keyed": 2, "part": 1}
    assert (stays.whose, stays.writes) == (Whose.STAYS, ())
    assert stays.staying == {oids[name]: count for name, count in counts.items()}
    assert (local.whose, len(local.writes), local.staying) == (Whose.LOCAL, 1, {})


@pytest.mark.parametrize("kinds", ["C", "BI", "BRI"])
def test_messages_out_of_order_are_an_error(kinds: str) -> None:
    """A transaction without its begin would be told without what stood before."""
    *before, last = (next(one for one in SAMPLES if one[:1] == kind.encode()) for kind in kinds)
    assembler = Assembler("own")
    for one in before:
        assembler.add(one)

    with pytest.raises(MessageError, match="the log"):
        assembler.add(last)
