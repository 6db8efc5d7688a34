"""What a case of two clusters expects: rows, conflicts, exceptions, counters; null is anything.

An expectation that the hub does not meet is held against what the origin's rules make of the case.
Where they make the same, each write that they and the hub see otherwise is a difference of its own,
which a rule may account for; where they do not, none may.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from streaming.core.batch.counters import CONFLICT_COMMIT, ROW_REJECT, TRANSACTION_REJECT
from streaming.core.model.change import RowKey
from tests.vectors.deviations import CounterRule
from tests.vectors.findings import Findings, Recorded, Unit
from tests.vectors.outcome import About, Case, Difference, VectorError
from tests.vectors.steps import row_of

REJECTS = (ROW_REJECT, TRANSACTION_REJECT, CONFLICT_COMMIT)
"""The counters of what goes whole."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What is expected behind a step, and what the hub found there.

    `listed_only`: of rows only those are compared that are expected, if there are any.
    """

    step: int
    expect: Mapping[str, Any]
    found: Findings
    listed_only: bool = False


def differences(
    case: Case, moment: Moment, counters: Sequence[CounterRule], origin: Findings | None = None
) -> list[Difference]:
    """What is otherwise; null is not compared, nor a counter that the hub does not have.

    `origin`: what the origin's rules make of the case there; without it nothing is the origin's.
    """
    compared = _Compared(case, moment, counters, origin)
    return [
        each for name, expected in moment.expect.items() for each in compared.of(name, expected)
    ]


@dataclass(frozen=True, slots=True)
class _Compared:
    case: Case
    moment: Moment
    counters: Sequence[CounterRule]
    origin: Findings | None

    def of(self, name: str, expected: Any) -> Iterator[Difference]:  # noqa: ANN401
        """The differences to one expectation."""
        match name.removeprefix("final_"), expected:
            case _, None:
                return
            case ("rows_A" | "rows_B") as where, list():
                listed = self.moment.listed_only and expected
                wanted = expected if listed else self.case.get("final_rows_filter")
                yield from self._rows(where.removeprefix("rows_"), expected, wanted)
            case "conflict_count_delta", int():
                yield from self._conflicts("conflicts", expected, None)
            case "conflict_count_delta", dict():
                for table, count in expected.items():
                    yield from self._conflicts(f"conflicts of {table}", count, table)
            case "exceptions", list():
                yield from self._exceptions(expected)
            case "counters", dict():
                for counter, count in expected.items():
                    yield from self._counter(counter, count)
            case _:
                raise VectorError(f"{name}: {expected!r} is an unknown kind of expectation")

    def _rows(
        self,
        cluster: str,
        expected: Sequence[Mapping[str, Any]],
        wanted: Any,  # noqa: ANN401
    ) -> Iterator[Difference]:
        """Rows are compared in the columns that are expected of them."""
        there, should = self.moment.found.rows[cluster], {row_of(e): e["values"] for e in expected}
        at_origin = self.origin.rows[cluster] if self.origin else None
        shown = {row for row in there if _is_shown(row, wanted)}
        for row in sorted(shown | should.keys()):
            got, want = there.get(row) if row in shown else None, should.get(row)
            if not _is_row(got, want):
                text = f"row {row[0]} {row[1]} of {cluster}: expected {want}, got {got}"
                is_origins = at_origin is not None and _is_row(at_origin.get(row), want)
                yield Difference(text, About.CONTENT, row, self.moment.step, is_origins)

    def _conflicts(
        self, name: str, expected: int | None, table: str | None
    ) -> Iterator[Difference]:
        def of(found: Findings) -> AbstractSet[Unit]:
            return {unit for unit in found.conflicts if self._is_of(unit, table)}

        yield from self._count(name, expected, of, About.COUNT)

    def _is_of(self, unit: Unit, table: str | None) -> bool:
        return table is None or all(self._row(step)[0] == table for step in unit)

    def _counter(self, name: str, expected: int | None) -> Iterator[Difference]:
        cluster, _, bare = name.rpartition(".")
        if cluster and cluster != self.case["detecting_cluster"]:
            bare = name
        rule = next((c for c in self.counters if fnmatchcase(bare.lower(), c.name)), None)
        if rule is None:
            raise VectorError(f"{name} is an unknown counter")
        if rule.counts:
            about = About.REJECTS if rule.counts in REJECTS else About.COUNT
            counts = rule.counts
            yield from self._count(
                name, expected, lambda found: found.counters.get(counts, frozenset()), about
            )

    def _count(
        self,
        name: str,
        expected: int | None,
        units: Callable[[Findings], AbstractSet[Unit]],
        about: About,
    ) -> Iterator[Difference]:
        got = units(self.moment.found)
        if expected is None or expected == len(got):
            return
        text = f"{name}: expected {expected}, got {len(got)}"
        there = None if self.origin is None else units(self.origin)
        if there is None or len(there) != expected:
            yield Difference(text, about)
        else:
            yield from self._of_writes(text, about, *(got ^ there))

    def _exceptions(self, expected: Sequence[Mapping[str, Any]]) -> Iterator[Difference]:
        """Exceptions row by row, in the order of its changes; null fields are not compared."""
        got = _by_row(self.moment.found.exceptions)
        at_origin = _by_row(self.origin.exceptions) if self.origin else None
        want: dict[RowKey, list[Mapping[str, Any]]] = {}
        for each in expected:
            want.setdefault(row_of(each), []).append(each)
        for row in sorted(got.keys() | want.keys()):
            have, should = got.get(row, []), want.get(row, [])
            if _are(have, should):
                continue
            shown = [dict(each.fields) for each in have]
            text = f"exceptions of row {row[0]} {row[1]}: expected {should}, got {shown}"
            there = None if at_origin is None else at_origin.get(row, [])
            if there is None or not _are(there, should):
                yield Difference(text, About.EXCEPTIONS, row)
            else:
                yield from self._of_writes(text, About.EXCEPTIONS, *_otherwise(have, there))

    def _of_writes(self, text: str, about: About, *units: Unit) -> Iterator[Difference]:
        """A difference per write, all of which must be accounted for."""
        if not units:  # the same writes were counted, and yet the sums differ
            yield Difference(text, about)
        for step in sorted(frozenset[int]().union(*units)):
            yield Difference(text, about, self._row(step), step, is_origins=True)

    def _row(self, step: int) -> RowKey:
        return row_of(self.case["steps"][step])


def _is_row(got: Mapping[str, Any] | None, want: Mapping[str, Any] | None) -> bool:
    if got is None or want is None:
        return got is want
    return all(got.get(column) == value for column, value in want.items())


def _is_shown(row: RowKey, wanted: Any) -> bool:  # noqa: ANN401
    """Return whether the origin printed this row: one filter or one of several lets it through."""
    filters = wanted if isinstance(wanted, list) else [wanted or {}]
    return any(
        row[0] == each.get("table", row[0]) and ("key" not in each or row == row_of(each))
        for each in filters
    )


def _by_row(exceptions: Sequence[Recorded]) -> dict[RowKey, list[Recorded]]:
    found: dict[RowKey, list[Recorded]] = {}
    for each in exceptions:
        found.setdefault(each.row, []).append(each)
    return found


def _are(got: Sequence[Recorded], expected: Sequence[Mapping[str, Any]]) -> bool:
    fields = [each.fields for each in got]
    return len(fields) == len(expected) and all(map(_fits, fields, expected))


def _otherwise(got: Sequence[Recorded], at_origin: Sequence[Recorded]) -> list[Unit]:
    """The writes that only one of the two recorded, or that they recorded otherwise."""
    one, other = ({each.unit: each.fields for each in of} for of in (got, at_origin))
    both = one.keys() & other.keys()
    unlike = [unit for unit in both if not _fits(one[unit], other[unit])]
    return [*(one.keys() ^ other.keys()), *unlike]


def _fits(got: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    plain = all(expected.get(n) in (None, got[n]) for n in ("op_type", "cause"))
    images = (
        got[name].get(column) == value
        for name in ("old", "new")
        for column, value in (expected.get(name) or {}).items()
    )
    return plain and all(images)
