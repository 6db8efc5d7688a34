"""A case's steps as a story: what each write could know, and what the hub says of it."""

from collections.abc import Container
from dataclasses import dataclass, field

from streaming.core.model.change import Op, RowKey
from streaming.core.model.function import ConflictFunction, ConflictRule
from tests.vectors.outcome import Case
from tests.vectors.steps import Sync, Write, segments, steps, tables, transactions


@dataclass(frozen=True, slots=True)
class Story:
    """Writes are named by their place among the steps; `functions`: those of the tables.

    `blocked`: the other cluster's writes that are concurrent with their row. `whole`: those that
    go with their transactions, except that a delete of a deleted row is not told apart.
    """

    steps: tuple[Write | Sync, ...]
    detecting: str
    functions: dict[str, ConflictFunction]
    commits: tuple[tuple[int, ...], ...]
    blocked: set[int] = field(default_factory=set)
    whole: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, case: Case) -> "Story":
        """Read the steps, then judge the other cluster's transactions in order."""
        told = tuple(steps(case))
        places = {id(step): place for place, step in enumerate(told)}
        commits = (t for segment in segments(told) for t in transactions(segment))
        story = cls(
            told,
            case["detecting_cluster"],
            {name: table.function for name, table in tables(case).items()},
            tuple(tuple(places[id(write)] for write in commit) for commit in commits),
        )
        for commit in story.others_commits():
            story._judge(commit)
        return story

    def others_commits(self) -> list[tuple[int, ...]]:
        """The other cluster's transactions, in the order of their commits."""
        return [c for c in self.commits if self.write(c[0]).cluster != self.detecting]

    def others(self, rules: Container[ConflictRule], *ops: Op) -> list[int]:
        """The other cluster's writes on tables of these rules, of these operations if any."""
        return [
            place
            for commit in self.others_commits()
            for place in commit
            if self.function(place).rule in rules and (not ops or self.write(place).op in ops)
        ]

    def write(self, place: int) -> Write:
        """The write at a place."""
        step = self.steps[place]
        assert isinstance(step, Write)
        return step

    def function(self, place: int) -> ConflictFunction:
        """The conflict function of a write's table."""
        return self.functions[self.write(place).row[0]]

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

    def told(self, start: int) -> int:
        """The sync at which what the detecting cluster knew at `start` reaches the other."""
        return self._sync(start, to_detecting=False)

    def is_told(self, start: int, end: int) -> bool:
        """Return whether the other knew before `end` what the detecting one knew at `start`."""
        return self.told(start) < end

    def answered(self, place: int) -> int:
        """The sync that tells the other cluster what became of its write."""
        return self.told(self.judged(place))

    def earlier(self, place: int) -> list[int]:
        """What the other cluster wrote on the row before."""
        return self.words(place, place, by_detecting=False)

    def unanswered(self, place: int) -> list[int]:
        """Its cluster's earlier writes on the row whose answers it had not when it wrote."""
        return [e for e in self.earlier(place) if self.answered(e) >= place]

    def is_after_sync(self, earlier: int, place: int) -> bool:
        """Return whether the two writes are of different epochs."""
        return any(isinstance(step, Sync) for step in self.steps[earlier:place])

    def meets_unseen(self, place: int, *ops: Op) -> bool:
        """Return whether a write does not know the detecting cluster's last word, one of these."""
        words = self.words(place, self.judged(place), by_detecting=True)
        named = bool(words) and (not ops or self.write(words[-1]).op in ops)
        return named and not self.is_told(words[-1], place)

    def touched_by(self, seeds: set[int]) -> dict[RowKey, int]:
        """The rows of these writes, and the step from which each may be another because of them.

        Where transactions go whole, so may all that hang on them.
        """
        found = dict[RowKey, int]()
        if all(
            function.rule is not ConflictRule.EPOCH_TRANS for function in self.functions.values()
        ):
            for place in seeds:
                row = self.write(place).row
                found[row] = min(self._first_met(place), found.get(row, place))
            return found
        for commit in self.others_commits():
            rows = {self.write(place).row for place in commit}
            if rows & found.keys() or not seeds.isdisjoint(commit):
                found = {**dict.fromkeys(rows, min(commit)), **found}
        return found

    def _first_met(self, place: int) -> int:
        """The write itself, or the other cluster's first one that it overtakes at the hub."""
        if self.write(place).cluster != self.detecting:
            return place
        return min([place, *(e for e in self.earlier(place) if self.judged(e) > place)])

    def _sync(self, start: int, *, to_detecting: bool) -> int:
        later = enumerate(self.steps[start:], start)
        there = (
            place
            for place, step in later
            if isinstance(step, Sync) and (step.target == self.detecting) is to_detecting
        )
        return next(there, len(self.steps))

    def _judge(self, commit: tuple[int, ...]) -> None:
        for place in commit:
            refreshed = (self.blocked | self.whole).intersection(self.unanswered(place))
            if refreshed or self.meets_unseen(place):
                self.blocked.add(place)
        blocked = self.blocked.intersection(commit)
        conflicts = any(self.function(place).rule is ConflictRule.EPOCH_TRANS for place in blocked)
        if conflicts or any(self.whole.intersection(self.unanswered(p)) for p in commit):
            self.whole.update(commit)
