"""The tables that a list of names and patterns chooses; in a pattern `*` stands for any text."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import TypeVar

T = TypeVar("T")
MARK = "*"


def chosen(named: Iterable[str], tables: Collection[str]) -> frozenset[str]:
    """The tables that one of these names or patterns names."""
    return frozenset(table for one in named for table in _matching(one, tables))


def by_table(filters: Mapping[str, T], tables: Collection[str]) -> dict[str, T]:
    """Table -> its filter, of filters by name or pattern; the first that names it holds."""
    found = [(table, one) for named, one in filters.items() for table in _matching(named, tables)]
    return dict(reversed(found))


def unknown(named: Iterable[str], tables: Collection[str]) -> Iterator[str]:
    """One sentence for each name or pattern that names no table, with what was meant maybe."""
    for one in named:
        if not _matching(one, tables):
            close = get_close_matches(one, tables) or tables
            what = "matches no table" if MARK in one else "is no table"
            yield f'{one!r} {what}: use some of {", ".join(close)}, or ["*"] for all'


def _matching(name: str, tables: Collection[str]) -> list[str]:
    pattern = re.compile(".*".join(map(re.escape, name.split(MARK))), re.DOTALL)
    return [table for table in tables if pattern.fullmatch(table)]
