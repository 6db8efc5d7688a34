"""docs/tables.md: its columns are those of the tables, its six statements answer the questions."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from checkpoints.comments import TABLE_COMMENTS, column_comments, member_comments
from checkpoints.store import StateStore
from checkpoints.tables import SCHEMAS, TableName
from checkpoints.tables_page import PLACE, page
from checkpoints.times import time_of
from connectors.kafka.embedded.broker import Broker
from tests.harness.site import Site, site

PAGE = PLACE.read_text(encoding="utf-8")


def test_the_page_is_current() -> None:
    """`make docs` writes it: a page that lags behind sends people to columns that are not there."""
    assert page(PAGE) == PAGE


@pytest.mark.parametrize("name", TableName)
def test_the_page_lists_each_column_with_its_comment(name: TableName) -> None:
    """Whatever the page is made with, these are the columns and comments that Delta has."""
    section = PAGE.split(f"\n### {name.value}\n")[1].split("\n### ")[0]

    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| (.+) \|$", section, re.MULTILINE)

    assert dict(rows) == column_comments(name)
    assert list(dict(rows)) == SCHEMAS[name].names
    assert TABLE_COMMENTS[name][1:] in section


def members(of: pa.DataType, path: str = "") -> Iterator[str]:
    """The members of a struct, and of the structs in it, with dots between."""
    if pa.types.is_list(of):
        yield from members(of.value_type, path)
    elif pa.types.is_struct(of):
        for one in of:
            yield f"{path}{one.name}"
            yield from members(one.type, f"{path}{one.name}.")


@pytest.mark.parametrize("column", ["replicas", "agreements"])
def test_the_page_lists_each_member_of_a_state(column: str) -> None:
    """Who looks a position up in `epochs` needs to know what its numbers count."""
    found = dict.fromkeys(members(SCHEMAS[TableName.EPOCHS].field(column).type))
    above = "resync.unacked.before."

    assert list(member_comments(column)) == [one for one in found if not one.startswith(above)]
    assert f"#### Members of `{column}`" in PAGE


def test_tables_of_an_earlier_hub_get_columns_and_comments_once(tmp_path: Path) -> None:
    """A start of the same hub commits nothing: it would end another hub's batch."""
    store = StateStore(tmp_path)
    store.create()
    conflicts = store.table(TableName.CONFLICTS)
    conflicts.alter.set_column_metadata("winner", {"comment": "of an earlier hub"})
    conflicts.alter.set_table_description("of an earlier hub")

    store.create()
    updated = StateStore(tmp_path).table(TableName.CONFLICTS)
    store.create()
    again = StateStore(tmp_path).table(TableName.CONFLICTS)

    found = {field.name: field.metadata["comment"] for field in updated.schema().fields}
    assert found == column_comments(TableName.CONFLICTS)
    assert updated.metadata().description == TABLE_COMMENTS[TableName.CONFLICTS]
    assert again.version() == updated.version()


@pytest.fixture(scope="module")
def asked(
    tmp_path_factory: pytest.TempPathFactory, broker: Broker, spark: SparkSession
) -> Iterator[Site]:
    """A hub after two batches: a row and its conflict, then a newer one and a bad record."""
    with site(tmp_path_factory.mktemp("asked"), broker.bootstrap_servers, "asked.") as made:
        a, b = made.replicas["a"], made.replicas["b"]
        for one in (a, b):
            one.hello()
            one.write("row", f"of {one.name}")
        made.run_available(spark)
        a.catch_up()
        a.write("row", "newer")
        made.ends.send(b.changes, "b", b"no JSON")
        made.run_available(spark)
        yield made


def _answer(spark: SparkSession, asked: Site, title: str, **values: object) -> list[dict[str, Any]]:
    """What the statement under a title answers, with these parameters."""
    section = PAGE.split(f"\n### {title}\n")[1].split("\n## ")[0]
    found = re.search(r"```sql\n(.*?)```", section, re.DOTALL)
    assert found is not None
    statement = found[1].replace("`state/", f"`{asked.state}/")
    for name, value in values.items():
        statement = statement.replace(f":{name}", f"'{value}'")
    return [row.asDict() for row in spark.sql(statement).collect()]


def _conflict(asked: Site) -> dict[str, Any]:
    (row,) = StateStore(asked.state).read(TableName.CONFLICTS).to_pylist()
    return dict(row)


def test_why_a_change_lost(spark: SparkSession, asked: Site) -> None:
    """The support's first question: who won, by which rule, and what was written."""
    conflict = _conflict(asked)

    (row,) = _answer(spark, asked, "Why did a change lose?", csn=conflict["loser_csn"])

    assert {row["loser"], row["winner"]} == {"a", "b"}
    assert row["after"] == f'{{"k":"row","v":"of {row["loser"]}"}}'
    assert row["winner_image"] == f'{{"k":"row","v":"of {row["winner"]}"}}'
    assert row["row_epoch"] > row["mre"]


def test_conflicts_an_hour(spark: SparkSession, asked: Site) -> None:
    """A rate that rises says that two sites write the same rows."""
    (row,) = _answer(spark, asked, "How many conflicts are there in an hour?")

    at = _conflict(asked)["at"]
    assert row["hour"].replace(tzinfo=None) == at.replace(
        minute=0, second=0, microsecond=0, tzinfo=None
    )
    assert (row["table"], row["conflicts"]) == ("t", 1)


def test_the_row_as_it_was(spark: SparkSession, asked: Site) -> None:
    """Before anything, after the first batch, and now."""
    first = _conflict(asked)["at"]
    question = {"table": "t", "key": '{"k":"row"}'}
    title = "What was a row at 14:05?"

    before = _answer(spark, asked, title, **question, time=time_of(0))
    then = _answer(spark, asked, title, **question, time=first)
    now = _answer(spark, asked, title, **question, time=time_of(4_000_000_000_000))

    assert before == []
    assert then[0]["image"] == _conflict(asked)["winner_image"]
    assert now[0]["image"] == '{"k":"row","v":"newer"}'


def test_who_is_behind(spark: SparkSession, asked: Site) -> None:
    """Nobody has acknowledged the second batch."""
    rows = _answer(spark, asked, "Who is behind?")

    assert {row["name"] for row in rows} == {"a", "b"}
    assert all(row["hub_epochs_behind"] > 0 for row in rows)


def test_how_late_what_a_replica_wrote_was(spark: SparkSession, asked: Site) -> None:
    """The number that was promised to somebody, of any day."""
    rows = _answer(spark, asked, "How late was what a replica wrote?")

    (at,) = {one["day"] for one in rows}
    assert [(one["origin"], one["consumer"]) for one in rows] == [(1, 2), (2, 1)]
    assert at == _conflict(asked)["at"].date()
    assert all(one["complete_to"] is not None and one["worst_ms"] >= 0 for one in rows)


def test_what_is_quarantined(spark: SparkSession, asked: Site) -> None:
    """What nobody has released or dropped yet."""
    (row,) = _answer(spark, asked, "What is quarantined?")

    assert (row["id"].split("-")[0], row["reason"]) == ("2", "json")
