"""A hub's configuration and state, and the command run in this process."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from streaming.cli.main import main
from tests.checkpoints.written_state import WrittenState

CONFIG = """
[hub]
name = "centre"
[kafka]
bootstrap_servers = "localhost:9092"
[[replicas]]
name = "a"
rid = 1
[[replicas]]
name = "b"
rid = 2
[[tables]]
name = "t"
key = ["id"]
columns = { id = "int64" }
[[agreements]]
name = "to-a"
consumer = "a"
[[agreements]]
name = "to-b"
consumer = "b"
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command said."""

    code: int
    out: str
    err: str

    @property
    def facts(self) -> Any:  # noqa: ANN401  # whatever JSON it is
        """The answer of --json."""
        return json.loads(self.out)


Slackwater = Callable[..., Answer]


@pytest.fixture
def config_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The configuration of a hub with replicas a and b, which the command finds."""
    path = tmp_path / "hub.toml"
    path.write_text(CONFIG, encoding="utf-8")
    monkeypatch.setenv("SLACKWATER_CONFIG", str(path))
    return path


@pytest.fixture
def state(config_file: Path) -> WrittenState:
    """The hub's state: empty tables."""
    return WrittenState(config_file.parent / "state").create()


@pytest.fixture
def slackwater(config_file: Path, capsys: pytest.CaptureFixture[str]) -> Slackwater:  # noqa: ARG001
    """The command."""

    def run(*arguments: str) -> Answer:
        capsys.readouterr()
        code = main(arguments)
        received = capsys.readouterr()
        return Answer(code, received.out, received.err)

    return run
