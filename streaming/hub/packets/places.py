"""Up to where a replica's records are in its topic, by the places that they carry."""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from connectors.kafka.placed_records import PlacedRecord
from streaming.core.matrix.packets import Place

KEPT_RUNS = 10_000
"""How many runs are known at most; below them a place is not known, and nobody is told it."""


class PlaceRun(NamedTuple):
    """Records at consecutive offsets with consecutive places, from this one on."""

    offset: int
    place: Place
    length: int

    def is_followed_by(self, record: PlacedRecord) -> bool:
        """Return whether the record is the next one of the run."""
        return record.offset == self.offset + self.length and record.place == Place(
            self.place.outbox, self.place.place + self.length
        )

    def before(self, offset: int) -> Place:
        """The place of its last record before an offset behind its first one."""
        within = min(self.length, offset - self.offset)
        return Place(self.place.outbox, self.place.place + within - 1)


@dataclass(slots=True)
class TopicPlaces:
    """The places in one topic; written by one thread, read by any.

    `read_to`: the offset behind what was read of the topic; None: nothing was. `last`: the record
    at the largest place of the last outbox.
    """

    read_to: int | None = None
    last: PlacedRecord | None = None
    runs: tuple[PlaceRun, ...] = field(default=())

    def note(self, records: Iterable[PlacedRecord], read_to: int) -> None:
        """Note what was read of the topic, up to this offset."""
        runs = list(self.runs)
        for record in records:
            if runs and runs[-1].is_followed_by(record):
                runs[-1] = runs[-1]._replace(length=runs[-1].length + 1)
            else:
                runs.append(PlaceRun(record.offset, record.place, 1))
            if self._is_further(record.place):
                self.last = record
        self.runs, self.read_to = tuple(runs[-KEPT_RUNS:]), read_to

    def _is_further(self, place: Place) -> bool:
        """Return whether a place is behind the last one, or of a further outbox.

        A producer that was given up may deliver once more what stands there already.
        """
        last = self.last.place if self.last is not None else None
        return last is None or last.outbox != place.outbox or place.place > last.place

    def at(self, offset: int) -> Place | None:
        """The place of the last record before an offset; None: none is known there."""
        runs = self.runs
        found = bisect_left(runs, offset, key=lambda run: run.offset)
        return runs[found - 1].before(offset) if found else None

    @property
    def outboxes(self) -> set[str]:
        """The outboxes of what was read."""
        return {run.place.outbox for run in self.runs}

    def offset_of(self, place: Place) -> int | None:
        """Where the record at a place stands, if all behind it came one after the other."""
        last = self.last
        if last is None or last.place.outbox != place.outbox:
            return None
        return last.offset - (last.place.place - place.place)
