"""The section `compare` of an agreement: where the database is, without a password."""

import tomllib
from pathlib import Path

import pytest

from connectors.postgres import database as postgres
from streaming.cli.start.config import fields
from streaming.config.comparison import CompareConfig
from streaming.config.config import Config
from streaming.config.sources.load import load
from streaming.core.model.errors import ConfigError

SAMPLE = Path(__file__).parents[3] / "deploy" / "hub.toml"


def configured(folder: Path, section: str) -> Path:
    """The sample in a folder, with this section for its first agreement."""
    file, text = folder / "hub.toml", SAMPLE.read_text("utf-8")
    agreement = 'name = "berlin"\nconsumer = "berlin"\n'
    file.write_text(text.replace(agreement, f"{agreement}compare = {{ {section} }}\n"), "utf-8")
    return file


def section(folder: Path, text: str) -> CompareConfig:
    """The section as it is read."""
    found = load(configured(folder, text)).compared
    assert list(found) == ["berlin"]
    return found["berlin"]


def test_a_file_is_found_from_the_configuration_on(tmp_path: Path) -> None:
    """The process beside the hub runs wherever the hub was started."""
    found = section(tmp_path, 'database = "berlin.db"')

    assert found.database == f"sqlite:{tmp_path}/berlin.db"
    assert (found.every_s, found.rows_per_s, found.load) == (3600, 20_000, None)


def test_a_server_is_named_as_it_is(tmp_path: Path) -> None:
    """Its address is the same from everywhere; another pace and interval hold."""
    dsn = "postgresql://reader@lisbon:5433/shop"

    found = section(tmp_path, f'database = "{dsn}", every_s = 60, rows_per_s = 5')

    assert (found.database, found.every_s, found.rows_per_s) == (dsn, 60, 5)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("every_s = 60", "agreements[0].compare.database is missing: add it"),
        (
            'database = "b.db", every = 60',
            "agreements[0].compare.every is not a field: did you mean every_s?",
        ),
        (
            'database = "mysql://lisbon/shop"',
            "agreements[0].compare.database: there is no connector for mysql",
        ),
        (
            'database = "b.db", rows_per_s = 0',
            "agreements[0].compare.rows_per_s = 0: should be greater than 0",
        ),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    """A hub that starts without its comparison looks as if nothing differed."""
    with pytest.raises(ConfigError) as refused:
        load(configured(tmp_path, text))

    assert said in str(refused.value)


@pytest.mark.parametrize(
    "place", ["reader:hunter2@lisbon/shop", "reader@lisbon/shop?password=hunter2"]
)
@pytest.mark.parametrize("is_installed", [True, False])
def test_a_password_is_refused_and_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, *, is_installed: bool
) -> None:
    """The configuration is stored in the state and shown by many; with or without the driver."""
    if not is_installed:
        monkeypatch.setattr(postgres, "check_place", _without_driver)

    with pytest.raises(ConfigError) as refused:
        load(configured(tmp_path, f'database = "postgresql://{place}"'))

    assert "agreements[0].compare.database: " in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_who_only_reads_it_needs_no_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The agents of other databases read the same file."""
    monkeypatch.setattr(postgres, "check_place", _without_driver)

    found = section(tmp_path, 'database = "postgresql://reader@lisbon/shop"')

    assert found.database == "postgresql://reader@lisbon/shop"


def test_a_stored_configuration_still_has_it(tmp_path: Path) -> None:
    """A hub compares its configuration with the one that it worked with last."""
    config = load(configured(tmp_path, 'database = "berlin.db"'))

    assert Config.from_document(config.document()).agreements == config.agreements


def test_its_fields_are_on_the_page_and_in_the_sample() -> None:
    """A field that nobody shows is not found by those who need it."""
    text = SAMPLE.read_text("utf-8").replace("#compare.", "compare.")
    (sample,) = (one["compare"] for one in tomllib.loads(text)["agreements"] if "compare" in one)
    known = CompareConfig.model_fields

    assert {f"agreements[].compare.{name}" for name in known} <= {one.path for one in fields()}
    assert sample.keys() == known.keys() - {"load"}
    assert sample["every_s"] == known["every_s"].default
    assert sample["rows_per_s"] == known["rows_per_s"].default


def _without_driver(_: str) -> None:
    """As where the package of PostgreSQL's driver is not installed."""
    raise ConfigError("the driver cannot be loaded") from ImportError("no psycopg")
