"""A short history with conflicts on real tables, and copies of it that may be changed."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from checkpoints.commit.epochs import COMMIT, checkpoint_of, commit_row
from checkpoints.commit.purges import purge_row
from checkpoints.maintenance.purge import PurgedState, delete_purged
from checkpoints.reading.purgeable import PurgeRequest, purgeable
from checkpoints.store import StateStore, rows_of
from checkpoints.tables import TableName
from streaming.config.sources.load import load
from streaming.core.retention.purge import purged_up_to, with_retention
from streaming.hub.configured import settings_of
from tests.model.language import play
from tests.model.local_hub import local_hubs
from tests.streaming.cli.conftest import slackwater

__all__ = ["slackwater"]

STORY = """
given r1 r2 r3; t is EPOCH; u is MAX(v)

r1 writes k = w1
r1 publishes
the hub takes all
r2 writes k = w2
r2 publishes
the hub takes all
everything settles

r3 writes u.k = w3
r1 writes u.k = w4 in T
r1 writes j = w5 in T
r1 commits T
r1 publishes
the hub takes all
r3 publishes
the hub takes all
everything settles

r2 deletes j as w6
r2 writes i = w7
everything settles
w2 is rejected
w3 is rejected
w4 is accepted
"""


@dataclass(frozen=True, slots=True)
class History:
    """The folder of a hub: its configuration and its state."""

    folder: Path

    @property
    def state(self) -> Path:
        """Where its tables are."""
        return self.folder / "state"

    def rows(self, name: TableName) -> pa.Table:
        """All rows of a table."""
        return pa.table(DeltaTable(self.state / name).to_pyarrow_table())

    def rewrite(self, name: TableName, rows: pa.Table) -> None:
        """Put other rows in the place of all that a table has."""
        write_deltalake(self.state / name, rows, mode="overwrite")

    def append(self, name: TableName, row: Mapping[str, object]) -> None:
        """Add a row; columns that are not given are null."""
        write_deltalake(self.state / name, rows_of(name, [row]), mode="append")

    def tamper(self, name: TableName, csn: str, column: str, value: object) -> None:
        """Change one column of the rows of this change."""
        rows = self.rows(name)
        changed = [
            value if one == csn else old
            for one, old in zip(rows["csn"].to_pylist(), rows[column].to_pylist(), strict=True)
        ]
        place = rows.column_names.index(column)
        field = rows.schema.field(column)
        self.rewrite(name, rows.set_column(place, field, pa.array(changed, field.type)))

    def csn_of(self, value: str) -> str:
        """The CSN of the change that wrote this value."""
        log = self.rows(TableName.CHANGELOG).to_pylist()
        found = (row["csn"] for row in log if value in (row["after"] or ""))
        return str(next(found))

    def epoch_of(self, value: str) -> int:
        """The hub epoch in which this value was first written."""
        log = self.rows(TableName.CHANGELOG).to_pylist()
        return min(int(row["hub_epoch"]) for row in log if value in (row["after"] or ""))

    def purge(self, epoch: int) -> None:
        """Purge up to this hub epoch with the last batch, as a hub that has materialized `rows`."""
        log = self.rows(TableName.CHANGELOG).to_pylist()
        standing = _standing([row for row in log if row["hub_epoch"] <= epoch])
        write_deltalake(self.state / TableName.ROWS, standing, mode="append")
        batches = self.rows(TableName.EPOCHS).to_pylist()
        for row in (one for one in batches if one["hub_epoch"] >= epoch):
            row["rows_epoch"] = epoch
            row["versions"] = [*(p for p in row["versions"] if p[0] != "rows"), ("rows", 1)]
        self.rewrite(TableName.EPOCHS, rows_of(TableName.EPOCHS, batches))
        *_, plan, commit = sorted(batches, key=lambda row: (row["batch"], row["kind"] == COMMIT))
        last, store = checkpoint_of(commit), StateStore(self.state)
        config = load(self.folder / "hub.toml")
        datasets = dict.fromkeys(config.table_map(), "default")
        at_ms = last.at_ms + 1
        purge = purgeable(store, PurgeRequest(last.state, epoch, at_ms, datasets, at_ms))
        assert purge is not None
        away_ms = settings_of(config).topology.max_away_ms
        state = with_retention(last.state, last.state, purge, last.at_ms, away_ms)
        after = replace(last, state=state)
        plan.update(purge_row(purge))
        commit.update(commit_row(after, commit["hub"]))
        self.rewrite(TableName.EPOCHS, rows_of(TableName.EPOCHS, batches))
        delete_purged(store, PurgedState(state, purged_up_to(state), at_ms))


def _standing(log: Sequence[Mapping[str, Any]]) -> pa.Table:
    """`rows` behind these rows of the changelog."""
    accepted = [row for row in log if row["verdict"] == "accepted"]
    ordered = sorted(accepted, key=itemgetter("hub_epoch", "place"))
    last = {(row["table"], row["key"]): row for row in ordered}
    columns = ("table", "key", "hub_epoch", "csn", "image")
    found = [
        {name: row[name] for name in columns} | {"author": row["rid"]} for row in last.values()
    ]
    return rows_of(TableName.ROWS, found)


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> History:
    """The history of STORY; nobody changes it."""
    folder = tmp_path_factory.mktemp("recorded")
    play(STORY, local_hubs(folder))
    return History(folder)


def history_of(story: str, folder: Path) -> History:
    """The history of another story."""
    play(story, local_hubs(folder))
    return History(folder)


@pytest.fixture
def history(recorded: History, tmp_path: Path) -> History:
    """A copy of it."""
    folder = tmp_path / "hub"
    shutil.copytree(recorded.folder, folder)
    return History(folder)


@pytest.fixture
def config_file(history: History, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Its configuration, which the command finds."""
    path = history.folder / "hub.toml"
    monkeypatch.setenv("SLACKWATER_CONFIG", str(path))
    return path
