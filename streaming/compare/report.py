"""What a comparison found: for people, as a document, and as a page of HTML."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from streaming.compare.run import TableComparison
from streaming.core.compare.difference import DifferenceKind, DifferingRow
from streaming.core.compare.row_text import Image
from streaming.core.model.values import json_text
from streaming.core.text.wording import as_count
from streaming.facts.consumers.compared import behind_text, written_text
from streaming.facts.consumers.divergent import DivergentRow
from streaming.facts.report_page import page_table, paragraph, report_page

RowName = tuple[str, str]
"""Table and key of a row."""


@dataclass(frozen=True, slots=True)
class ReplicaComparison:
    """Two sides by their names, and their tables.

    `known`: row -> why it is expected to differ, and the id under which it is listed. `left_out`:
    tables that only one of them has. `lacking`: columns that the database of one of them lacks, as
    table.column; the others are compared. `archive`: the side whose further rows are no difference.
    """

    first: str
    second: str
    tables: tuple[TableComparison, ...]
    known: Mapping[RowName, str]
    left_out: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()
    archive: str | None = None

    @property
    def rows(self) -> list[DifferingRow]:
        """The rows that differ, by table."""
        return [row for one in self.tables for row in one.differing]

    @property
    def is_equal(self) -> bool:
        """Return whether no row differs."""
        return not self.rows

    @property
    def behind_s(self) -> float | None:
        """How far a consumer is behind, if that is more than was waited for and rows differ."""
        return max((s for one in self.tables if (s := one.behind_s) is not None), default=None)

    def document(self) -> dict[str, Any]:
        """The comparison as JSON."""
        return {
            "first": self.first,
            "second": self.second,
            "is_equal": self.is_equal,
            "behind_s": self.behind_s,
            "tables": [
                {
                    "table": one.table.name,
                    "rows": {"first": one.rows[0], "second": one.rows[1]},
                    "differing": len(one.differing),
                    "more_differ": one.is_cut,
                    "in_flight": one.in_flight,
                    "written": one.written,
                }
                for one in self.tables
            ],
            "left_out": list(self.left_out),
            "lacking": list(self.lacking),
            "archive": self.archive,
            "rows": [
                {
                    "table": row.table,
                    "key": row.key,
                    "kind": row.kind,
                    "columns": list(row.columns),
                    "first": row.first,
                    "second": row.second,
                    "known": self.known.get((row.table, row.key)),
                }
                for row in self.rows
            ],
        }

    def table_lines(self) -> Iterator[tuple[object, ...]]:
        """The lines of the table of tables."""
        for one in self.tables:
            differ = f"{len(one.differing)} or more" if one.is_cut else len(one.differing)
            yield one.table.name, *one.rows, differ, one.in_flight, one.written

    def row_lines(self, rows: Collection[DifferingRow]) -> Iterator[tuple[object, ...]]:
        """The lines of the table of rows: one for each column that differs."""
        for row in rows:
            named = f"{row.table} {row.key}"
            known = self.known.get((row.table, row.key))
            if row.kind is not DifferenceKind.COLUMNS:
                yield named, None, _whole(row.first), _whole(row.second), known
                continue
            for column in row.columns:
                yield named, column, _shown(row.first, column), _shown(row.second, column), known

    def conclusion(self) -> str:
        """The answer in one sentence, and whether it may be one of rows in flight."""
        of = f"{self.first} and {self.second}"
        compared = sum(max(one.rows) for one in self.tables)
        in_flight = sum(one.in_flight for one in self.tables)
        flight = f"; {as_count(in_flight, 'row')} in flight became equal" if in_flight else ""
        written = sum(one.written for one in self.tables)
        flight += written_text(written)
        if self.is_equal:
            equal = "otherwise equal" if written else "equal"
            return f"{of} are {equal}: {as_count(compared, 'row')} compared{flight}"
        least = "at least " if any(one.is_cut for one in self.tables) else ""
        known = sum((row.table, row.key) in self.known for row in self.rows)
        listed = f", {known} of them known" if known else ""
        behind = "" if self.behind_s is None else f". But {behind_text(self.behind_s)}"
        differ = f"differ in {least}{as_count(len(self.rows), 'row')} of {compared}{listed}{flight}"
        return f"{of} {differ}{behind}"

    @property
    def table_heads(self) -> tuple[str, ...]:
        """The columns of the table of tables."""
        rows = f"rows {self.first}", f"rows {self.second}"
        return "table", *rows, "differ", "were in flight", "written meanwhile"

    @property
    def row_heads(self) -> tuple[str, ...]:
        """The columns of the table of rows."""
        return "row", "column", self.first, self.second, "known"

    def page(self) -> str:
        """The comparison as a page of HTML."""
        parts = [
            paragraph(f"{self.conclusion()}."),
            page_table("Tables", self.table_heads, self.table_lines()),
            page_table("Rows that differ", self.row_heads, self.row_lines(self.rows)),
        ]
        if self.archive:
            parts.append(paragraph(f"Rows that {self.archive} alone has are those of an archive."))
        if self.lacking:
            parts.append(paragraph(f"Columns not compared: {', '.join(self.lacking)}."))
        if self.left_out:
            parts.append(paragraph(f"Not compared: {', '.join(self.left_out)}."))
        return report_page(f"{self.first} and {self.second}", parts)


def known_rows(rows: Collection[DivergentRow], replicas: Collection[str]) -> dict[RowName, str]:
    """Row -> why it is expected to differ at one of these replicas."""
    return {
        (one.table, one.key): f"{one.kind} at {one.replica}: {one.id}"
        for one in rows
        if one.replica in replicas and one.table is not None and one.key is not None
    }


def _whole(image: Image | None) -> str:
    return "no row" if image is None else json_text(image)


def _shown(image: Image | None, column: str) -> str:
    return json_text((image or {})[column])
