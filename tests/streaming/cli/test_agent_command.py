"""Claims about `agent`."""

from pathlib import Path

import pytest

from connectors.agent.settings import parse
from streaming.core.model.table import ColumnType
from tests.streaming.cli.conftest import Slackwater

pytestmark = pytest.mark.usefixtures("config_file")


def test_an_agent_is_set_up_by_the_hubs_own_configuration(
    slackwater: Slackwater, tmp_path: Path
) -> None:
    """A second description of rids, topics and tables would one day differ from the first."""
    database = tmp_path / "a.db"

    answer = slackwater("agent", "--replica", "a", "--database", str(database), "--print")

    settings = parse(answer.out)
    assert answer.code == 0
    assert (settings.rid, settings.database) == (1, database)
    assert settings.changes_topic == "slackwater.changes.a"
    assert settings.updates_topic == "slackwater.updates.to-a"
    assert settings.tables[0].columns == {"id": ColumnType.INT64}


def test_an_unknown_replica_is_a_wrong_configuration(
    slackwater: Slackwater,
) -> None:
    """Exit code 2 tells a supervisor that starting it again will not help."""
    answer = slackwater("agent", "--replica", "z", "--database", "z.db", "--print")

    assert answer.code == 2
    assert "there is no replica 'z': use one of a, b" in answer.err
