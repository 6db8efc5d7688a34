"""The whole log of an attached PostgreSQL database, read a second time beside its agent.

The server forgets what the agent has published, so a slot of the demonstration's own keeps the log
from before the first write. It is only looked at, and never moved.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from connectors.agent.contract import JournalEntry
from connectors.postgres.install.system import Capture, read_capture
from connectors.postgres.log.captured import TableCapture
from connectors.postgres.log.checkpoint import checkpoint_of
from connectors.postgres.log.fold import AS_LOGGED, numbered
from connectors.postgres.log.numbering import parse_numbering
from connectors.postgres.log.pgoutput import Begin, parse
from connectors.postgres.log.transactions import Assembler
from connectors.postgres.names import PUBLICATION, server_name
from connectors.postgres.schema.catalog import read_table
from connectors.postgres.sql import Session
from streaming.core.model.table import Table

SLOT = "demonstration"


@dataclass(frozen=True, slots=True)
class LoggedEntry:
    """An entry of the journal that the log is, and when its transaction was committed."""

    entry: JournalEntry
    at_ms: int


def keep(connection: Session) -> None:
    """Keep the log from here on: nothing of the replica was written yet."""
    connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (SLOT,))


def read_all(
    connection: Session, replica: str, rid: int, tables: Mapping[str, Table]
) -> list[LoggedEntry]:
    """All entries since `keep`, numbered by the log alone as the agent numbers them."""
    by_oid = {read_table(connection, name).oid: table for name, table in tables.items()}
    captures = TableCapture(by_oid)
    capture = read_capture(connection)
    numbering = AS_LOGGED if capture is None else parse_numbering(capture.numbering, rid)
    state = checkpoint_of(Capture("", 0, "", "0/0"), rid).state
    assembler = Assembler(server_name(connection.info.dbname, replica))
    found, at_ms = list[LoggedEntry](), 0
    for (data,) in connection.execute(
        "SELECT data FROM pg_logical_slot_peek_binary_changes(%s, NULL, NULL,"
        " 'proto_version', '1', 'publication_names', %s, 'messages', 'true')",
        (SLOT, PUBLICATION),
    ):
        if data[:1] == b"B" and isinstance(begin := parse(data), Begin):
            at_ms = begin.time_us // 1_000
        transaction = assembler.add(data)
        if transaction is not None:
            entries, state = numbered(state, transaction, captures(transaction), numbering)
            found += (LoggedEntry(entry, at_ms) for entry in entries)
    return found
