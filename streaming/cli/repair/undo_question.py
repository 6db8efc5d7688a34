"""Which changes an undo is asked about: moments, replicas and applications by their names."""

import time
from dataclasses import dataclass, replace

import pyarrow.compute as pc
import pyarrow.dataset as ds

from checkpoints.commit.recorded import BatchMark, batch_marks, judged_in
from checkpoints.reading.as_of import epoch_as_of
from checkpoints.reading.lookup import ACCEPTED, between
from checkpoints.reading.past import PastStore, oldest_epoch
from checkpoints.tables import TableName
from streaming.config.config import Config
from streaming.core.model.change import Op
from streaming.core.model.command import UndoOrder
from streaming.core.model.csn import named_csn
from streaming.core.model.errors import ConfigError, QuestionError
from streaming.core.model.table import Table
from streaming.core.replay.span import Moment, parse_moment, span_of
from streaming.core.replay.undo import UndoPlan
from streaming.facts.history.past_rows import key_named, past, table_named
from streaming.facts.names import names_of
from streaming.filters.row_predicate import RowPredicate
from streaming.operator.undo import planned

_NAMED = 10
"""How many applications an error names."""


@dataclass(frozen=True, slots=True)
class UndoQuestion:
    """The options of the command, as they were given."""

    table: str
    to: str | None = None
    between: tuple[str, str] | None = None
    by: str | None = None
    op: Op | None = None
    transaction: str | None = None
    key: str | None = None
    where: str | None = None
    is_forced: bool = False
    who: str = ""
    why: str = ""

    def plan(self, config: Config, seen: int) -> UndoPlan:
        """What it would do by the state behind hub epoch `seen`; QuestionError as it is wrong."""
        table = table_named(config, self.table)
        key = None if self.key is None else key_named(table, self.key)
        if self.where is not None:
            check_condition(self.where, table)
        with past(config) as store:
            order = _Resolving(self, config, table, store, batch_marks(store), seen).order()
            return planned(store, table, replace(order, key=key), seen)


def check_condition(text: str, table: Table) -> None:
    """QuestionError says what of a text is no condition on the rows of a table."""
    try:
        RowPredicate(text, table)
    except ConfigError as error:
        raise QuestionError(f"--where: {error}") from None


@dataclass(frozen=True, slots=True)
class _Resolving:
    """A question with the state in which its names mean something."""

    asked: UndoQuestion
    config: Config
    table: Table
    store: PastStore
    marks: list[BatchMark]
    seen: int

    def order(self) -> UndoOrder:
        """The order that the options make, but for the key."""
        asked = self.asked
        first, last = self._written_between()
        transaction, judged = self._transaction()
        to = self._to(first if first is not None else judged)
        rid, app = self._author(to)
        return UndoOrder(
            *(self.table.name, to, asked.who, asked.why, first, last, rid, app),
            op=asked.op,
            transaction=transaction,
            where=asked.where,
            is_forced=asked.is_forced,
        )

    def _to(self, first: int | None) -> int:
        """The hub epoch of `--to`, by default the one before the first change that is named."""
        if self.asked.to is not None:
            return epoch_as_of(self.store, self.marks, _past_moment("--to", self.asked.to))
        if first is None:
            raise QuestionError(
                "say which changes are to be undone: --to, --written-between or --transaction"
            )
        return first - 1

    def _written_between(self) -> tuple[int | None, int | None]:
        if self.asked.between is None:
            return None, None
        begin, end = (_past_moment("--written-between", text) for text in self.asked.between)
        oldest = oldest_epoch(self.store, self.marks)
        span = span_of(self.marks, begin, end, self._judged_in, oldest)
        return span.from_epoch, span.to_epoch

    def _judged_in(self, csn: str) -> int | None:
        return judged_in(self.store, csn)

    def _transaction(self) -> tuple[str | None, int | None]:
        """The primary CSN of the transaction that a CSN names, and the hub epoch that judged it."""
        text = self.asked.transaction
        if text is None:
            return None, None
        csn = named_csn(text)
        where = (ds.field("kind") == "change") & (ds.field("csn") == csn)
        columns = ["csn", "prim_csn", "hub_epoch"]
        found = self.store.read(TableName.CHANGELOG, where, columns).to_pylist() if csn else []
        if not found:
            raise QuestionError(f"the changelog has no change {text}: name one of the transaction")
        primary = found[-1]["prim_csn"] or found[-1]["csn"]
        is_of_it = (ds.field("csn") == primary) | (ds.field("prim_csn") == primary)
        is_change = ds.field("kind") == "change"
        read = self.store.read(TableName.CHANGELOG, is_change & is_of_it, ["table"])
        written = pc.unique(read["table"]).to_pylist()
        if self.table.name not in written:
            raise QuestionError(
                f"transaction {text} wrote {', '.join(sorted(written))}, and nothing of"
                f" {self.table.name}"
            )
        return primary, found[-1]["hub_epoch"]

    def _author(self, to: int) -> tuple[int | None, str | None]:
        """The rid of a replica, or else an application that has written the table since."""
        name = self.asked.by
        if name is None:
            return None, None
        rids = {known: rid for rid, known in names_of(self.config).items()}
        if name in rids:
            return rids[name], None
        where = between(to, self.seen) & ACCEPTED & (ds.field("table") == self.table.name)
        apps = self.store.read(TableName.CHANGELOG, where, ["app"])["app"]
        known = sorted(app for app in pc.unique(apps).to_pylist() if app is not None)
        if name in known:
            return None, name
        listed = ", ".join(map(repr, known[:_NAMED])) or "none that is named"
        raise QuestionError(
            f"{name!r} is neither a replica ({', '.join(rids)}) nor an application that wrote"
            f" {self.table.name} since hub epoch {to} ({listed})"
        )


def _past_moment(option: str, text: str) -> Moment:
    """The moment that an option names; QuestionError if it is no moment, or is still to come."""
    moment = parse_moment(text)
    if moment.time_ms is not None and moment.time_ms > time.time_ns() // 1_000_000:
        raise QuestionError(f"{option}: {text} is still to come: name a moment of the past")
    return moment
