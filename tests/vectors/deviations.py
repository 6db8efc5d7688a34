"""Where the hub means something else than a vector's system, as `deviations.toml` names it."""

import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("deviations.toml")


@dataclass(frozen=True, slots=True)
class Rule:
    """A deliberate difference: where `shape` holds, `law` is checked instead, for `reason`.

    `functions`: patterns of the functions of which a table of the case has one; none: any case.
    """

    name: str
    kind: str
    shape: str
    law: str
    reason: str
    functions: tuple[str, ...] = ()

    def is_for(self, kind: str, functions: set[str]) -> bool:
        """Return whether the rule may apply to a case of this kind with these functions."""
        named = any(fnmatchcase(f, pattern) for f in functions for pattern in self.functions)
        return self.kind == kind and (named or not self.functions)


@dataclass(frozen=True, slots=True)
class Skip:
    """Cases that are not run: of a kind, with a function on a table, or an operation.

    `kinds`: as the cases name them; `function` is a pattern.
    """

    reason: str
    kinds: tuple[str, ...] = ()
    function: str | None = None
    op: str | None = None


@dataclass(frozen=True, slots=True)
class CounterRule:
    """What a counter (a pattern of names) counts here; nothing: it is ignored for `reason`."""

    name: str
    reason: str
    counts: str = ""


@dataclass(frozen=True, slots=True)
class Ignored:
    """A member of cases (its path, see reading.py) that nobody need read."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Deviations:
    """All of them."""

    rules: tuple[Rule, ...]
    skips: tuple[Skip, ...]
    counters: tuple[CounterRule, ...]
    ignored: tuple[Ignored, ...]

    @classmethod
    def load(cls, path: Path = FILE) -> "Deviations":
        """Read the file; a TypeError names a field that does not belong."""
        tables = tomllib.loads(path.read_text())
        return cls(
            tuple(Rule(**_with_tuples(table)) for table in tables.pop("rule", [])),
            tuple(Skip(**_with_tuples(table)) for table in tables.pop("skip", [])),
            tuple(CounterRule(**table) for table in tables.pop("counter", [])),
            tuple(Ignored(**table) for table in tables.pop("ignored", [])),
        )

    def for_case(self, kind: str, functions: set[str]) -> tuple[Rule, ...]:
        """The rules that may apply to a case of this kind with these functions."""
        return tuple(rule for rule in self.rules if rule.is_for(kind, functions))

    def is_ignored(self, path: str) -> bool:
        """Return whether nobody need read this member of a case."""
        return any(one.path == path for one in self.ignored)

    def skip_of_kind(self, kind: object) -> Skip | None:
        """Why no case that names this kind is run, or None."""
        return next((skip for skip in self.skips if kind in skip.kinds), None)

    def skip_of_function(self, function: str) -> Skip | None:
        """Why no case with this function is run, or None."""
        named = (s for s in self.skips if s.function and fnmatchcase(function, s.function))
        return next(named, None)

    def skip_of_op(self, op: object) -> Skip | None:
        """Why no case with this operation is run, or None."""
        return next((skip for skip in self.skips if skip.op is not None and skip.op == op), None)


def _with_tuples(table: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(v) if isinstance(v, list) else v for name, v in table.items()}
