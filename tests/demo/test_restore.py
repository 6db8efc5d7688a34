"""The demonstration of a replica that is put back to a backup: its verdict can fail."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from checkpoints.root import open_delta
from checkpoints.tables import TableName
from streaming.cli.main import main
from streaming.config.sources.load import load
from streaming.core.conflict.judge import Verdict
from streaming.demo.folder import DemoFolder
from streaming.demo.replicas.acts import EARLY_WRITES, RESTORED
from streaming.demo.verdict.checks import QUOTA, check_evidence
from streaming.demo.verdict.evidence import gather

Kept = tuple[DemoFolder, dict[str, Any]]

GIVEN_BACK = "each lost write that stands is in the file again"


@pytest.fixture
def copy(restored: Kept, tmp_path: Path) -> DemoFolder:
    """A copy to tamper with."""
    return DemoFolder(Path(shutil.copytree(restored[0].root, tmp_path / "copy")))


def broken(folder: DemoFolder) -> set[str]:
    """The claims that do not hold."""
    return {finding.claim for finding in check_evidence(gather(folder)) if not finding.holds}


def test_a_replica_that_was_put_back_ends_equal(
    restored: Kept, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its agent needs no command; what its lost file published is everywhere, its own file too."""
    folder, facts = restored

    assert facts["holds"]
    assert GIVEN_BACK in {claim["claim"] for claim in facts["verdict"]}
    (lost,) = (one["lost"] for one in facts["replicas"] if one["replica"] == RESTORED)
    assert lost >= QUOTA
    said = folder.log(f"agent-{RESTORED}").read_text()
    assert f"the database lacks {lost} changes that it published" in said
    assert main(["demo", "--check", str(folder.root)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) < 24
    assert all(len(line) <= 80 for line in lines[:-4])
    assert f"{lost} came back to its backup" in "\n".join(lines)


def test_writes_before_the_agent_starts_are_in_conflict(restored: Kept) -> None:
    """They were made without what the file had lost, so none of them may overwrite anything."""
    evidence = gather(restored[0])
    (replica,) = evidence.restored
    loss = evidence.losses[replica.rid]

    early = [w.change.csn for w in replica.new_writes if w.at_ms < loss.at_ms]

    assert len(early) >= EARLY_WRITES
    assert {evidence.verdicts[csn]["verdict"] for csn in early} == {Verdict.REJECTED}
    assert {evidence.verdicts[csn]["cause"] for csn in early} >= {"floor"}


def test_a_lost_row_that_did_not_come_back_is_found(copy: DemoFolder) -> None:
    """A hub that counts a replica's own changes as known would leave it so."""
    evidence = gather(copy)
    (replica,) = evidence.restored
    csns = {write.change.csn for write in replica.lost_writes}
    with closing(sqlite3.connect(copy.database(RESTORED))) as file, file:
        file.execute("UPDATE _slackwater_origin SET applying = 1")
        own = 10_000 * replica.rid
        file.execute("DELETE FROM account WHERE id BETWEEN ? AND ?", (own, own + 9_999))
        file.execute("UPDATE _slackwater_origin SET applying = 0")

    assert csns
    assert broken(copy) >= {GIVEN_BACK, "the databases hold the same rows"}


def test_a_lost_write_that_the_hub_does_not_have_is_found(copy: DemoFolder) -> None:
    """The lost file is kept: its journal says what was published."""
    (replica,) = gather(copy).restored
    csn = replica.lost_writes[0].change.csn
    delta = open_delta(load(copy.config).hub.state, TableName.CHANGELOG)

    delta.delete(f"csn = '{csn}' AND kind = 'change'")

    assert "every write is once in changelog or quarantine, and nothing else" in broken(copy)


def test_an_overwritten_row_that_was_not_known_is_found(copy: DemoFolder) -> None:
    """A hub without floors would accept what a replica writes over its own lost change."""
    evidence = gather(copy)
    (replica,) = evidence.restored
    new = {write.change.csn for write in replica.new_writes}
    csn = next(
        row["csn"] for row in evidence.judged if row["csn"] in new and row["cause"] == "floor"
    )
    delta = open_delta(load(copy.config).hub.state, TableName.CHANGELOG)

    delta.update(updates={"verdict": "'accepted'"}, predicate=f"csn = '{csn}' AND kind = 'change'")

    assert "the losers are those that had not applied the row, by their own journals" in broken(
        copy
    )
