"""The folder of an agreement's packets: found from the file on, and what is wrong with it."""

from pathlib import Path

import pytest

from streaming.config.packet_folders import folder_fault, packet_faults
from streaming.config.rights import HUB, Role, RoleOf, every_role, needed_rights
from streaming.config.sources.load import load
from streaming.core.access.rights import NeededRight, TopicRight
from tests.streaming.config.test_config import SAMPLE


def configured(folder: Path) -> Path:
    """The sample with packets for its third replica."""
    file = folder / "hub.toml"
    file.write_text(SAMPLE.read_text("utf-8").replace("#packets =", "packets ="), "utf-8")
    return file


def test_a_relative_folder_is_beside_the_file(tmp_path: Path) -> None:
    """A hub that systemd starts has another current folder."""
    config = load(configured(tmp_path))

    assert {name: one.packets for name, one in config.by_packets.items()} == {
        "oslo": tmp_path / "packets" / "oslo"
    }
    fed = [config.subscription(one) for one in config.agreements]
    assert [one.packet_every_ms for one in fed] == [None, None, 10_000]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    """A stick that is not mounted looks like a replica that is silent."""
    config = load(configured(tmp_path))
    (fault,) = packet_faults(config)
    assert fault.startswith("agreements[2].packets = ")
    assert "make it" in fault

    (tmp_path / "packets" / "oslo").mkdir(parents=True)
    assert list(packet_faults(config)) == []


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    """Packets are files in it."""
    file = tmp_path / "file"
    file.touch()

    assert folder_fault(file) is not None
    assert folder_fault(tmp_path) is None


@pytest.mark.parametrize("name", ["berlin", "oslo"])
def test_only_the_hub_writes_what_packets_bring(tmp_path: Path, name: str) -> None:
    """Another writer would move the places of its records."""
    config = load(configured(tmp_path))
    write = NeededRight(config.changes_topic(name), TopicRight.WRITE)
    agent = RoleOf(Role.AGENT, name)

    assert (write in needed_rights(config, HUB)) is (name == "oslo")
    assert (write in needed_rights(config, agent)) is (name == "berlin")
    assert (agent in every_role(config)) is (name == "berlin")
