"""The demonstration of a replica that dies for ever: its verdict can fail."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from checkpoints.reading.reader import open_state
from checkpoints.root import open_delta
from checkpoints.tables import TableName
from streaming.cli.main import main
from streaming.config.sources.load import load
from streaming.demo.databases.replica_evidence import ReplicaEvidence
from streaming.demo.folder import REPLICAS, DemoFolder
from streaming.demo.replicas.acts import AWAY, DEAD
from streaming.demo.verdict.checks import LOST_ORIGIN, QUOTA, check_evidence
from streaming.demo.verdict.evidence import Evidence, gather
from streaming.facts.names import serving

Kept = tuple[DemoFolder, dict[str, Any]]


@pytest.fixture
def copy(lost_origin: Kept, tmp_path: Path) -> DemoFolder:
    """A copy to tamper with."""
    return DemoFolder(Path(shutil.copytree(lost_origin[0].root, tmp_path / "copy")))


def broken(folder: DemoFolder) -> set[str]:
    """The claims that do not hold."""
    return {finding.claim for finding in check_evidence(gather(folder)) if not finding.holds}


def dead_of(evidence: Evidence) -> ReplicaEvidence:
    """The replica that died."""
    assert evidence.dead is not None
    return evidence.dead


def test_on_a_closed_broker_nothing_is_refused(lost_origin: Kept) -> None:
    """Hub, agents and `retire` need no more than the rights that are listed for them.

    No login but an agent's own may write its topic, so each agent had its own.
    """
    folder = lost_origin[0]

    users = {place.name for place in folder.login("").iterdir()}

    assert users >= {"hub", *REPLICAS}
    log = (folder.broker / "broker.log").read_text()
    assert "Kafka Server started" in log
    assert "Denied" not in log


def test_survivors_get_what_the_hub_has_of_the_dead(
    lost_origin: Kept, capsys: pytest.CaptureFixture[str]
) -> None:
    """The one that was away lacked most of it; what never arrived is counted."""
    folder, facts = lost_origin

    assert facts["holds"]
    assert {claim["claim"] for claim in facts["verdict"]} >= LOST_ORIGIN.keys()
    gone = {one["replica"]: one["never_arrived"] for one in facts["replicas"]}
    assert gone.pop(DEAD) > 0
    assert set(gone.values()) == {0}
    retirement = gather(folder).retirement
    assert retirement is not None
    assert retirement.lacking[AWAY] >= QUOTA
    assert main(["demo", "--check", str(folder.root)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) < 24
    assert all(len(line) <= 80 for line in lines[:-4])
    assert "never arrived" in "\n".join(lines)


def test_the_dead_is_served_no_more(lost_origin: Kept) -> None:
    """It is configured still; nothing waits for it."""
    folder = lost_origin[0]
    config = load(folder.config)

    served = serving(config, open_state(config.hub.state))

    assert {replica.name for replica in served.replicas} == set(REPLICAS) - {DEAD}
    assert {replica.name for replica in gather(folder).survivors} == set(REPLICAS) - {DEAD}


def test_a_hole_in_what_arrived_is_found(copy: DemoFolder) -> None:
    """What is behind the last that arrived may be missing, and nothing before it."""
    evidence = gather(copy)
    csn = evidence.arrived(dead_of(evidence))[0].change.csn
    delta = open_delta(load(copy.config).hub.state, TableName.CHANGELOG)

    delta.delete(f"csn = '{csn}' AND kind = 'change'")

    assert "every write is once in changelog or quarantine, and nothing else" in broken(copy)


def test_a_survivor_that_lacks_some_of_it_is_found(copy: DemoFolder) -> None:
    """Its last batches were not applied."""
    with closing(sqlite3.connect(copy.database(AWAY))) as file, file:
        (place,) = file.execute(
            "SELECT id FROM _slackwater_journal WHERE kind = 'change' ORDER BY id LIMIT 1"
        ).fetchone()
        file.execute("DELETE FROM _slackwater_journal WHERE kind = 'applied' AND id > ?", (place,))

    assert "each survivor has every change of it that the hub has" in broken(copy)


def test_a_death_that_took_nothing_with_it_proves_nothing(copy: DemoFolder) -> None:
    """The run has to lose some writes, and to leave a survivor behind."""
    evidence = gather(copy)
    gone = evidence.arrived(dead_of(evidence))[-1].place
    with closing(sqlite3.connect(copy.database(DEAD))) as file, file:
        file.execute("DELETE FROM _slackwater_journal WHERE id > ?", (gone,))

    assert next(iter(LOST_ORIGIN)) in broken(copy)
