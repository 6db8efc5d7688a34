"""One difference between the schemas of replicas: where it is how, and what it will cause."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

ABSENT = "missing"
"""How something is at a replica that lacks it."""

EVERYWHERE = "declare it alike at every replica"


@dataclass(frozen=True, slots=True)
class SchemaDifference:
    """A subject of a table that is not alike; `table` "": the database itself.

    `at`: replica -> how it is there. `matters`: rows may be refused, or differ; otherwise it is
    only good to know.
    """

    table: str
    subject: str
    at: Mapping[str, str]
    causes: str
    remedy: str
    matters: bool = True

    @property
    def place(self) -> str:
        """What differs."""
        return f"table {self.table}, {self.subject}" if self.table else self.subject

    @property
    def text(self) -> str:
        """The difference as a sentence."""
        there = "; ".join(f"{how} at {names_text(who)}" for how, who in by_value(self.at).items())
        return f"{self.place}: {there}: {self.causes}; {self.remedy}"


def by_value(at: Mapping[str, str]) -> dict[str, list[str]]:
    """How it is -> the replicas where it is so."""
    found = dict[str, list[str]]()
    for replica, how in at.items():
        found.setdefault(how, []).append(replica)
    return found


def names_text(names: Iterable[str]) -> str:
    """Names as a sentence lists them."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def differ(texts: Iterable[str]) -> bool:
    """Return whether these pieces of SQL differ in more than spaces and case."""
    return len({comparable(one) for one in texts}) > 1


_PARTS = re.compile(r"""('(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\])""")


def comparable(sql: str) -> str:
    """A piece of SQL without spaces and in lower case, but for what is quoted."""
    parts = _PARTS.split(sql)
    return "".join(
        part if place % 2 else re.sub(r"\s+", "", part).lower() for place, part in enumerate(parts)
    )


def there_or_not(replicas: Iterable[str], where: Collection[str]) -> dict[str, str]:
    """Replica -> that it is there, or missing."""
    return {one: "there" if one in where else ABSENT for one in replicas}
