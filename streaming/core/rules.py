"""What the configuration tells the pure core."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from streaming.core.table import Table
from streaming.core.winner import UserFunction


@dataclass(frozen=True, slots=True)
class Subscription:
    """An agreement as configured: its consumer and the tables that it gets."""

    name: str
    consumer: int
    tables: frozenset[str]


@dataclass(frozen=True, slots=True)
class Rules:
    """Tables and agreements by name, and the limits that decisions depend on.

    `users`: import path -> the user's conflict function.
    """

    tables: Mapping[str, Table]
    subscriptions: Mapping[str, Subscription]
    users: Mapping[str, UserFunction] = field(default_factory=dict)
    reflections: int = 64
    page_items: int = 50_000
    covers_interval_ms: int = 1_000
    visible: Mapping[int, frozenset[str]] = field(init=False)

    def __post_init__(self) -> None:
        """Index the visible tables by consumer."""
        visible = {s.consumer: s.tables for s in self.subscriptions.values()}
        object.__setattr__(self, "visible", visible)

    def sees(self, rid: int, table: str) -> bool:
        """Claim that this replica receives the table; where it does not, its MRE is 0."""
        return table in self.visible.get(rid, frozenset())

    def agreement_of(self, rid: int) -> str | None:
        """The name of the agreement whose consumer this replica is."""
        return next((s.name for s in self.subscriptions.values() if s.consumer == rid), None)
