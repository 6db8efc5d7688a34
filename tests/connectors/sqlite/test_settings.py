"""An agent's settings are one document; what is wrong with it is reported before it starts."""

from dataclasses import replace
from pathlib import Path

import pytest

from connectors.agent.settings import AgentSettings, DatabaseAddress, PacketSettings, parse
from connectors.sqlite.__main__ import main
from streaming.core.model.errors import ConfigError
from tests.connectors.sqlite.sqlite_replica import ITEMS, PAIRS

SETTINGS = AgentSettings(
    DatabaseAddress("sqlite", "/data/r1.db"),
    "r1",
    1,
    "localhost:9092",
    "slackwater.changes.r1",
    "slackwater.updates.to-r1",
    (ITEMS, PAIRS),
    {"sasl.jaas.config": 'username="u" password="hidden"'},
    record_bytes=5_000,
    rows_are_shared=True,
    journal_rows=7,
)


PACKETS = PacketSettings("/packets", 2.5, "/data/r1.outbox", again=True)


@pytest.mark.parametrize(
    "settings",
    [SETTINGS, replace(SETTINGS, updates_topic=None), replace(SETTINGS, packets=PACKETS)],
)
def test_settings_come_back(settings: AgentSettings) -> None:
    """Who starts an agent writes the document, the agent reads it."""
    assert parse(settings.text()) == settings


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('{"database"', '{"data"', "lack 'database'"),
        ('"rid":1', '"rod":1', "rod"),
        ('"int64"', '"int65"', "int65"),
        ('"key":["id"]', '"key":["di"]', "its key must be some of its columns"),
        ('{"database"', '"database"', "not JSON"),
    ],
)
def test_a_bad_document_is_refused_without_showing_secrets(
    old: str, new: str, complaint: str
) -> None:
    """The message says what is wrong."""
    with pytest.raises(ConfigError, match=complaint) as refused:
        parse(SETTINGS.text().replace(old, new, 1))

    assert "hidden" not in str(refused.value)


def test_a_program_that_cannot_start_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1 with one line; 2 for a wrong call."""
    bad = tmp_path / "settings.json"
    bad.write_text("{}")

    assert main([str(bad)]) == 1
    assert "agent: the agent's settings lack 'tables'" in capsys.readouterr().err
    assert main([]) == 2


@pytest.mark.parametrize("data", [b"\xef\xbb\xbf{}", "{}".encode("utf-16")])
def test_a_file_of_settings_is_read_as_people_save_it(
    data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mark before UTF-8 is nothing; UTF-16 is refused by its name."""
    file = tmp_path / "agent.json"
    file.write_bytes(data)

    assert main([str(file)]) == 1

    said = capsys.readouterr().err
    assert ("lack 'tables'" if data.endswith(b"}") and data[:1] == b"\xef" else "UTF-16") in said
