"""Claims about `config`."""

from pathlib import Path

from streaming.cli.config import fields
from streaming.config.config import Config
from tests.streaming.cli.conftest import Slackwater


def test_a_valid_configuration_is_exit_code_0(slackwater: Slackwater) -> None:
    """A deployment checks before it restarts."""
    answer = slackwater("config", "check")

    assert answer.code == 0
    assert "is valid: 2 replicas, 1 table, 2 agreements" in answer.out


def test_check_shows_what_holds_without_secrets(slackwater: Slackwater, config_file: Path) -> None:
    """Defaults and environment included."""
    text = config_file.read_text("utf-8") + '[kafka.options]\n"sasl.password" = "tell-nobody"\n'
    config_file.write_text(text, encoding="utf-8")

    answer = slackwater("config", "check", "--json")

    assert answer.facts["limits"]["page_items"] == 50_000
    assert answer.facts["kafka"]["options"] == {"sasl.password": "***"}
    assert "tell-nobody" not in answer.out


def test_schema_documents_every_field(slackwater: Slackwater) -> None:
    """Type, default and meaning; nothing is without words."""
    facts = slackwater("config", "schema", "--json").facts

    assert all(field["type"] and field["meaning"] for field in facts)
    by_path = {field["path"]: field for field in facts}
    assert by_path["hub.rid"]["default"] == "65534"
    assert by_path["replicas[].rid"]["default"] is None
    assert "timestamp" in by_path["tables[].columns"]["type"]
    assert by_path["tables[].function"]["default"] == '"EPOCH"'
    assert {path.split(".")[0].removesuffix("[]") for path in by_path} == set(Config.model_fields)


def test_schema_needs_no_configuration(slackwater: Slackwater, config_file: Path) -> None:
    """It is read before there is one."""
    config_file.unlink()

    answer = slackwater("config", "schema")

    assert answer.code == 0
    assert len(answer.out.splitlines()) == len(list(fields())) + 2
