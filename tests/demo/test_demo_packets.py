"""The demonstration of a replica that is fed by packets: its verdict can fail."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from streaming.demo.folder import DemoFolder
from streaming.demo.replicas.acts import BEHIND, BY_PACKETS
from streaming.demo.verdict.checks import LOST_PACKET, check_evidence
from streaming.demo.verdict.evidence import gather

Kept = tuple[DemoFolder, dict[str, Any]]


@pytest.fixture
def copy(by_packets: Kept, tmp_path: Path) -> DemoFolder:
    """A copy to tamper with."""
    return DemoFolder(Path(shutil.copytree(by_packets[0].root, tmp_path / "copy")))


def broken(folder: DemoFolder) -> set[str]:
    """The claims that do not hold."""
    return {finding.claim for finding in check_evidence(gather(folder)) if not finding.holds}


def edit(folder: DemoFolder, **changed: int) -> None:
    """Change what is known of the lost packet."""
    known = json.loads(folder.lost_packet.read_text())
    folder.lost_packet.write_text(json.dumps({**known, **changed}))


def test_what_was_lost_came_again(by_packets: Kept) -> None:
    """Three files are equal though one packet never arrived, and others waited for it."""
    folder, facts = by_packets
    lost = gather(folder).lost_packet

    assert facts["holds"]
    assert {claim["claim"] for claim in facts["verdict"]} >= LOST_PACKET.keys()
    assert lost is not None
    assert lost.waiting >= BEHIND
    entries = json.loads(folder.lost_packet.read_text())["entries"]
    assert entries, "no number of the row was lowered"
    assert all(one["after"] < one["before"] for one in entries)
    batches = {one["replica"]: one["batches"] for one in facts["replicas"]}
    assert batches[BY_PACKETS] > BEHIND


def test_a_replica_that_skips_a_lost_packet_is_seen(copy: DemoFolder) -> None:
    """As if it had been lost before what oslo has applied since."""
    edit(copy, at_ms=0, first_prev=0)

    assert broken(copy) == {next(iter(LOST_PACKET))}


def test_a_packet_that_never_comes_again_is_seen(copy: DemoFolder) -> None:
    """As if it had held a hub epoch that oslo never applied."""
    edit(copy, last_hub_epoch=10**9)

    assert broken(copy) == {list(LOST_PACKET)[1]}
