"""Every command that a page or a message of ours names is there, with its options."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.commands import all_commands

CHECKOUT = Path(__file__).parents[2]
NAMED = re.compile(r"`slackwater ([^`]+)`")
IN_A_BLOCK = re.compile(r"^(?:\.venv/bin/)?slackwater (.+)$", re.MULTILINE)


def places() -> Iterator[Path]:
    """The pages, and the modules whose messages say what to do."""
    yield from (CHECKOUT / "README.md", CHECKOUT / "CHANGELOG.md")
    yield from sorted((CHECKOUT / "docs").glob("**/*.md"))
    for package in ("streaming", "connectors", "checkpoints"):
        yield from sorted((CHECKOUT / package).glob("**/*.py"))


def commands(place: Path) -> set[str]:
    """What is named there, without comments; a name that a message fills in is one word."""
    text = place.read_text(encoding="utf-8")
    joined = re.sub(r'"\s*\n\s*f?"', "", text)  # a message over several lines
    found = set(NAMED.findall(joined))
    if place.suffix == ".md":
        found |= {one.partition("#")[0] for one in IN_A_BLOCK.findall(text)}
    whole = (re.sub(r"\{[^}]*\}", "X", one).split() for one in found)
    return {" ".join(words) for words in whole if words[0] != "X"}


ALWAYS = {"--help", "--version", "--install-completion"}
ALL = sorted(
    {(one, str(place.relative_to(CHECKOUT))) for place in places() for one in commands(place)}
)


@pytest.mark.parametrize(("named", "place"), ALL)
def test_a_command_that_is_named_is_there(named: str, place: str) -> None:
    """Who follows the advice at night gets no usage error; `place` tells where to mend it."""
    command: Any = all_commands()
    words = re.findall(r'"[^"]*"|\S+', named)
    while words and words[0] in (inner := getattr(command, "commands", {})):
        command, words = inner[words[0]], words[1:]

    options = ALWAYS | {name for one in command.params for name in one.opts}
    assert {word for word in words if word.startswith("--")} <= options, place
    takes_words = any(one.param_type_name == "argument" for one in command.params)
    assert not words or words[0].startswith("-") or takes_words, place
