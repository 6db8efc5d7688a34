"""A state in whose footers an earlier version wrote 100 MB of a record is like any other."""

import json
from pathlib import Path
from urllib.request import urlopen

from checkpoints import pending
from checkpoints.store import StateStore
from streaming.config.sources.load import load
from tests.checkpoints.spoilt_state import spoil
from tests.checkpoints.written_state import WrittenState, replica, ruv
from tests.harness.recorded_hub import served
from tests.streaming.cli.conftest import Slackwater


def test_a_spoilt_state_starts_and_answers(
    state: WrittenState, slackwater: Slackwater, config_file: Path
) -> None:
    """A start that is refused for ever stops everybody for what one replica wrote."""
    state.commit(2, 0, ruv(), [replica(1)])
    spoil(state.root, batch=1, id="1-0", rid=1, offset=0, topic="changes.a")

    opened = pending.load(StateStore(state.root), 2, {}, {}, 10)
    listed = slackwater("quarantine", "list")
    shown = slackwater("quarantine", "show", "1-0")
    status = slackwater("status", "--json")
    level = slackwater("level")
    asked = slackwater("sql", "SELECT id, reason FROM hub_quarantine", "--json")
    with served(load(config_file)) as port, urlopen(f"http://127.0.0.1:{port}/status") as answer:
        document = json.load(answer)

    assert opened.quarantined == {}
    assert [one.code for one in (listed, shown, asked)] == [0, 0, 0]
    assert "1-0" in listed.out
    assert len(shown.out) < 3_000_000
    assert asked.facts["rows"] == [{"id": "1-0", "reason": "size"}]
    assert (level.code, level.err) == (1, "")
    for found in (status.facts, document):
        assert found["quarantine"]["by_reason"] == {"size": 1}
