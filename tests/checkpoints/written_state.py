"""Writes a state folder as a hub does, row by row, for tests of those who read it."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from deltalake import CommitProperties, Transaction, write_deltalake

from checkpoints.commit.epochs import Checkpoint, Plan, commit_row, plan_row
from checkpoints.commit.protocol import KEY
from checkpoints.store import StateStore, rows_of
from checkpoints.tables import TableName
from streaming.core.model.refusal import Lacking
from streaming.core.model.ruv import NOTHING_KNOWN, Ruv
from streaming.core.model.statuses import AgreementStatus, ReplicaStatus
from streaming.core.model.table import DEFAULT_DATASET
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.held_back import HeldBack
from streaming.core.state.hub_state import HubState
from streaming.core.state.reflection import Session
from streaming.core.state.replica_state import ReplicaState
from tests.harness.builders import csn

START_S = 1_700_000_000
SEEN_MS = START_S * 1000
"""When each of its replicas was last heard."""


def ruv(**largest: int) -> Ruv:
    """The changes 1 to n of each replica are known; r2=3: three of replica 2."""
    known = Ruv("655d1c80000000010000")
    for name, number in largest.items():
        rid = int(name.removeprefix("r"))
        known = known.with_csn(csn(1, rid)).with_csn(csn(number, rid))
    return known


def replica(rid: int, covers: int = 0, **changed: object) -> ReplicaState:
    """A live replica that reflected the hub up to `covers`."""
    session = Session(f"session-{rid}", 4, (4, 7), (0, covers)) if covers else None
    live = ReplicaState(
        rid,
        ReplicaStatus.LIVE,
        sessions=(session,) if session else (),
        epoch=8,
        seen_ms=SEEN_MS,
    )
    return replace(live, **changed)  # type: ignore[arg-type]


def agreement(name: str, consumer: int, acked: int, acked_ruv: Ruv) -> AgreementState:
    """An agreement in sync whose consumer acknowledged `acked`."""
    return AgreementState(
        name,
        consumer,
        AgreementStatus.IN_SYNC,
        session=f"session-{consumer}",
        sent_epoch=acked,
        sent_covers=acked,
        sent_ruv=acked_ruv,
        scanned=acked,
        sent_ms=START_S * 1000,
        acked_covers=acked,
        acked_ruv=acked_ruv,
        acked_ms=START_S * 1000,
    )


@cache
def _empty_state() -> "TemporaryDirectory[str]":
    """The empty tables, made once in a process: a copy costs a twentieth of making them."""
    folder = TemporaryDirectory()
    StateStore(Path(folder.name)).create()
    return folder


@dataclass(frozen=True, slots=True)
class WrittenState:
    """A state folder under construction."""

    root: Path

    def create(self) -> "WrittenState":
        """Make the empty tables."""
        shutil.copytree(_empty_state().name, self.root, dirs_exist_ok=True)
        return self

    def append(self, name: TableName, *rows: Mapping[str, object], number: int = 0) -> None:
        """Append rows; columns that are not given are null. `number`: of plan or commit."""
        taken = CommitProperties(app_transactions=[Transaction(KEY, number)] if number else None)
        made = rows_of(name, rows)
        write_deltalake(self.root / name, made, mode="append", commit_properties=taken)

    def plan(self, batch: int, at_ms: int = START_S * 1000) -> None:
        """Write the plan of a batch."""
        plan = Plan(batch, at_ms, 1, {}, {})
        last = Checkpoint(HubState(1, "655d1c80000000010000", batch - 1), {}, {}, 1)
        self.append(TableName.EPOCHS, plan_row(plan, last, "host:1"), number=2 * batch)

    def commit(
        self,
        batch: int,
        hub_epoch: int,
        known: Ruv,
        replicas: Sequence[ReplicaState] = (),
        agreements: Sequence[AgreementState] = (),
        purge_ruv: Ruv = NOTHING_KNOWN,
        purge_epoch: int = 0,
        purge_batch: int = 0,
        others: Mapping[str, Ruv] | None = None,
        numbers: Mapping[int, int] | None = None,
        held_back: Mapping[str, HeldBack] | None = None,
        paused_tables: Mapping[str, frozenset[str]] | None = None,
        lacking: Lacking | None = None,
        **changed: object,
    ) -> None:
        """Write plan and commit of a batch.

        others: the RUVs of other data sets. numbers: the hub's row of the matrix. changed: other
        fields of its checkpoint.
        """
        state = HubState(
            generation=1,
            replicageneration=known.generation,
            batch=batch,
            hub_epoch=hub_epoch,
            ruvs={DEFAULT_DATASET: known, **(others or {})},
            purge_ruvs={DEFAULT_DATASET: purge_ruv},
            purge_epoch=purge_epoch,
            purge_batch=purge_batch,
            replicas={r.rid: r for r in replicas},
            agreements={a.name: a for a in agreements},
            numbers=numbers or {},
            held_back=held_back or {},
            paused_tables=paused_tables or {},
            lacking=lacking or {},
        )
        checkpoint = Checkpoint(state, {"slackwater.changes.a": 7}, {}, 1, at_ms=START_S * 1000)
        checkpoint = replace(checkpoint, **changed)  # type: ignore[arg-type]
        self.plan(batch)
        row = commit_row(checkpoint, "host:1")
        self.append(TableName.EPOCHS, row, number=2 * batch + 1)


def change_row(
    batch: int, hub_epoch: int, place: int, text: str, table: str = "t"
) -> dict[str, object]:
    """An accepted change in the changelog."""
    rid = int(text[12:16], 16)
    return {
        "batch": batch,
        "hub_epoch": hub_epoch,
        "place": place,
        "kind": "change",
        "rid": rid,
        "csn": text,
        "table": table,
        "key": '{"id":"1"}',
        "op": "update",
        "verdict": "accepted",
    }
