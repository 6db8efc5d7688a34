"""The demonstration from outside: its verdict, what it leaves, and how it ends."""

import os
import signal
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from checkpoints.root import open_delta
from checkpoints.tables import TableName
from streaming.cli.main import main
from streaming.config.sources.load import load
from streaming.demo.folder import REPLICAS, DemoFolder
from streaming.demo.replicas.acts import WARM_UP_EPOCHS
from streaming.demo.verdict.checks import check_evidence
from streaming.demo.verdict.evidence import gather
from streaming.demo.verdict.latency import latencies
from tests.demo.processes import Demonstration

Kept = tuple[DemoFolder, dict[str, Any]]
Demonstrate = Callable[[], Demonstration]


def broken(folder: DemoFolder) -> set[str]:
    """The claims that do not hold, and the command's exit code with them."""
    claims = {finding.claim for finding in check_evidence(gather(folder)) if not finding.holds}
    assert main(["demo", "--check", str(folder.root)]) == (1 if claims else 0)
    return claims


def delete_one(folder: DemoFolder, name: TableName, column: str, value: str) -> None:
    """Remove from a Delta table of the kept state the first row with this value."""
    table = open_delta(load(folder.config).hub.state, name)
    rows = table.to_pyarrow_table(columns=["hub_epoch", "place", column]).to_pylist()
    found = next(row for row in rows if row[column] == value)
    table.delete(f"hub_epoch = {found['hub_epoch']} AND place = {found['place']}")


def write(folder: DemoFolder, statement: str, *, captured: bool) -> None:
    """One statement in the last replica's file, behind its agent's back or not."""
    with closing(sqlite3.connect(folder.database("oslo"))) as file, file:
        file.execute("UPDATE _slackwater_origin SET applying = ?", (0 if captured else 1,))
        file.execute(statement)
        file.execute("UPDATE _slackwater_origin SET applying = 0")


def test_its_history_is_judged_again_and_audited(kept: Kept) -> None:
    """Thousands of changes of real agents, in whatever batches their hub took them."""
    config = str(kept[0].config)

    assert main(["replay", "--config", config]) == 0
    assert main(["verify", "--config", config]) == 0


def test_three_colliding_replicas_end_equal(kept: Kept) -> None:
    """What a new user sees first: everything that was promised holds, on real parts."""
    facts = kept[1]

    assert facts["holds"]
    assert all(claim["holds"] for claim in facts["verdict"])
    assert all(count >= 20 for count in facts["conflicts"]["by_kind"].values())
    assert facts["conflicts"]["retries_won"] >= 1
    assert facts["latency_ms"]["count"] > 0
    assert len({replica["rows"] for replica in facts["replicas"]}) == 1
    assert all(replica["written"] and replica["received"] for replica in facts["replicas"])


def test_the_clock_runs_when_the_hub_is_warm(kept: Kept) -> None:
    """The first batches load code and compile it: they take ten times as long as later ones."""
    evidence = gather(kept[0])
    since_ms = evidence.timing.measured_since_ms
    replicas = evidence.replicas
    early = [w.change.csn for r in replicas for w in r.writes if w.at_ms < since_ms]
    cold = replace(evidence, timing=replace(evidence.timing, measured_since_ms=0))

    timed = latencies(evidence)

    assert kept[1]["warm_up_writes"] == len(early) > WARM_UP_EPOCHS
    assert kept[1]["latency_ms"]["count"] == len(timed) < len(latencies(cold))
    known = set(evidence.verdicts) | {row["csn"] for row in evidence.quarantine}
    assert known.issuperset(early)
    at_begin = max(a.hub_epoch for r in replicas for a in r.applied if a.at_ms < since_ms)
    assert at_begin >= WARM_UP_EPOCHS - 2  # the last ones may be committed and not applied yet


def test_a_latency_is_the_sum_of_its_parts(kept: Kept) -> None:
    """Else nobody could tell whether agent, hub or database is slow."""
    by_part = kept[1]["latency_ms"]["by_part"]

    assert list(by_part) == ["agent", "hub", "apply"]
    assert all(part["count"] == kept[1]["latency_ms"]["count"] > 0 for part in by_part.values())
    for one in latencies(gather(kept[0])):
        assert one.agent_ms + one.hub_ms + one.apply_ms == one.total_ms
        assert min(one.agent_ms, one.hub_ms, one.apply_ms) >= -1  # each clock is rounded


