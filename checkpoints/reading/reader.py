"""Reads the state of a hub without a JVM: committed batches only, and nothing is written."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from checkpoints.commit.epochs import COMMIT, PLAN, Checkpoint, checkpoint_of
from checkpoints.query import (
    Value,
    among,
    equals,
    execute,
    literal,
    open_table,
    quoted,
    records,
    scan,
    select,
)
from checkpoints.tables import APPLIED, SCHEMAS, TableName
from streaming.core.access.root import StateRoot
from streaming.core.model.command import Command, CommandName
from streaming.core.model.errors import StateError
from streaming.core.replay.pins import Pin, pins_of

_LATEST_ACTION = """
    SELECT * FROM (
        SELECT *, row_number() OVER (PARTITION BY id ORDER BY batch DESC, rank DESC) AS n FROM (
            SELECT id, rid, "offset", batch, action, reason, "table", CASE action
                WHEN 'kept' THEN 0 WHEN 'released' THEN 1 ELSE 2 END AS rank
            FROM t WHERE batch <= {batch}
        )
    ) WHERE n = 1
"""
STILL_KEPT = """
    SELECT t.id, coalesce(again.first, t.batch) AS batch, t.rid, t."offset", t."time", t.csn,
        t."table", t.key, t.reason, {columns}
    FROM t LEFT ANTI JOIN (
        SELECT id, batch FROM t WHERE action <> 'kept' AND batch <= {batch}
    ) AS gone ON gone.id = t.id AND gone.batch >= t.batch
    LEFT JOIN (
        SELECT id, min(batch) AS first, max(batch) AS last FROM t
        WHERE action = 'kept' AND batch <= {batch} GROUP BY id HAVING count(*) > 1
    ) AS again ON again.id = t.id
    WHERE t.action = 'kept' AND t.batch <= {batch} AND coalesce(again.last, t.batch) = t.batch
"""
"""The records that are neither released nor dropped, each once; of a change no image.

One of which a release was refused is written again, with the reason of then. `columns`: others.
"""

_NEWEST = """
    SELECT *, row_number() OVER (PARTITION BY id ORDER BY batch DESC) AS n
    FROM t WHERE batch <= {batch}
"""
_STANDING = 'SELECT "table", count(*) AS count FROM t WHERE image IS NOT NULL GROUP BY "table"'
_WRITTEN = """
    SELECT "table", count(DISTINCT key) AS count FROM t
    WHERE batch <= {batch} AND hub_epoch > {after} AND kind = 'change' AND verdict = 'accepted'
        AND op NOT IN ('delete', 'truncate')
    GROUP BY "table"
"""
_LATEST_PENDING = """
    SELECT * FROM (
        SELECT rid, action, reason, csn, prim_csn, time, opno, mre, row_number() OVER (
            PARTITION BY rid, csn, CASE WHEN csn IS NULL THEN prim_csn END
            ORDER BY batch DESC, place DESC
        ) AS n FROM t WHERE batch <= {batch}
    ) WHERE n = 1
"""
_LAST_HELLO = """
    SELECT rid, value FROM (
        SELECT rid, value, row_number() OVER (
            PARTITION BY rid ORDER BY batch DESC, "offset" DESC
        ) AS n FROM t WHERE kind = 'hello' AND outcome = 'taken' AND batch <= {batch}
    ) WHERE n = 1
