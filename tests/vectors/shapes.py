"""Shapes of steps at which the hub means something else, and the law that holds instead."""

from collections.abc import Callable
from dataclasses import dataclass

from streaming.core.change import Op
from tests.vectors.epochs import Played, exchange
from tests.vectors.outcome import Case, Difference, Explains
from tests.vectors.steps import CLUSTERS, Sync, Write, steps


@dataclass(frozen=True, slots=True)
class Story:
    """A case's steps, of which writes are named by their place."""

    steps: tuple[Write | Sync, ...]
    detecting: str

    def inserts(self) -> list[int]:
        """The other cluster's inserts."""
        return [
            place
            for place, step in enumerate(self.steps)
            if isinstance(step, Write) and step.op is Op.INSERT and step.cluster != self.detecting
        ]

    def write(self, place: int) -> Write:
        """The write at a place."""
        step = self.steps[place]
        assert isinstance(step, Write)
        return step

    def words(self, place: int, end: int, *, by_detecting: bool) -> list[int]:
        """What one of the clusters wrote on the row of this write, before `end`."""
        row = self.write(place).row
        return [
            number
            for number, step in enumerate(self.steps[:end])
            if isinstance(step, Write)
            and step.row == row
            and (step.cluster == self.detecting) is by_detecting
        ]

    def judged(self, place: int) -> int:
        """The sync at which the other cluster's write reaches the detecting one."""
        return self._sync(place, to_detecting=True)

    def is_told(self, start: int, end: int) -> bool:
        """Claim that what the detecting cluster knew at `start` reached the other before `end`."""
        return self._sync(start, to_detecting=False) < end

    def _sync(self, start: int, *, to_detecting: bool) -> int:
        later = enumerate(self.steps[start:], start)
        there = (
            place
            for place, step in later
            if isinstance(step, Sync) and (step.target == self.detecting) is to_detecting
        )
        return next(there, len(self.steps))

    def meets_unseen_delete(self, place: int) -> bool:
        """Claim that the detecting cluster's last word is a delete that this write did not see."""
        words = self.words(place, self.judged(place), by_detecting=True)
        is_delete = bool(words) and self.write(words[-1]).op is Op.DELETE
        return is_delete and not self.is_told(words[-1], place)

    def is_rejected(self, place: int) -> bool:
        """Claim that the hub rejects a write, or one before it whose answer it did not see."""
        return self.meets_unseen_delete(place) or self.follows_rejected(place)

    def follows_rejected(self, place: int) -> bool:
        """Claim that its cluster wrote the row before and was rejected, and was not told yet."""
        return any(
            self.is_rejected(earlier) and not self.is_told(self.judged(earlier), place)
            for earlier in self.words(place, place, by_detecting=False)
        )


def insert_meets_unseen_delete(case: Case, _: Played) -> Explains | None:
    """The other cluster inserts a row that the detecting one deleted; it had not seen that."""
    return _rows_of_inserts(case, Story.meets_unseen_delete)


def insert_follows_rejected_write(case: Case, _: Played) -> Explains | None:
    """It had seen the delete, but not yet the answer to what it wrote before it saw that."""
    return _rows_of_inserts(case, Story.follows_rejected)


def _rows_of_inserts(case: Case, holds: Callable[[Story, int], bool]) -> Explains | None:
    """Explain what differs on the rows of such inserts, and counts, which are of all rows."""
    story = Story(tuple(steps(case)), case["detecting_cluster"])
    rows = {story.write(place).row for place in story.inserts() if holds(story, place)}

    def explains(difference: Difference) -> bool:
        return difference.row is None or difference.row in rows

    return explains if rows else None


def converged(case: Case, played: Played) -> str | None:
    """Both sides equal once all is delivered; every change judged once, every loser recorded."""
    world, detecting = played.world, case["detecting_cluster"]
    other = next(name for name in CLUSTERS if name != detecting)
    for source, target in [(other, detecting), (detecting, other)] * 2:
        exchange(world, Sync(source, target, {}), detecting)
    a, b = (world.replicas[rid].rows for rid in CLUSTERS.values())
    if a != b:
        return f"A and B differ: {sorted(a.items() ^ b.items())}"
    if a != {row: state.image for row, state in world.hub.rows.items() if state.exists}:
        return "the clusters are equal, but not what the hub has"
    written = sorted(csn for replica in world.replicas.values() for csn in replica.written)
    judged = world.hub.judged
    if written != sorted(each.arrived.change.csn for each in judged):
        return "not every change was judged once"
    if any((each.conflict is None) == each.concurrent for each in judged):
        return "a concurrent change was not recorded as a conflict"
    return None
