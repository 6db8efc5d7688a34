"""How long ago, and how many changes ago, a hub epoch was the last one: what a consumer lags."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

SPANS_MAX = 1_000
"""How many spans a history holds; above that old ones are joined in pairs."""


@dataclass(frozen=True, slots=True)
class EpochSpan:
    """Consecutive hub epochs up to `last`, seen as one.

    `at_ms`: when the first of them was committed. `changes`: (rid, table) -> the accepted changes.
    """

    last: int
    at_ms: int
    changes: Mapping[tuple[int, str], int]

    def joined(self, later: "EpochSpan") -> "EpochSpan":
        """Return this span and the one after it as one."""
        changes = Counter(self.changes) + Counter(later.changes)
        return EpochSpan(later.last, self.at_ms, changes)


@dataclass(frozen=True, slots=True)
class LagBehind:
    """What was committed behind a position; `since_ms` None: nothing was."""

    since_ms: int | None = None
    changes: int = 0


@dataclass(frozen=True, slots=True)
class EpochHistory:
    """The hub epochs above `after`, in spans; a position within a span counts as before it.

    So what it says of a lag is exact while it has few hub epochs, and never too little.
    """

    after: int = 0
    spans: tuple[EpochSpan, ...] = ()

    def added(self, span: EpochSpan, acked: int) -> "EpochHistory":
        """Return the history with the newest hub epoch, without those that all have acknowledged.

        `acked`: the hub epoch up to which all have.
        """
        spans = (*self.spans, span)
        kept = tuple(one for one in spans if one.last > acked)
        after = max([self.after, *(one.last for one in spans[: len(spans) - len(kept)])])
        return EpochHistory(after, _thinned(kept) if len(kept) > SPANS_MAX else kept)

    def preceded_by(self, older: "EpochHistory") -> "EpochHistory":
        """Return the history from an older hub epoch on."""
        spans = tuple(one for one in older.spans if one.last <= self.after)
        return EpochHistory(min(older.after, self.after), (*spans, *self.spans))

    def behind(self, position: int, tables: Collection[str], consumer: int) -> LagBehind | None:
        """Return what a consumer lacks behind a hub epoch; None: that one is too long ago.

        Counted are the changes that others made to these tables. `since_ms` is of the first hub
        epoch behind the position, whatever it holds.
        """
        if position < self.after:
            return None
        spans = self._behind(position)
        changes = sum(
            count
            for span in spans
            for (rid, table), count in span.changes.items()
            if rid != consumer and table in tables
        )
        return LagBehind(spans[0].at_ms, changes) if spans else LagBehind()

    def committed_ms(self, position: int) -> int | None:
        """Return when the first hub epoch behind one was committed; None: that is not known."""
        behind = self._behind(position)
        return behind[0].at_ms if behind and position >= self.after else None

    def lacking(self, position: int, tables: Collection[str], origin: int) -> LagBehind | None:
        """Return what is behind a hub epoch of one replica's changes; None: as in `behind`."""
        if position < self.after:
            return None
        counts = [(span.at_ms, _of(span, tables, origin)) for span in self._behind(position)]
        since_ms = next((at_ms for at_ms, count in counts if count), None)
        return LagBehind(since_ms, sum(count for _, count in counts))

    def _behind(self, position: int) -> Sequence[EpochSpan]:
        return [one for one in self.spans if one.last > position]


def _of(span: EpochSpan, tables: Collection[str], origin: int) -> int:
    return sum(
        count for (rid, table), count in span.changes.items() if rid == origin and table in tables
    )


def _thinned(spans: tuple[EpochSpan, ...]) -> tuple[EpochSpan, ...]:
    """Join the older half of the spans in pairs."""
    half = len(spans) // 2 // 2 * 2
    pairs = zip(spans[:half:2], spans[1:half:2], strict=True)
    return (*(one.joined(other) for one, other in pairs), *spans[half:])
