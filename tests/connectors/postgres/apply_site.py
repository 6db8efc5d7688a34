"""A database of PostgreSQL in which batches of a hub are applied."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import psycopg

from connectors.agent.contract import AppliedBatch
from connectors.postgres.apply.batch import apply_batch
from connectors.postgres.apply.lock_wait import LockWait
from connectors.postgres.apply.rows import RowWriter, writers
from connectors.postgres.install.system import (
    StoredPosition,
    create,
    read_position,
    write_position,
)
from connectors.postgres.messages import OwnMessage, decode
from connectors.postgres.sql import Session
from streaming.core.delivery.consumer import ApplyBatch, Position
from streaming.core.model.change import Op
from streaming.core.model.ruv import Ruv
from streaming.core.model.table import ColumnType, Table
from streaming.core.records.record import Item, ItemType, RangeItem, Refused

CLOCK_S = 1_800_000_000
CSN = f"{CLOCK_S:08x}000500020000"
RUV = Ruv("5f00").with_csn(CSN)
ITEMS = Table(
    "items",
    ("id",),
    {"id": ColumnType.INT64, "name": ColumnType.TEXT, "price": ColumnType.DECIMAL},
)
CREATE_ITEMS = "CREATE TABLE items (id bigint PRIMARY KEY, name text UNIQUE, price numeric)"


def item(id_: int, name: str | None = None, *, price: str | None = None) -> Item:
    """A whole row of `items` that replica 2 wrote."""
    texts = ("null" if one is None else f'"{one}"' for one in (name, price))
    image = '{{"id":"{}","name":{},"price":{}}}'.format(id_, *texts)
    return Item(ItemType.CHANGE, "items", f'{{"id":"{id_}"}}', Op.UPDATE, image, CSN, 2)


def row(table: str, key: str, after: str | None) -> Item:
    """A row of any table; None: its delete."""
    op = Op.DELETE if after is None else Op.UPDATE
    return Item(ItemType.CHANGE, table, key, op, after, CSN, 2)


def delete(id_: int) -> Item:
    """A delete of a row of `items`."""
    return row("items", f'{{"id":"{id_}"}}', None)


@dataclass(slots=True)
class ApplySite:
    """A replica of these tables; `origin`: the name of its replication origin."""

    dsn: str
    tables: Sequence[Table]
    session: Session
    origin: str
    lock_wait: LockWait = field(default_factory=LockWait)

    @property
    def writers(self) -> dict[str, RowWriter]:
        """As the agent has them when it starts."""
        return writers(self.session, self.tables)

    def apply(self, *items: Item | RangeItem) -> AppliedBatch:
        """Apply the next batch."""
        return self.apply_behind(read_position(self.session), *items)

    def apply_behind(self, before: StoredPosition, *items: Item | RangeItem) -> AppliedBatch:
        """Apply a batch behind this position, which the agent stored last."""
        hub_epoch = before.position.covers + 1
        position = Position("s1", hub_epoch, hub_epoch, 0, RUV, 1, hub_epoch, "a")
        batch = ApplyBatch(position, hub_epoch, items)
        return apply_batch(
            self.session,
            self.writers,
            batch,
            hub_epoch + 10,
            CLOCK_S * 1000,
            before,
            self.lock_wait,
        )

    def refused(self, *items: Item | RangeItem) -> tuple[Refused, ...]:
        """Apply the next batch, and return what was refused."""
        return self.apply(*items).refused

    def write(self, *statements: str) -> None:
        """Write as a user does, each statement in a transaction of its own."""
        with psycopg.connect(self.dsn, autocommit=True) as user:
            for statement in statements:
                user.execute(statement.encode())

    def rows(self, query: str = "SELECT * FROM items ORDER BY id") -> list[tuple[object, ...]]:
        """What a user sees, as text."""
        with psycopg.connect(self.dsn, autocommit=True) as user:
            return [
                tuple(None if one is None else str(one) for one in found)
                for found in user.execute(query.encode()).fetchall()
            ]

    def messages(self) -> list[OwnMessage]:
        """The agent's messages in the log."""
        with psycopg.connect(self.dsn, autocommit=True) as user:
            # a commit that is flushed: only what is flushed is decoded
            user.execute("SELECT pg_logical_emit_message(true, 'other', '')")
            found = user.execute(
                "SELECT data FROM pg_logical_slot_peek_changes(%s, NULL, NULL)"
                " WHERE data LIKE 'message: transactional: 1 prefix: slackwater,%%'",
                (self.origin,),
            ).fetchall()
        contents = (data.partition("content:")[2] for (data,) in found)
        return [decode(content) for content in contents]

    def stored(self) -> StoredPosition:
        """The position row."""
        with psycopg.connect(self.dsn, autocommit=True) as user:
            return read_position(user)


def made(dsn: str, session: Session, tables: Iterable[Table], *statements: str) -> ApplySite:
    """A replica whose tables these statements create."""
    for statement in statements:
        session.execute(statement.encode())
    create(session)
    write_position(session, replace(StoredPosition(1), position=Position("s1", agreement="a")))
    (database,) = session.execute("SELECT current_database()").fetchone() or ("",)
    origin = f"slackwater_{database}_1"
    session.execute("SELECT pg_replication_origin_create(%s)", (origin,))
    session.execute("SELECT pg_replication_origin_session_setup(%s)", (origin,))
    session.execute("SELECT pg_create_logical_replication_slot(%s, 'test_decoding')", (origin,))
    return ApplySite(dsn, tuple(tables), session, origin)
