"""Reads the log of one slot into a journal: what is committed comes, in order and numbered."""

import time
from dataclasses import dataclass

from connectors.agent.contract import StoreBusyError
from connectors.postgres.log.journal import LogJournal
from connectors.postgres.log.stream import LogStream
from connectors.postgres.log.transactions import Assembler
from connectors.postgres.names import PUBLICATION, local_origin

CATCH_UP_S = 0.05
"""How long a call waits for the server to send what is committed."""
RETRIES, RETRY_S = 100, 0.05
"""How often a slot is tried again whose backend before has not ended yet."""

IDLE_S, IDLE_BYTES = (10.0, 60.0), (1_000_000, 64_000)
"""An idle checkpoint is stored after so long, if so many bytes of log can be forgotten by it.

It is a commit, which makes log again, so the second pair does not go on for ever."""


def is_idle_due(silent_s: float, held_bytes: int) -> bool:
    """Return whether a checkpoint is to be stored when nothing waits.

    `silent_s`: since the last one; `held_bytes`: of log that it lets the server forget.
    """
    pairs = zip(IDLE_S, IDLE_BYTES, strict=True)
    return any(silent_s >= after_s and held_bytes >= least for after_s, least in pairs)


@dataclass(slots=True)
class LogReader:
    """An open stream and the journal that it fills; `name`: of the slot, and of the own origin."""

    dsn: str
    name: str
    stream: LogStream
    journal: LogJournal
    assembler: Assembler

    @classmethod
    def open(cls, dsn: str, name: str, journal: LogJournal) -> "LogReader":
        """Read from the journal's checkpoint on; errors as LogStream.open."""
        stream = LogStream.open(dsn, name, PUBLICATION, journal.checkpoint.lsn)
        return cls(dsn, name, stream, journal, Assembler(name, local_origin(name)))

    def begin_again(self) -> None:
        """Read the log again from the journal's checkpoint on."""
        self.stream.close()
        self.stream = self._opened_again(self.journal.checkpoint.lsn)
        self.assembler = Assembler(self.name, local_origin(self.name))

    def catch_up(self, end: int, *, beyond: bool = False) -> bool:
        """Read what is committed; return whether all up to this end of the log is read.

        It stops when the journal is full; `beyond`: once there is something more in it.
        """
        until_s = time.monotonic() + CATCH_UP_S
        while not self.journal.is_full() or beyond:
            data = self.stream.read(0)
            if data is None:
                wait_s = until_s - time.monotonic()
                if self.stream.decoded >= end or wait_s <= 0:
                    break
                self.stream.release(self.stream.released, asks=True)
                data = self.stream.read(min(wait_s, 0.005))
            transaction = None if data is None else self.assembler.add(data)
            if transaction is not None:
                self.journal.add(transaction)
                beyond = False
        return self.stream.decoded >= end

    def _opened_again(self, lsn: int) -> LogStream:
        """The stream from here, once the backend of the one before has ended."""
        for _ in range(RETRIES):
            try:
                return LogStream.open(self.dsn, self.name, PUBLICATION, lsn)
            except StoreBusyError:
                time.sleep(RETRY_S)
        return LogStream.open(self.dsn, self.name, PUBLICATION, lsn)
