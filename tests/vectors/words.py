"""What a vector's words say as decisions of the hub, as `words.toml` has it."""

import tomllib
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path

from tests.vectors.outcome import VectorError

FILE = Path(__file__).with_name("words.toml")


@dataclass(frozen=True, slots=True)
class Words:
    """Pattern -> decision, for fields of kinds of cases."""

    kinds: tuple[str, ...]
    fields: tuple[str, ...]
    means: dict[str, str]


WORDS = tuple(
    Words(tuple(table["kinds"]), tuple(table["fields"]), table["means"])
    for table in tomllib.loads(FILE.read_text())["words"]
)


def decision(kind: str, field: str, text: str) -> str:
    """What a text says; VectorError if nobody has said so, or if it says two things."""
    found = {
        means
        for words in WORDS
        if kind in words.kinds and field in words.fields
        for pattern, means in words.means.items()
        if fnmatchcase(text.lower(), pattern.lower())
    }
    if len(found) != 1:
        raise VectorError(f"{field} {text!r} of {kind} means {sorted(found) or 'nothing known'}")
    return found.pop()


Answer = StrEnum | bool | None
"""What the hub answers: a member of a closed enum, yes or no, or that it cannot say."""


def said(answer: Answer) -> str:
    """The decision of an answer, as `words.toml` names it."""
    match answer:
        case None:
            return "none"
        case bool():
            return "yes" if answer else "no"
        case StrEnum():
            return answer.value
