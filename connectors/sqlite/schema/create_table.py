"""What a CREATE statement says and no PRAGMA tells: collations, expressions, a trigger's event."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from connectors.sqlite import sql


@dataclass(frozen=True, slots=True)
class ColumnText:
    """What the definition of a column says; `generated`: its expression, in parentheses."""

    collation: str | None
    generated: str | None
    is_autoincrement: bool


def column_texts(create: str) -> dict[str, ColumnText]:
    """Column, in lower case -> its definition in a CREATE TABLE statement."""
    found = dict[str, ColumnText]()
    for part in _parts(sql.tokens(create)):
        words = [one for one in part if not sql.is_blank(one)]
        if words:
            found.setdefault(unquoted(words[0]).lower(), _column_text(part))
    return found


def check_conditions(create: str) -> list[str]:
    """The conditions of a CREATE TABLE statement's CHECK constraints, with their parentheses."""
    words = sql.tokens(create)
    places = [place for place, word in enumerate(words) if word.upper() == "CHECK"]
    return [_text(_first_parentheses(words[place + 1 :])) for place in places]


def index_parts(create: str) -> tuple[list[str], str | None]:
    """The columns and expressions of a CREATE INDEX statement, and its condition."""
    words = sql.tokens(create)
    condition, depth = None, 0
    for place, word in enumerate(words):
        depth += _step(word)
        if not depth and word.upper() == "WHERE":
            condition = _text(words[place + 1 :])
    return [_text(part) for part in _parts(words)], condition


def trigger_event(create: str) -> str:
    """When the trigger of a CREATE TRIGGER statement fires; one that does not say so: BEFORE."""
    words = sql.words(create)
    place = next(n for n, word in enumerate(words) if n > 2 and word in EVENTS)  # behind its name
    timing = [word for word in words[3:place] if word in ("before", "after", "instead", "of")]
    return " ".join([*(timing or ["before"]), words[place]]).upper()


EVENTS = ("insert", "update", "delete")


def unquoted(name: str) -> str:
    """A name without its quotes."""
    pairs = {'"': '"', "`": "`", "[": "]", "'": "'"}
    end = pairs.get(name[:1])
    return name[1:-1].replace(end * 2, end) if end and len(name) > 1 else name


def _parts(words: Iterable[str]) -> Iterator[list[str]]:
    """What stands between the commas of the first parentheses."""
    depth, part = 0, list[str]()
    for word in words:
        if depth:
            if word in ",)" and depth == 1:
                yield part
                part = []
            else:
                part.append(word)
        depth += _step(word)
        if word == ")" and not depth:
            return


def _column_text(part: list[str]) -> ColumnText:
    depth, collation, generated, is_autoincrement = 0, None, None, False
    for place, word in enumerate(part):
        if not depth:
            match word.upper():
                case "COLLATE":
                    behind = (one for one in part[place + 1 :] if not sql.is_blank(one))
                    collation = unquoted(next(behind))
                case "AS":
                    generated = _text(_first_parentheses(part[place + 1 :]))
                case "AUTOINCREMENT":
                    is_autoincrement = True
                case _:
                    pass
        depth += _step(word)
    return ColumnText(collation, generated or None, is_autoincrement)


def _first_parentheses(words: Iterable[str]) -> Iterator[str]:
    depth = 0
    for word in words:
        depth += _step(word)
        if depth or word == ")":
            yield word
        if word == ")" and not depth:
            return


def _step(word: str) -> int:
    return {"(": 1, ")": -1}.get(word, 0)


def _text(words: Iterable[str]) -> str:
    """Words as one text, each space and comment as one blank."""
    return "".join(" " if sql.is_blank(word) else word for word in words).strip()
