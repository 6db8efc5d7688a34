"""What `config apply` stored is taken over by a running hub, and no start undoes it by mistake."""

from pathlib import Path
from typing import Any

from checkpoints.config import StoredConfig
from streaming.config.applied import not_applicable, replaced_by, taken_over
from streaming.config.config import Config
from streaming.config.difference import differences
from streaming.core.access.secret_names import HIDDEN


def config(function: str = "EPOCH", port: int = 9470, password: str = "") -> Config:
    """A configuration; `password`: Kafka's, if there is one."""
    options = {"sasl.password": password} if password else {}
    data: dict[str, Any] = {
        "hub": {"state": "/state"},
        "kafka": {"bootstrap_servers": "localhost:9092", "options": options},
        "replicas": [{"name": "a", "rid": 1}],
        "tables": [
            {
                "name": "t",
                "key": ["k"],
                "columns": {"k": "text", "v": "text"},
                "function": function,
            }
        ],
        "http": {"port": port},
        "spark": {"spark.some.key": "secret"},
    }
    return Config.model_validate(data)


def stored(*versions: Config | tuple[Config, str]) -> list[StoredConfig]:
    """These versions; a pair is one that was applied."""
    return [
        StoredConfig(number, one[0].document(), is_applied=True)
        if isinstance(one, tuple)
        else StoredConfig(number, one.document(), is_applied=False)
        for number, one in enumerate(versions, 1)
    ]


OLD, NEW, OTHER = config(), config("CSN"), config("EPOCH2")


def test_a_file_that_was_applied_over_is_replaced() -> None:
    """A start with it would undo what somebody applied, and nobody would see it."""
    assert replaced_by(OLD, stored(OLD, (NEW, "applied"))) == 2
    assert replaced_by(OLD, stored(OLD, NEW, (OTHER, "applied"))) == 3


def test_a_file_is_replaced_though_what_needs_a_restart_differs() -> None:
    """Who sets another port in an old copy does not mean to undo the rest."""
    assert replaced_by(config(port=1), stored(OLD, (NEW, "applied"))) == 2


def test_the_last_version_and_a_new_one_are_not_replaced() -> None:
    """Also where the file came back to an earlier version by a start or by an apply."""
    assert replaced_by(NEW, stored(OLD, (NEW, "applied"))) is None
    assert replaced_by(OTHER, stored(OLD, (NEW, "applied"))) is None
    assert replaced_by(OLD, stored(OLD, NEW)) is None
    assert replaced_by(OLD, stored(OLD, (NEW, "applied"), (OLD, "applied"))) is None
    assert replaced_by(OLD, []) is None


def test_a_running_hub_keeps_its_own_secrets() -> None:
    """The state has none of them; what decides comes from the applied version."""
    running = config(password="hush")
    applied = Config.from_document(config("CSN", password="other").document())

    found = taken_over(running, applied)

    assert found.kafka.options == {"sasl.password": "hush"}
    assert found.spark == {"spark.some.key": "secret"}
    assert found.tables[0].function == "CSN"
    assert found.hub.state == Path("/state")
    assert found.document() == applied.document()
    assert HIDDEN in found.document()


def test_what_needs_a_restart_is_not_applicable() -> None:
    """A hub would say that it has it, and work by the old one."""
    found = not_applicable(differences(OLD, config("CSN", port=1)))

    assert [one.path for one in found] == ["http.port"]
