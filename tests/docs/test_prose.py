"""The pages that people read under pressure have short sentences."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
MOST_WORDS = 30


def sentences(page: str) -> Iterator[str]:
    """The sentences of a page, without tables, headings and blocks of code."""
    text = re.sub(r"^ *```.*?^ *```$", "", page, flags=re.MULTILINE | re.DOTALL)
    for line in text.splitlines():
        if not line.lstrip().startswith(("|", "#")):
            bare = re.sub(r"^\s*(?:[-*]|\d+\.) ", "", line).replace("**", "")
            bare = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "code", bare))
            yield from re.split(r"(?<=[.!?])\s+", bare.strip())


def test_sentences_are_counted_without_code_and_tables() -> None:
    """What is no prose is not limited; a span of code is one word."""
    page = (
        "# Head\n\n1. **One.** See [two words](x.md) in `a b c`.\n\n| a | b |\n\n```sh\nc d\n```\n"
    )

    assert [one for one in sentences(page) if one] == ["One.", "See two words in code."]


@pytest.mark.parametrize("name", ["protocol", "deploy"])
def test_no_sentence_is_long(name: str) -> None:
    """The rules of the protocol and the steps of an operator are read word by word."""
    page = (DOCS / f"{name}.md").read_text(encoding="utf-8")

    assert [one for one in sentences(page) if len(one.split()) > MOST_WORDS] == []
