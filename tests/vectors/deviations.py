"""Where the hub means something else than a vector's system, as `deviations.toml` names it."""

import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

FILE = Path(__file__).with_name("deviations.toml")


@dataclass(frozen=True, slots=True)
class Rule:
    """A deliberate difference: where `shape` holds, `law` is checked instead, for `reason`."""

    name: str
    kind: str
    shape: str
    law: str
    reason: str
    function: str | None = None


@dataclass(frozen=True, slots=True)
class Skip:
    """Cases that are not run: those with this function on a table, or with this operation."""

    reason: str
    function: str | None = None
    op: str | None = None


@dataclass(frozen=True, slots=True)
class CounterRule:
    """What a counter (a pattern of names) counts here; nothing: it is ignored for `reason`."""

    name: str
    reason: str
    counts: str = ""


@dataclass(frozen=True, slots=True)
class Deviations:
    """All of them."""

    rules: tuple[Rule, ...]
    skips: tuple[Skip, ...]
    counters: tuple[CounterRule, ...]

    @classmethod
    def load(cls, path: Path = FILE) -> "Deviations":
        """Read the file; a TypeError names a field that does not belong."""
        tables = tomllib.loads(path.read_text())
        return cls(
            tuple(Rule(**table) for table in tables.pop("rule", [])),
            tuple(Skip(**table) for table in tables.pop("skip", [])),
            tuple(CounterRule(**table) for table in tables.pop("counter", [])),
        )

    def for_case(self, kind: str, functions: set[str]) -> tuple[Rule, ...]:
        """The rules that may apply to a case of this kind with these functions."""
        return tuple(r for r in self.rules if r.kind == kind and r.function in {None, *functions})

    def skip(self, *, function: str | None = None, op: str | None = None) -> Skip | None:
        """Why nothing with this function or this operation is run, or None."""
        for skip in self.skips:
            if function is not None and skip.function is not None:
                if fnmatchcase(function, skip.function):
                    return skip
            elif op is not None and skip.op == op:
                return skip
        return None
