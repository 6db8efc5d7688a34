"""The configuration of a hub's services, one after the other."""

from pathlib import Path

import pytest

import checkpoints.config as stored
from checkpoints.config import apply_configuration, last_applied, store_configuration
from checkpoints.store import StateStore
from streaming.config.config import Config
from streaming.config.sources.load import load
from streaming.core.model.errors import SourceError
from streaming.hub.in_force import ConfigInForce
from tests.checkpoints.written_state import WrittenState
from tests.streaming.cli.conftest import CONFIG


def with_function(config: Config, function: str) -> Config:
    """The configuration with this function for its table."""
    table = config.tables[0].model_copy(update={"function": function})
    return config.model_copy(update={"tables": (table,)})


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """A hub's, whose state is empty."""
    (tmp_path / "hub.toml").write_text(CONFIG, encoding="utf-8")
    WrittenState(tmp_path / "state").create()
    return load(tmp_path / "hub.toml")


def test_a_later_version_is_taken_over_once(config: Config) -> None:
    """And once a service works by it there is no way back."""
    store, applied = StateStore(config.hub.state), with_function(config, "CSN")
    in_force = ConfigInForce(config)
    in_force.opened(store_configuration(store, config.document(), 1))
    assert not in_force.is_superseded(store, last_applied(store))
    assert apply_configuration(store, applied.document(), 1, 2) == 2

    assert last_applied(store) == 2
    store_configuration(store, with_function(config, "EPOCH2").document(), 3)  # by another hub
    assert in_force.is_superseded(store, last_applied(store))
    assert in_force.take_over().tables[0].function == "CSN"
    assert (in_force.version, in_force.is_new) == (2, True)
    in_force.opened(2)
    assert not in_force.is_new
    assert not in_force.is_superseded(store, 2)


@pytest.mark.parametrize("function", ["no_such_module:decide", "MAX(no_column)"])
def test_what_the_hub_cannot_work_by_is_refused(
    config: Config, function: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It goes on by the one before, says why once, and takes the next that it can work by."""
    store = StateStore(config.hub.state)
    in_force = ConfigInForce(config)
    in_force.opened(store_configuration(store, config.document(), 1))
    apply_configuration(store, with_function(config, function).document(), 1, 2)

    assert not in_force.is_superseded(store, 2)
    assert not in_force.is_superseded(store, 2)
    assert caplog.text.count("configuration 2 cannot be taken") == 1
    apply_configuration(store, with_function(config, "CSN").document(), 2, 3)
    assert in_force.is_superseded(store, 3)


def test_a_version_with_which_no_service_opens_is_given_up(config: Config) -> None:
    """Such as one whose topics may not be made: a hub that ended would end at each start."""
    store = StateStore(config.hub.state)
    in_force = ConfigInForce(config)
    in_force.opened(store_configuration(store, config.document(), 1))
    apply_configuration(store, with_function(config, "CSN").document(), 1, 2)
    assert in_force.is_superseded(store, 2)
    in_force.take_over()

    assert in_force.fall_back(SourceError("no")) == config
    assert (in_force.version, in_force.is_new) == (1, False)
    assert not in_force.is_superseded(store, 2)


def test_nothing_is_applied_over_what_is_stored_while_it_is_looked(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another hub may start with a file of its own just then."""
    store, other = StateStore(config.hub.state), with_function(config, "EPOCH2").document()
    compared_with = store_configuration(store, config.document(), 1)

    def looked(store: StateStore) -> int:
        monkeypatch.undo()
        store_configuration(store, other, 2)
        return compared_with

    monkeypatch.setattr(stored, "last_version", looked)

    applied = with_function(config, "CSN").document()
    assert apply_configuration(store, applied, compared_with, 3) is None
    assert (stored.last_version(store), last_applied(store)) == (2, 0)
