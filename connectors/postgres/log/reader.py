"""Reads the log of one slot into a journal: what is committed comes, in order and numbered."""

import time
from dataclasses import dataclass

from connectors.agent.contract import StoreBusyError
from connectors.postgres.log.journal import LogJournal
from connectors.postgres.log.stream import LogStream
from connectors.postgres.log.transactions import Assembler
from connectors.postgres.names import PUBLICATION

READ_AHEAD = 10_000
"""So many entries are read ahead of what is published, at most, and the rest of a transaction."""
CATCH_UP_S = 0.05
"""How long a call waits for the server to send what is committed."""
RETRIES, RETRY_S = 100, 0.05
"""How often a slot is tried again whose backend before has not ended yet."""


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
        return cls(dsn, name, stream, journal, Assembler(name))

    def begin_again(self) -> None:
        """Read the log again from the journal's checkpoint on."""
        self.stream.close()
        self.stream = self._opened_again(self.journal.checkpoint.lsn)
        self.assembler = Assembler(self.name)

    def catch_up(self, end: int) -> bool:
        """Read what is committed; return whether all up to this end of the log is read."""
        until_s, is_silent = time.monotonic() + CATCH_UP_S, True
        while len(self.journal.entries) < READ_AHEAD:
            wait_s = until_s - time.monotonic()
            if is_silent and self.stream.decoded < end and wait_s > 0:
                self.stream.release(self.stream.released, asks=True)
            data = self.stream.read(min(max(wait_s, 0), 0.005))
            is_silent = data is None
            if data is not None:
                transaction = self.assembler.add(data)
                if transaction is not None:
                    self.journal.add(transaction)
            elif self.stream.decoded >= end or wait_s <= 0:
                break
        return self.stream.decoded >= end

    def _opened_again(self, lsn: int) -> LogStream:
        """The stream from here, once the backend of the one before has ended."""
        for _ in range(RETRIES):
            try:
                return LogStream.open(self.dsn, self.name, PUBLICATION, lsn)
            except StoreBusyError:
                time.sleep(RETRY_S)
        return LogStream.open(self.dsn, self.name, PUBLICATION, lsn)
