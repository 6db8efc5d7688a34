"""Every field of the configuration says from when on a change of it holds."""

from streaming.cli.start.config import fields
from streaming.config.config import Config
from streaming.config.history import config_history, history_faults
from streaming.config.holding import HOLDS, HoldsFrom

TABLE = {"name": "t", "key": ["k"], "columns": {"k": "text", "v": "text"}}
KNOWN = {
    "kafka": {"bootstrap_servers": "localhost:9092"},
    "replicas": [{"name": "a", "rid": 1}],
    "tables": [TABLE],
    "agreements": [{"name": "to-a", "consumer": "a"}],
}
NEVER = {
    "replicas[].rid": {**KNOWN, "replicas": [{"name": "a", "rid": 2}]},
    "tables[].key": {**KNOWN, "tables": [{**TABLE, "key": ["v"]}]},
}
"""Field -> a configuration that has it otherwise than KNOWN."""


def test_every_field_is_declared() -> None:
    """A new field without a declaration would be applied by guess."""
    assert HOLDS.keys() == {one.path for one in fields()}


def test_a_field_that_never_changes_is_refused_where_a_hub_has_run() -> None:
    """The declaration and the rule that keeps it are two places."""
    history = config_history([Config.model_validate(KNOWN).document()])

    assert NEVER.keys() == {path for path, holds in HOLDS.items() if holds is HoldsFrom.NEVER}
    for changed in NEVER.values():
        assert [*history_faults(Config.model_validate(changed), history)]
