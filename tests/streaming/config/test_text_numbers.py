"""A text in the place of a number is refused: what it means was never asked."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from streaming.config.config import Config
from streaming.config.errors import section
from streaming.config.sources.load import load
from streaming.config.text_numbers import text_numbers
from streaming.core.model.errors import ConfigError
from tests.streaming.config.test_config import GOOD

NUMBERS_MIN = 30


def numbers(model: type[BaseModel], place: str = "") -> Iterator[tuple[type[BaseModel], str]]:
    """Every field of a number, with its section."""
    for name, field in model.model_fields.items():
        inner = section(model, name)
        if inner is not None:
            yield from numbers(inner, f"{place}{name}.")
        elif field.annotation is int:
            yield model, name


def test_a_text_is_refused_in_every_section(tmp_path: Path) -> None:
    """Each is named by its field, beside what else is wrong."""
    file = tmp_path / "hub.toml"
    text = GOOD.replace("rid = 2", 'rid = "2"').replace(
        'consumer = "b"', 'consumer = "b"\ncompare = { database = "b.db", every_s = "20" }'
    )
    limits = '[limits]\nwindow_rows = "9"\ndriver_batch_records = "20"\nbatch_ms = 0\n'
    file.write_text(f"{text}\n{limits}")

    with pytest.raises(ConfigError) as refused:
        load(file)

    due = "give a number, without quotes"
    assert str(refused.value).splitlines()[:4] == [
        f"{file}: {line}: {due}"
        for line in (
            "replicas[1].rid = '2'",
            "agreement to-b: agreements[1].compare.every_s = '20'",
            "limits.window_rows = '9'",
            "limits.driver_batch_records = '20'",
        )
    ]
    assert "limits.batch_ms = 0: " in str(refused.value)


def test_no_number_is_left_out() -> None:
    """A field that is added is refused too, whichever way its type is written."""
    found = [*numbers(Config)]

    assert len(found) >= NUMBERS_MIN
    for model, name in found:
        assert [*text_numbers(model, {name: "20"})], name


def test_what_may_be_a_text_stays_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A word that stands for a number, a name of digits, and whatever the environment has."""
    file = tmp_path / "hub.toml"
    text = GOOD.replace('name = "to-b"', 'name = "20"')
    file.write_text(f'{text}\n[limits]\ndriver_batch_records = "auto"\n')
    monkeypatch.setenv("SLACKWATER_HUB__TRIGGER_MS", "250")

    found = load(file)

    assert found.hub.trigger_ms == 250
    assert found.agreements[1].name == "20"
    assert found.limits.driver_batch_records == "auto"