"""


@dataclass(frozen=True, slots=True)
class OpenChanges:
    """How many changes of one replica are pending or waiting; the oldest, and its transaction.

    `mre`: the smallest one of them.
    """

    count: int
    oldest: datetime | None
    transaction: str | None
    mre: int | None = None


NONE_OPEN = OpenChanges(0, None, None)


@dataclass(frozen=True, slots=True)
class Reader:
    """The state as of one commit; what is committed later is not seen (open it again).

    `commit` None: no batch was committed yet. `planned`: the batch after it that is in progress,
    or whose hub crashed. `hub`: the process that wrote last.
    """

    root: StateRoot
    commit: Checkpoint | None
    planned: int | None
    hub: str
    tables: dict[TableName, DeltaTable | None] = field(default_factory=dict, repr=False)

    @property
    def batch(self) -> int:
        """The last committed batch; 0 before the first."""
        return self.commit.state.batch if self.commit else 0

    def upto(self, batch: int) -> "Reader":
        """The same of the tables up to an earlier batch; the commit is this one's otherwise."""
        if self.commit is None or batch >= self.batch:
            return self
        state = replace(self.commit.state, batch=batch)
        return replace(self, commit=replace(self.commit, state=state))

    def read(
        self,
        name: TableName,
        *,
        columns: Sequence[str] | None = None,
        where: Iterable[str] = (),
        order_by: str = "",
        limit: int | None = None,
    ) -> pa.Table:
        """Committed rows of a table with a batch column; arguments as in `select`."""
        return select(
            self.table(name),
            name,
            columns=columns,
            where=[f"batch <= {self.batch}", *where],
            order_by=order_by,
            limit=limit,
        )

    def changelog(
        self,
        equal: Mapping[str, Value | None] | None = None,
        *,
        after: int = 0,
        upto: int | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """Entries of the hub epochs in (after, upto] with these values, in hub order."""
        bounds = [f"hub_epoch > {after}", *([] if upto is None else [f"hub_epoch <= {upto}"])]
        where = [*bounds, *equals(equal or {})]
        order = "hub_epoch, place"
        return self.read(TableName.CHANGELOG, columns=columns, where=where, order_by=order)

    def scan_changelog(
        self, columns: Sequence[str], *, after: int, tables: Iterable[str]
    ) -> Iterator[pa.Table]:
        """Entries of these tables and the hub epochs above `after`, some thousand at a time.

        They come in any order.
        """
        where = [f"batch <= {self.batch}", f"hub_epoch > {after}", among("table", tables)]
        table = self.table(TableName.CHANGELOG)
        return scan(table, TableName.CHANGELOG, columns=columns, where=where)

    def conflicts(
        self, equal: Mapping[str, Value | None] | None = None, *, newest: int | None = None
    ) -> pa.Table:
        """Conflicts with these values in hub order, as they are resolved now; the `newest`."""
        table = self.table(TableName.CONFLICTS)
        if table is None:
            return SCHEMAS[TableName.CONFLICTS].empty_table()
        columns = ", ".join(quoted(name) for name in SCHEMAS[TableName.CONFLICTS].names)
        where = " AND ".join(["n = 1", *equals(equal or {})])
        last = f"""
            SELECT {columns} FROM ({_NEWEST.format(batch=self.batch)}) WHERE {where}
            ORDER BY hub_epoch DESC, place DESC, id DESC
        """ + (f"LIMIT {newest}" if newest is not None else "")  # noqa: S608
        sql = f"SELECT * FROM ({last}) ORDER BY hub_epoch, place, id"  # noqa: S608
        return execute(table, sql, SCHEMAS[TableName.CONFLICTS])

    def conflict_counts(self) -> dict[str, int]:
        """Kind of conflict -> how many there are."""
        newest = _NEWEST.format(batch=self.batch)
        sql = f"SELECT kind, count(*) AS count FROM ({newest}) WHERE n = 1 GROUP BY kind"  # noqa: S608
        return {row["kind"]: row["count"] for row in self.query(TableName.CONFLICTS, sql)}

    def refused_rows(self) -> list[dict[str, Any]]:
        """The conflicts of refused rows that their replica has not applied since; oldest first."""
        if self.commit is None or not self.commit.totals.get("refused"):
            return []
        newest = f"{_NEWEST.format(batch=self.batch)} AND kind = 'refused'"
        sql = f"""
            SELECT * FROM ({newest}) WHERE n = 1 AND resolution = 'open' ORDER BY "time", id
        """  # noqa: S608
        return self.query(TableName.CONFLICTS, sql)

    def row_counts(self) -> dict[str, int]:
        """Table -> how many rows it has at most: as materialized, and those written since."""
        after = self.commit.rows_epoch if self.commit else 0
        standing = self.query(TableName.ROWS, _STANDING)
        written = self.query(TableName.CHANGELOG, _WRITTEN.format(batch=self.batch, after=after))
        found = Counter[str]()
        for row in (*standing, *written):
            found[row["table"]] += row["count"]
        return dict(found)

    def quarantine(self, equal: Mapping[str, Value | None] | None = None) -> list[dict[str, Any]]:
        """Each record as it was last kept, with its latest `action` and that one's batch.

        The fields are the table's, and `action_batch`. Of one batch's actions the largest of
        kept < released < dropped counts.
        """
        kept = self.read(
            TableName.QUARANTINE,
            where=["action = 'kept'", *equals(equal or {})],
            order_by="batch, rid, offset",
        )
        by_id = {row["id"]: row for row in records(kept)}
        latest = {row["id"]: row for row in self.quarantine_actions(by_id)}
        return [
            row | {"action": latest[id_]["action"], "action_batch": latest[id_]["batch"]}
            for id_, row in by_id.items()
        ]

    def quarantine_page(
        self, equal: Mapping[str, Value | None], newest: int, *, everything: bool, values: bool
    ) -> tuple[list[dict[str, Any]], int]:
        """The newest records with this reason and rid, as `quarantine` has them, and how many.

        `everything`: also those that were released or dropped. `values`: with their bytes, which
        are None otherwise: those of a million fit no memory.
        """
        found = self.still_kept("'kept' AS action, t.batch AS last")
        if everything:
            found = f"SELECT *, batch AS last FROM ({self.latest_action})"  # noqa: S608
        where = " AND ".join(["true", *equals(equal)])
        counted = self.query(
            TableName.QUARANTINE,
            f"SELECT count(*) AS count FROM ({found}) WHERE {where}",  # noqa: S608
        )
        named = self.query(
            TableName.QUARANTINE,
            f"""SELECT id, action, last FROM ({found}) WHERE {where}
                ORDER BY batch DESC, rid DESC, "offset" DESC, id DESC LIMIT {newest}""",  # noqa: S608
        )
        last = {row["id"]: row for row in reversed(named)}
        columns = [one for one in SCHEMAS[TableName.QUARANTINE].names if values or one != "value"]
        kept = self.read(
            TableName.QUARANTINE,
            columns=columns,
            where=["action = 'kept'", among("id", last)],
            order_by="batch",
        )
        by_id = {row["id"]: {"value": None, **row} for row in records(kept)}
        page = [
            by_id[id_] | {"action": one["action"], "action_batch": one["last"]}
            for id_, one in last.items()
        ]
        return page, counted[0]["count"] if counted else 0

    def quarantine_actions(self, ids: Collection[str]) -> list[dict[str, Any]]:
        """The latest action of each of these records, as id, reason, action and its batch."""
        sql = f"SELECT * FROM ({self.latest_action}) WHERE {among('id', ids)}"  # noqa: S608
        return self.query(TableName.QUARANTINE, sql)

    def quarantine_ids(self, equal: Mapping[str, Value | None]) -> list[str]:
        """The ids of the records that are kept with this reason and rid, in their topics' order."""
        where = " AND ".join(["true", *equals(equal)])
        sql = f"""SELECT id FROM ({self.still_kept()}) WHERE {where}
            ORDER BY rid, "offset", id"""  # noqa: S608
        table = self.table(TableName.QUARANTINE)
        found: list[str] = [] if table is None else execute(table, sql)["id"].to_pylist()
        return found

    def quarantine_counts(self, *, named: bool = False) -> dict[str, int]:
        """Reason -> how many records are kept, neither released nor dropped.

        `named`: only those that name the table of their row.
        """
        counted = 'count("table")' if named else "count(*)"
        sql = f"SELECT reason, {counted} AS count FROM ({self.still_kept()}) GROUP BY reason"  # noqa: S608
        return {row["reason"]: row["count"] for row in self.query(TableName.QUARANTINE, sql)}

    def open_changes(self) -> dict[tuple[int, str], OpenChanges]:
        """(rid, pending | waiting) -> the replica's changes in that state."""
        sql = f"""
            SELECT rid, action, count(*) AS count, min(time) AS oldest, min(mre) AS mre,
                first_value(coalesce(prim_csn, csn) ORDER BY time, csn) AS transaction
            FROM ({self._latest_pending})
            WHERE action IN ('pending', 'waiting') GROUP BY rid, action
        """  # noqa: S608
        return {
            (row["rid"], row["action"]): OpenChanges(
                row["count"], row["oldest"], row["transaction"], row["mre"]
            )
            for row in self.query(TableName.PENDING, sql)
        }

    def open_transactions(self, opno: Mapping[int, int]) -> dict[int, int]:
        """Rid -> its transactions that are uncommitted or above a hole in its opno.

        opno: rid -> the opno up to which there is no hole. See HubState.open_transactions.
        """
        above = [f"(rid = {rid} AND opno > {last})" for rid, last in opno.items()]
        sql = f"""
            SELECT rid, count(DISTINCT coalesce(prim_csn, csn)) AS count
            FROM ({self._latest_pending})
            WHERE action = 'pending' OR (action = 'waiting' AND ({" OR ".join(above) or "false"}))
            GROUP BY rid
        """  # noqa: S608
        return {row["rid"]: row["count"] for row in self.query(TableName.PENDING, sql)}

    def hellos(self) -> dict[int, str]:
        """Rid -> the last hello that the hub took, as it was received."""
        sql = _LAST_HELLO.format(batch=self.batch)
        return {row["rid"]: row["value"] for row in self.query(TableName.EVENTS, sql)}

    def standing_of(self, csn: str) -> dict[str, str | None]:
        """Latest rows of `pending` for the transactions that this CSN names: action -> reason."""
        named = " OR ".join(equals({"csn": csn}) + equals({"prim_csn": csn}))
        sql = f"SELECT DISTINCT action, reason FROM ({self._latest_pending}) WHERE {named}"  # noqa: S608
        return {row["action"]: row["reason"] for row in self.query(TableName.PENDING, sql)}

    def configs(self) -> list[dict[str, Any]]:
        """The versions of the configuration, oldest first."""
        return self._config("config")

    def commands(self) -> list[dict[str, Any]]:
        """The operator commands, oldest first; the hub has taken those up to `command_number`."""
        return self._config("command")

    def pins(self) -> dict[str, Pin]:
        """Name -> pin, of all that stand, taken or not."""
        names = ", ".join(literal(one) for one in (CommandName.PIN, CommandName.UNPIN))
        table, columns = self.table(TableName.CONFIG), ["number", "command", "argument"]
        where = [*equals({"kind": "command"}), f"command IN ({names})"]
        found = select(table, TableName.CONFIG, columns=columns, where=where, order_by="number")
        commands = (
            Command(row["number"], CommandName(row["command"]), row["argument"])
            for row in records(found)
        )
        return pins_of(commands)

    def kept_keys(self, most: int) -> list[str]:
        """The keys that records in quarantine name, so many at most.

        What was written there since tells whether their origins have been set right.
        """
        sql = f"""SELECT DISTINCT key FROM ({self.still_kept()}) WHERE key IS NOT NULL
            LIMIT {most}"""  # noqa: S608
        return [row["key"] for row in self.query(TableName.QUARANTINE, sql)]

    def untaken_commands(self) -> dict[int, str]:
        """Number -> name of the operator commands that the hub has not taken yet, oldest first."""
        taken = self.commit.command_number if self.commit else 0
        where = [*equals({"kind": "command"}), f"number > {taken}"]
        table = self.table(TableName.CONFIG)
        columns = ["number", "command"]
        found = select(table, TableName.CONFIG, columns=columns, where=where, order_by="number")
        return {row["number"]: row["command"] for row in records(found) if row["command"]}

    def untaken_configuration(self) -> int | None:
        """The last version that `config apply` stored, if the last commit is under an earlier one.

        None: it is in force, or none was applied.
        """
        where = [*equals({"kind": "config"}), f"number > {self.config_version}"]
        table = self.table(TableName.CONFIG)
        columns = ["number", "argument"]
        found = select(table, TableName.CONFIG, columns=columns, where=where)
        return max((r["number"] for r in records(found) if r["argument"] == APPLIED), default=None)

    @property
    def config_version(self) -> int:
        """The version of the configuration of the last commit; 0: there is none."""
        return self.commit.config_version if self.commit else 0

    def comparisons(self) -> list[dict[str, Any]]:
        """What rounds of a comparison found, or why they could not be, oldest first."""
        return self._config("comparison")

    @property
    def _latest_pending(self) -> str:
        return _LATEST_PENDING.format(batch=self.batch)

    def _config(self, kind: str) -> list[dict[str, Any]]:
        table = self.table(TableName.CONFIG)
        where = equals({"kind": kind})
        return records(select(table, TableName.CONFIG, where=where, order_by="number"))

    def still_kept(self, columns: str = "t.batch AS last") -> str:
        """A query for the records that are in quarantine; see STILL_KEPT."""
        return STILL_KEPT.format(batch=self.batch, columns=columns)

    @property
    def latest_action(self) -> str:
        """A query for the last row of each record in quarantine, which is named `t`."""
        return _LATEST_ACTION.format(batch=self.batch)

    def query(self, name: TableName, sql: str) -> list[dict[str, Any]]:
        """The rows of a query over a table, which is named `t`; of one that is not there none."""
        table = self.table(name)
        return [] if table is None else records(execute(table, sql))

    def table(self, name: TableName) -> DeltaTable | None:
        """The table, opened once; None: there is none."""
        if name not in self.tables:
            self.tables[name] = open_table(self.root, name)
        return self.tables[name]


def open_state(root: StateRoot) -> Reader:
    """The state as of its last commit; StateError when no hub has run there yet."""
    table = open_table(root, TableName.EPOCHS)
    if table is None:
        raise StateError(
            f"no hub has run at {root} yet: there is no state in it;"
            " start one with `slackwater run`, or correct hub.state"
        )
    newest = select(
        table,
        TableName.EPOCHS,
        where=[f"batch >= {_commit_batch_at_least(table)}"],
        order_by="batch DESC, kind",
        limit=2,
    )
    rows = records(newest)
    commit = next((checkpoint_of(row) for row in rows if row["kind"] == COMMIT), None)
    planned = next((row["batch"] for row in rows[:1] if row["kind"] == PLAN), None)
    return Reader(root, commit, planned, rows[0]["hub"] if rows else "")


def _commit_batch_at_least(table: DeltaTable) -> int:
    """A lower bound of the last committed batch, from the files' statistics; 0 without any.

    A file whose smallest kind is `commit` has one, and none of its rows is older than its
    smallest batch: so files without a newer row need not be read.
    """
    files = pa.table(table.get_add_actions(flatten=True))
    if not {"min.kind", "min.batch"} <= set(files.column_names):
        return 0
    smallest = zip(files["min.kind"].to_pylist(), files["min.batch"].to_pylist(), strict=True)
    return max((batch for kind, batch in smallest if kind == COMMIT and batch), default=0)
