"""A DatabaseUnderTest in a database of a real PostgreSQL."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psycopg

from connectors.agent.attaching import ReplicaPlace
from connectors.agent.contract import ReplicaStore, StoreBusyError
from connectors.postgres.install.attach import attach
from connectors.postgres.names import local_origin, server_name
from connectors.postgres.store import PostgresStore
from tests.connectors.conformance.database_under_test import ITEMS, RID, Row

REPLICA = "replica"


class PostgresDatabase:
    """A database of its own; `close` leaves nothing of it in the server."""

    forgets = True

    def __init__(self, dsn: str) -> None:
        """Make the table in an empty database."""
        self.dsn = dsn
        self._opened: PostgresStore | None = None
        self._is_attached = False
        self.write("CREATE TABLE items (id bigint PRIMARY KEY, name text UNIQUE, price numeric)")

    def store(self) -> ReplicaStore:
        """The database as an agent opens it."""
        if not self._is_attached:
            self.attach()
        if self._opened is not None:
            self._opened.close()
        self._opened = opened(self.dsn)
        return self._opened

    def attach(self) -> None:
        """Make it a replica."""
        with psycopg.connect(self.dsn, autocommit=True) as session:
            attach(session, ReplicaPlace(REPLICA, RID), [ITEMS])
        self._is_attached = True

    def close(self) -> None:
        """Close the store, and drop what is of the whole server."""
        if self._opened is not None:
            self._opened.close()
        if self._is_attached:
            with psycopg.connect(self.dsn, autocommit=True) as session:
                name = server_name(session.info.dbname, REPLICA)
                session.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
                for _ in range(200):
                    try:
                        session.execute(
                            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
                            " WHERE slot_name = %s",
                            (name,),
                        )
                        for origin in (name, local_origin(name)):
                            session.execute(
                                "SELECT pg_replication_origin_drop(roname)"
                                " FROM pg_replication_origin WHERE roname = %s",
                                (origin,),
                            )
                        break
                    except psycopg.errors.ObjectInUse:
                        session.execute("SELECT pg_sleep(0.02)")

    def write(self, *statements: str) -> None:
        """Run statements of a client, each as a transaction of its own."""
        with psycopg.connect(self.dsn, autocommit=True) as client:
            for statement in statements:
                client.execute(statement.encode())

    def write_together(self, *statements: str) -> None:
        """Run statements of a client in one transaction."""
        with psycopg.connect(self.dsn) as client:
            for statement in statements:
                client.execute(statement.encode())

    def write_here(self, *statements: str) -> None:
        """Run statements of a client in one transaction, whose writes stay in the database."""
        with psycopg.connect(self.dsn) as client:
            name = local_origin(server_name(client.info.dbname, REPLICA))
            client.execute("SELECT pg_replication_origin_session_setup(%s)", (name,))
            for statement in statements:
                client.execute(statement.encode())

    def roll_back(self, statement: str) -> None:
        """Run a statement of a client in a transaction that is rolled back."""
        with psycopg.connect(self.dsn) as client:
            client.execute(statement.encode())
            client.rollback()

    def truncate(self) -> None:
        """Empty the table as one change."""
        self.write("TRUNCATE items")

    @contextmanager
    def holding(self, statement: str) -> Iterator[None]:
        """A client's transaction that has run this statement, committed at the end."""
        with psycopg.connect(self.dsn) as client:
            client.execute(statement.encode())
            yield

    def rows(self) -> Sequence[Row]:
        """The rows by id."""
        with psycopg.connect(self.dsn) as client:
            query = "SELECT id, name, price::text FROM items ORDER BY id"
            return client.execute(query).fetchall()


def opened(dsn: str, **options: int) -> PostgresStore:
    """The store, once the backends of the one before have ended."""
    for _ in range(200):
        try:
            return PostgresStore.open(dsn, REPLICA, [ITEMS], **options)
        except StoreBusyError:
            time.sleep(0.05)
    return PostgresStore.open(dsn, REPLICA, [ITEMS], **options)
