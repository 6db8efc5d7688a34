"""What a demonstration needs of a replica's database, of whatever kind it is."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from streaming.core.model.table import Table
from streaming.demo.databases.client import ClientSession
from streaming.demo.databases.replica_evidence import ReplicaEvidence


class ReplicaDatabase(Protocol):
    """A replica's database, which an agent has open meanwhile or not."""

    @property
    def place(self) -> str:
        """What `--database` of the agent names."""

    def session(self) -> AbstractContextManager[ClientSession]:
        """A connection for one thread, closed at the end."""

    def published_all(self) -> bool:
        """Return whether everything in its journal is in the replica's topic."""

    def last_write(self) -> str | None:
        """The largest CSN that was issued here, or None."""

    def agent_session(self) -> str | None:
        """The session that the replica's agent started last."""

    def evidence(self, name: str, rid: int, tables: Mapping[str, Table]) -> ReplicaEvidence:
        """Everything that it holds and remembers."""