def test_the_result_fits_one_screen(kept: Kept, capsys: pytest.CaptureFixture[str]) -> None:
    """A terminal of 80 columns and 24 lines shows all of it, the verdict first."""
    assert main(["demo", "--check", str(kept[0].root)]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert len(lines) < 24  # the prompt is the last one
    assert all(len(line) <= 80 for line in lines[:-4])  # the rest contain paths
    assert lines[0] == "All 10 checks pass:"
    assert any(line.startswith("latency") and "p50" in line for line in lines)
    assert lines[-4:] == kept[1]["try_next"]


def test_the_three_commands_to_try_next_work(kept: Kept) -> None:
    """They are pasted as they are printed, by somebody whose PATH lacks `slackwater`."""
    cd, *commands = kept[1]["try_next"]
    assert len(commands) == 3

    for command in commands:
        shell = subprocess.run(
            ["/bin/sh", "-c", f"{cd}\n{command}\n"],
            env={"PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert shell.returncode == 0, shell.stderr
        assert shell.stdout


def test_a_kept_folder_can_be_looked_at(kept: Kept, capsys: pytest.CaptureFixture[str]) -> None:
    """The ordinary commands work on the state that was kept, and say that its hub has ended."""
    folder = kept[0]

    codes = [
        main([*command, "--config", str(folder.config)])
        for command in (["status"], ["level"], ["conflicts", "list"])
    ]

    shown = capsys.readouterr().out
    assert codes == [1, 1, 0]
    assert shown.startswith("problem: no hub is running")
    assert "cannot say: " in shown
    assert "insert_exists" in shown
    assert all(folder.log(f"agent-{name}").exists() for name in REPLICAS)
    assert folder.log("hub").exists()


def test_a_copy_that_nobody_touched_passes(copy: DemoFolder) -> None:
    """A check that always fails would pass every test below."""
    assert broken(copy) == set()


def test_a_row_that_differs_in_one_file_is_found(copy: DemoFolder) -> None:
    """The files are what users have: one of them that differs is the worst that can happen."""
    write(copy, "UPDATE account SET balance = balance || '1' WHERE id = 30001", captured=False)

    assert broken(copy) == {
        "the databases hold the same rows",
        "the last accepted image of every row is the row in the databases",
    }


def test_a_value_of_another_type_is_found(copy: DemoFolder) -> None:
    """Equal to Python is not the same row: another application may tell 1 from 1.0."""
    write(
        copy,
        "UPDATE account SET owner = CAST(owner AS BLOB) WHERE id = 30001",
        captured=False,
    )

    assert "the databases hold the same rows" in broken(copy)


def test_a_row_that_is_gone_is_found(copy: DemoFolder) -> None:
    """A row that one replica lacks is a difference like any other."""
    write(copy, "DELETE FROM account WHERE id = 30001", captured=False)

    assert "the databases hold the same rows" in broken(copy)


def test_a_write_that_the_hub_never_saw_is_found(copy: DemoFolder) -> None:
    """Files may be equal by luck: a journal's row without a verdict is a lost write."""
    write(copy, "UPDATE account SET note = note WHERE id = 30001", captured=True)

    assert broken(copy) == {"every write is once in changelog or quarantine, and nothing else"}


def test_a_conflict_that_is_not_recorded_is_found(copy: DemoFolder) -> None:
    """A loser that nobody can look up was silently thrown away."""
    delete_one(copy, TableName.CONFLICTS, "kind", "insert_exists")

    assert broken(copy) == {"every loser is once in conflicts, and nothing else"}


def test_an_accepted_change_that_is_not_logged_is_found(copy: DemoFolder) -> None:
    """The log is what everything is rebuilt from."""
    delete_one(copy, TableName.CHANGELOG, "verdict", "accepted")

    assert "every write is once in changelog or quarantine, and nothing else" in broken(copy)


def test_a_loser_that_is_not_logged_is_found(copy: DemoFolder) -> None:
    """Its conflict points to nothing then."""
    delete_one(copy, TableName.CHANGELOG, "verdict", "rejected")

    assert {
        "every write is once in changelog or quarantine, and nothing else",
        "every loser is once in conflicts, and nothing else",
    } <= broken(copy)


def test_a_verdict_that_the_journals_do_not_support_is_found(copy: DemoFolder) -> None:
    """A hub that rejects whom it likes would still be consistent with itself."""
    delta = open_delta(load(copy.config).hub.state, TableName.CHANGELOG)
    rows = delta.to_pyarrow_table(columns=["csn", "verdict", "kind"]).to_pylist()
    csn = next(row["csn"] for row in rows if row["verdict"] == "rejected")
    delta.update(updates={"verdict": "'accepted'"}, predicate=f"csn = '{csn}' AND kind = 'change'")

    assert {
        "every loser is once in conflicts, and nothing else",
        "the losers are those that had not applied the row, by their own journals",
    } <= broken(copy)


def test_too_few_conflicts_fail(copy: DemoFolder) -> None:
    """A workload in which nothing collides proves nothing."""
    delta = open_delta(load(copy.config).hub.state, TableName.CONFLICTS)
    delta.delete("kind = 'update_origin_change'")

    assert "at least 20 conflicts of each kind" in broken(copy)


def test_a_folder_in_use_is_refused(kept: Kept) -> None:
    """A demonstration starts from nothing: what is there may be somebody's."""
    assert main(["demo", "--keep", str(kept[0].root)]) == 2


@pytest.mark.parametrize("times", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_ctrl_c_while_the_hub_starts_leaves_nothing(demonstrate: Demonstrate, times: int) -> None:
    """Half of the parts run then, one of them has a child of its own, and people press twice."""
    demo = demonstrate()
    demo.until(lambda: demo.pid_of("streaming.cli.main run") is not None)

    for _ in range(times):
        demo.interrupt()

    assert demo.ended()[0] == 130
    assert demo.processes() == {}


@pytest.mark.slow
def test_ctrl_c_while_the_broker_starts_leaves_nothing(demonstrate: Demonstrate) -> None:
    """Nobody has a handle on a process that is just being started."""
    demo = demonstrate()
    demo.until(lambda: demo.pid_of("kafka.Kafka") is not None)

    demo.interrupt()

    assert demo.ended()[0] == 130
    assert demo.processes() == {}


@pytest.mark.slow
def test_ctrl_c_while_replicas_write_leaves_nothing(demonstrate: Demonstrate) -> None:
    """The end in order: writers, agents, hub, broker; only the demonstration hears the signal."""
    demo = demonstrate()
    journal = "SELECT count(*) FROM _slackwater_journal WHERE kind = 'change'"

    def writes() -> bool:
        try:
            with closing(sqlite3.connect(DemoFolder(demo.folder).database("oslo"))) as file:
                return bool(file.execute(journal).fetchone()[0])
        except sqlite3.OperationalError:
            return False

    demo.until(lambda: DemoFolder(demo.folder).database("oslo").exists())
    demo.until(writes)

    os.kill(demo.process.pid, signal.SIGINT)

    assert demo.ended()[0] == 130
    assert demo.processes() == {}


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ("streaming.cli.main run", "the hub has ended"),
        pytest.param("streaming.cli.main agent", "the agent of", marks=pytest.mark.slow),
        pytest.param("kafka.Kafka", "the broker has ended", marks=pytest.mark.slow),
    ],
)
def test_a_part_that_dies_ends_the_demonstration(
    demonstrate: Demonstrate, part: str, name: str
) -> None:
    """Who waits for a dead part waits for ever; its log says why it died."""
    demo = demonstrate()
    demo.until(lambda: demo.pid_of("streaming.cli.main agent") is not None)
    pid = demo.pid_of(part)
    assert pid is not None

    os.kill(pid, signal.SIGKILL)

    code, _, error = demo.ended()
    assert code == 1
    assert name in error
    assert "ends with:" in error
    assert demo.processes() == {}
