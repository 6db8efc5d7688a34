"""What docs/getting-started.md shows works: its configuration, its table, its commands."""

import re
import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from connectors.sqlite.check import check_database
from streaming.config.sources.load import load
from tests.harness.commands import all_commands

PAGE = Path(__file__).parents[2] / "docs" / "getting-started.md"
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def blocks(kind: str) -> list[str]:
    """The code blocks of a language."""
    return [text for language, text in BLOCKS if language == kind]


def commands() -> Iterator[list[str]]:
    """The words of each command of ours."""
    for block in blocks("sh"):
        for line in block.splitlines():
            words = shlex.split(line)
            if words[:1] == ["slackwater"]:
                yield words[1:]


def test_its_table_fits_its_configuration(tmp_path: Path) -> None:
    """Whoever copies both starts an agent that carries every row."""
    (table,), (config,) = blocks("sql"), blocks("toml")
    (tmp_path / "hub.toml").write_text(config)
    with closing(sqlite3.connect(tmp_path / "berlin.db")) as database:
        database.executescript(table)

    loaded = load(tmp_path / "hub.toml")
    found = check_database(tmp_path / "berlin.db", tuple(loaded.table_map().values()))

    assert found.is_good
    assert [one.name for one in loaded.replicas] == ["berlin", "lisbon"]
    assert not found.complaints


def test_the_configuration_of_the_readme_is_right(tmp_path: Path) -> None:
    """It is the first one that a new user copies."""
    text = (PAGE.parents[1] / "README.md").read_text(encoding="utf-8")
    (config,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    (tmp_path / "hub.toml").write_text(config)

    loaded = load(tmp_path / "hub.toml")

    assert [one.name for one in loaded.replicas] == ["berlin", "lisbon"]
    assert [*loaded.table_map()] == ["customers"]


@pytest.mark.parametrize("words", [*commands()], ids=" ".join)
def test_its_commands_are_there(words: list[str]) -> None:
    """A command that was renamed would fail at a new user's first step."""
    command: Any = all_commands()
    while words and words[0] in (inner := getattr(command, "commands", {})):
        command, words = inner[words[0]], words[1:]

    known = {name for one in command.params for name in one.opts}
    assert {word for word in words if word.startswith("--")} <= known
    takes_words = any(one.param_type_name == "argument" for one in command.params)
    assert not words or words[0].startswith("--") or takes_words
