"""The stream of the log, by logical replication over psycopg's own wrapper of libpq.

psycopg has no class for it. The source is the manual of PostgreSQL, "Streaming Replication
Protocol": the server sends the log's messages and keepalives, and is told up to where it may forget
what it keeps. Text is written as the agent's settings say, whatever the role's are.
"""

import select
import struct
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field

from psycopg import OperationalError, pq
from psycopg.pq.abc import PGconn

from connectors.agent.contract import StoreBusyError, StoreError, StoreLostError
from connectors.postgres.connection import agent_conninfo
from connectors.postgres.errors import is_lost_state
from connectors.postgres.log.lsn import lsn_text
from connectors.postgres.log.pgoutput import EPOCH_S

_DATA, _KEEPALIVE, _STATUS = (
    struct.Struct("!cQQq"),
    struct.Struct("!cQqB"),
    struct.Struct("!cQQQqB"),
)
_SLOT_IN_USE = b"55006"

FEEDBACK_S = 10.0
"""So often the server hears of the agent, though the agent waits for Kafka or applies a batch.

It ends a connection that is silent for wal_sender_timeout (60 s), and then decodes all anew."""


@dataclass(slots=True)
class LogStream:
    """An open stream; `released`: up to where the server may forget the log.

    `decoded`: everything that was committed before this place has been sent. Every method raises
    StoreError when the connection is lost. A thread of its own keeps the connection alive.
    """

    connection: PGconn
    released: int
    decoded: int = 0
    used: threading.Lock = field(default_factory=threading.Lock, repr=False)
    closed: threading.Event = field(default_factory=threading.Event, repr=False)

    @classmethod
    def open(cls, dsn: str, slot: str, publication: str, lsn: int) -> "LogStream":
        """Read the log behind this place, or behind what was released, if that is later.

        StoreBusyError: somebody else reads the slot. StoreError: the server refuses it.
        """
        connection = pq.PGconn.connect(agent_conninfo(dsn, replication="database").encode())
        if connection.status != pq.ConnStatus.OK:
            raise StoreLostError(f"the log cannot be read: {_text(connection.error_message)}")
        options = f"proto_version '1', publication_names '{_quoted(publication)}', messages 'true'"
        command = f"START_REPLICATION SLOT {_quoted(slot)} LOGICAL {lsn_text(lsn)} ({options})"
        result = connection.exec_(command.encode())
        if result.status == pq.ExecStatus.COPY_BOTH:
            stream = cls(connection, lsn)
            threading.Thread(target=stream._keep_alive, name="log feedback", daemon=True).start()
            return stream
        state = result.error_field(pq.DiagnosticField.SQLSTATE)
        said = f"slot {slot} cannot be read: {_text(result.error_message)}"
        connection.finish()
        if state == _SLOT_IN_USE:
            raise StoreBusyError(f"{said}; stop the other agent, or wait until its backend ends")
        raise StoreError(said)

    def read(self, wait_s: float) -> bytes | None:
        """The next message; None: none came within so many seconds."""
        until_s = time.monotonic() + wait_s
        while True:
            try:
                with self.used:
                    size, data = self.connection.get_copy_data(1)
                if size < 0:
                    raise self._ended()
                if size == 0 and not self._has_come(until_s - time.monotonic()):
                    return None
            except OperationalError as error:
                raise StoreLostError(f"the stream of the log ended: {error}") from error
            if size and (message := self._received(bytes(data))) is not None:
                return message

    def release(self, lsn: int, *, asks: bool = False) -> None:
        """Tell the server that it may forget the log up to here; `asks`: for a keepalive, too.

        Within wal_sender_timeout (60 s) the server must hear something.
        """
        self.released = max(self.released, lsn)
        now_us = int((time.time_ns() // 1_000) - EPOCH_S * 1_000_000)
        known = self.released
        status = _STATUS.pack(b"r", known, known, known, now_us, asks)
        try:
            with self.used:
                self.connection.put_copy_data(status)
                self.connection.flush()
        except OperationalError as error:
            raise StoreLostError(f"the stream of the log ended: {error}") from error

    def close(self) -> None:
        """Close the connection; what was not released comes again."""
        self.closed.set()
        with self.used:
            self.connection.finish()

    def _keep_alive(self) -> None:
        """Repeat what was released; a connection that is lost is for the reader to report."""
        with suppress(StoreError):
            while not self.closed.wait(FEEDBACK_S):
                self.release(self.released)

    def _has_come(self, wait_s: float) -> bool:
        """Wait for input; return whether some came."""
        if not select.select([self.connection.socket], [], [], max(wait_s, 0))[0]:
            return False
        with self.used:
            self.connection.consume_input()
        return True

    def _received(self, data: bytes) -> bytes | None:
        """The message that came; None: it is a keepalive, which is answered if it wants it."""
        if data[:1] == b"w":
            return data[_DATA.size :]
        if data[:1] != b"k" or len(data) != _KEEPALIVE.size:
            raise StoreError(f"the stream of the log sends {data[:1]!r}, which it must not")
        _, end, _, wants_answer = _KEEPALIVE.unpack(data)
        self.decoded = max(self.decoded, end)
        if wants_answer:
            self.release(self.released)
        return None

    def _ended(self) -> StoreError:
        result = self.connection.get_result()
        said = _text(result.error_message) if result is not None else "the server closed it"
        state = result.error_field(pq.DiagnosticField.SQLSTATE) if result is not None else None
        is_refused = state is not None and not is_lost_state(state.decode())
        kind = StoreError if is_refused else StoreLostError
        return kind(f"the stream of the log ended: {said}")


def _quoted(name: str) -> str:
    """A name as the commands of replication want it."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _text(message: bytes) -> str:
    return " ".join(message.decode(errors="replace").split())
