"""A state of an older format becomes one of this format, and stays what it was itself.

The older format of these tests calls two columns otherwise, lacks one and has one more.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake

from checkpoints import migration
from checkpoints.commit.epochs import COMMIT
from checkpoints.format_number import FORMAT
from checkpoints.maintenance.backup import MANIFEST, Backup, restore
from checkpoints.migration import Migration
from checkpoints.reading.reader import open_state
from checkpoints.tables import TableName
from streaming.cli.main import main
from streaming.core.model.errors import StateError
from tests.checkpoints.kept_state import KeptState, goes_on, hub_of, said_of, unpacked
from tests.harness.replays import check_audit_is_sound, check_replay_is_equal

NEWEST = Path(__file__).parent / "states" / f"format-{FORMAT}.tar.xz"
OLDER = FORMAT - 1


def called(old: str, new: str) -> Callable[[pa.Table], pa.Table]:
    """A step that gives a column another name."""

    def step(rows: pa.Table) -> pa.Table:
        return rows.rename_columns([new if name == old else name for name in rows.column_names])

    return step


STEP = Migration(
    "quarantine.why is called reason, conflicts.loss is called loser_csn",
    {
        TableName.QUARANTINE: called("why", "reason"),
        TableName.CONFLICTS: called("loss", "loser_csn"),
    },
)


def rewrite(state: Path, name: TableName, change: Callable[[pa.Table], pa.Table]) -> None:
    """Replace all rows of a table, and its schema."""
    rows = DeltaTable(state / name).to_pyarrow_table()
    write_deltalake(state / name, change(rows), mode="overwrite", schema_mode="overwrite")


def set_format(number: int) -> Callable[[pa.Table], pa.Table]:
    """A change of `epochs` to what another version would have written."""

    def change(rows: pa.Table) -> pa.Table:
        place, field = rows.schema.get_field_index("format"), rows.schema.field("format")
        return rows.set_column(place, field, pa.array([number] * rows.num_rows, field.type))

    return change


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KeptState:
    """The hub's folder as a version of the older format would have left it."""
    kept = unpacked(NEWEST, tmp_path / "hub")
    state = kept.folder / "state"
    rewrite(state, TableName.QUARANTINE, called("reason", "why"))
    rewrite(state, TableName.CONFLICTS, called("loser_csn", "loss"))
    rewrite(state, TableName.EVENTS, lambda rows: rows.drop_columns(["content"]))
    rewrite(state, TableName.PENDING, lambda rows: rows.append_column("more", rows["batch"]))
    rewrite(state, TableName.EPOCHS, set_format(OLDER))
    monkeypatch.setattr(migration, "MIGRATIONS", {FORMAT: STEP})
    return kept


def told(at: KeptState, *words: str) -> int:
    """The exit code of a command."""
    return main([*words, "--config", str(at.folder / "hub.toml")])


def replace_state(old: KeptState, new: Path) -> None:
    """Let the hub's configuration name the new state."""
    state = old.folder / "state"
    state.rename(state.with_name("older"))
    new.rename(state)


def files(folder: Path) -> dict[str, str]:
    """Every file that a hub reads, with its digest."""
    found = sorted(folder.rglob("*"))
    return {
        str(file): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in found
        if file.is_file() and file.suffix != ".lock"
    }


def test_first_it_is_only_said(old: KeptState, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a folder nothing is written."""
    before = files(old.folder)

    assert told(old, "migrate") == 0

    out = capsys.readouterr().out
    assert f"format {OLDER}" in out
    assert f"format {FORMAT}: {STEP.says}" in out
    assert files(old.folder) == before


def test_the_new_state_says_what_the_old_one_said(old: KeptState) -> None:
    """Rows, RUVs, agreements, quarantine and conflicts; the old one is not touched."""
    before = files(old.folder)
    new = old.folder / "migrated"

    assert told(old, "migrate", str(new)) == 0

    assert {name: files(old.folder)[name] for name in before} == before
    replace_state(old, new)
    assert json.loads(json.dumps(said_of(old.config))) == old.said
    check_replay_is_equal(old.folder / "state")
    check_audit_is_sound(old.folder / "state")
    assert told(old, "migrate") == 0


def test_a_hub_goes_on_from_the_new_state(old: KeptState) -> None:
    """Its next hub epoch follows the last one of the old state, in the same generation."""
    new = old.folder / "migrated"
    assert told(old, "migrate", str(new)) == 0
    replace_state(old, new)
    last = open_state(old.config.hub.state).commit

    hub, csn = goes_on(old)

    (judged,) = [one for one in hub.changelog() if one.csn == csn]
    assert last is not None
    assert judged.hub_epoch == last.state.hub_epoch + 1
    assert hub.service is not None
    assert hub.service.hub.state.generation == last.state.generation


def test_a_hub_alters_nothing_of_another_format(old: KeptState) -> None:
    """It says which command to give, before it adds a column to any table."""
    before = files(old.folder / "state")

    with pytest.raises(StateError, match="slackwater migrate"):
        hub_of(old)

    assert files(old.folder / "state") == before


@pytest.mark.parametrize(
    ("number", "reason"), [(FORMAT + 1, "run the newer version"), (OLDER - 1, "earlier version")]
)
def test_a_format_that_cannot_be_migrated(
    old: KeptState, number: int, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A newer one, and one whose step this version does not have."""
    rewrite(old.folder / "state", TableName.EPOCHS, set_format(number))

    assert told(old, "migrate", str(old.folder / "migrated")) == 1

    assert reason in capsys.readouterr().err
    assert not (old.folder / "migrated").exists()


def test_an_unfinished_batch_is_finished_by_the_version_that_began_it(
    old: KeptState, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its plan is in the older format, and so is what was written of it."""

    def without_last_commit(rows: pa.Table) -> pa.Table:
        is_last = pc.equal(rows["batch"], pc.max(rows["batch"]))
        return rows.filter(pc.invert(pc.and_(is_last, pc.equal(rows["kind"], COMMIT))))

    rewrite(old.folder / "state", TableName.EPOCHS, without_last_commit)

    assert told(old, "migrate", str(old.folder / "migrated")) == 1

    assert "is not finished" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("place", "why"), [("state", "is inside"), ("state/new", "is inside"), (".", "is not empty")]
)
def test_nothing_is_written_over(
    old: KeptState, capsys: pytest.CaptureFixture[str], place: str, why: str
) -> None:
    """Nor into what may be removed one day."""
    before = files(old.folder)

    assert told(old, "migrate", str(old.folder / place)) == 1

    assert why in capsys.readouterr().err
    assert files(old.folder) == before


def test_a_backup_of_an_older_format_is_not_restored(old: KeptState, tmp_path: Path) -> None:
    """The version that made it restores it."""
    manifest = tmp_path / "backup" / MANIFEST
    manifest.parent.mkdir()
    made = Backup(OLDER, 1, 1, 1, 0, {})
    manifest.write_text(json.dumps(made.document()))

    with pytest.raises(StateError, match=f"format {OLDER}"):
        restore(manifest.parent, old.folder / "other")
