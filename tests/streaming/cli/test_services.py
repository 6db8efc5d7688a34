"""Claims about `services`."""

from pathlib import Path

import pytest

from connectors.kafka.embedded.broker import Broker
from tests.streaming.cli.conftest import Slackwater


@pytest.mark.kafka
def test_a_broker_started_by_one_command_is_stopped_by_another(
    slackwater: Slackwater, tmp_path: Path
) -> None:
    """The two commands are two processes; the folder is all they share."""
    folder = tmp_path / "services"
    try:
        up = slackwater("services", "up", "--folder", str(folder), "--json")
        again = slackwater("services", "up", "--folder", str(folder), "--json")
        down = slackwater("services", "down", "--folder", str(folder))

        assert (up.code, down.code) == (0, 0)
        assert up.facts["bootstrap_servers"].startswith("127.0.0.1:")
        assert up.facts["pid"] == again.facts["pid"]
        assert Broker.running(folder) is None
    finally:
        if broker := Broker.running(folder):
            broker.kill()


def test_nothing_to_stop_is_exit_code_1(slackwater: Slackwater, tmp_path: Path) -> None:
    """Most likely the folder is another."""
    answer = slackwater("services", "down", "--folder", str(tmp_path))

    assert answer.code == 1
    assert "no broker runs" in answer.err
