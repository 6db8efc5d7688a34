"""Claims about `sql` without Spark: what it answers, what it refuses, and what it does not open."""

import os
import signal
import threading
from pathlib import Path

import pytest

from checkpoints.tables import TableName
from streaming.replay.sql.answer import SqlAnswer, answer_within
from tests.checkpoints.written_state import WrittenState, ruv
from tests.harness.builders import csn
from tests.streaming.cli.conftest import CONFIG, Slackwater
from tests.streaming.cli.test_imports import modules_of

COLUMNS = (
    'columns = { id = "int64", "the \\"value\\"" = "text", n = "int32", at = "timestamp",'
    ' x = "float64", price = "decimal", ok = "bool" }'
)
IMAGE = (
    '{{"id":"{id}","the \\"value\\"":"{text}","n":{n},"at":"2026-01-02T03:04:05.5Z","x":1.5,'
    '"price":"10.50","ok":true}}'
)


def written(number: int, text: str = "it's", n: str = "7") -> dict[str, object]:
    """An accepted insert of hub epoch `number`, of the row of that id."""
    return {
        "batch": number,
        "hub_epoch": number,
        "place": 0,
        "kind": "change",
        "verdict": "accepted",
        "rid": 1,
        "csn": csn(number, 1),
        "table": "t",
        "key": f'{{"id":"{number}"}}',
        "op": "insert",
        "image": IMAGE.format(id=number, text=text, n=n),
    }


@pytest.fixture
def rows(state: WrittenState, config_file: Path) -> WrittenState:
    """A hub of three batches, each of which inserted a row into a table of many types."""
    config_file.write_text(CONFIG.replace('columns = { id = "int64" }', COLUMNS), encoding="utf-8")
    for number in (1, 2, 3):
        state.append(TableName.CHANGELOG, written(number))
        state.commit(number, number, ruv(r1=number))
    return state


@pytest.mark.usefixtures("rows")
def test_a_row_is_answered_in_its_types(slackwater: Slackwater) -> None:
    """Numbers are compared as numbers and times as times, in UTC; names are quoted as in SQL."""
    answer = slackwater("sql", "SELECT * FROM t WHERE id > 2 AND n = 7 AND ok", "--json")

    assert answer.code == 0, answer.err
    assert answer.facts["rows"] == [
        {
            "id": 3,
            'the "value"': "it's",
            "n": 7,
            "at": "2026-01-02T03:04:05.500000Z",
            "x": 1.5,
            "price": "10.50",
            "ok": True,
            "_author": 1,
            "_hub_epoch": 3,
            "_csn": csn(3, 1),
        }
    ]


def test_a_table_of_any_name_is_read(
    state: WrittenState, config_file: Path, slackwater: Slackwater
) -> None:
    """SQLite has tables of such names, quoted as in SQL."""
    config_file.write_text(CONFIG.replace('name = "t"', """name = 'x"y'"""), encoding="utf-8")
    state.append(TableName.CHANGELOG, written(1) | {"table": 'x"y', "image": '{"id":"1"}'})
    state.commit(1, 1, ruv(r1=1))

    answer = slackwater("sql", 'SELECT id FROM "x""y"', "--json")

    assert answer.code == 0, answer.err
    assert answer.facts["rows"] == [{"id": 1}]


@pytest.mark.usefixtures("rows")
def test_a_moment_shows_rows_and_tables_of_the_hub_as_they_were(slackwater: Slackwater) -> None:
    """What was written later is in neither."""
    asked = "SELECT count(*) AS rows, (SELECT max(batch) FROM hub_changelog) AS last FROM t"

    answer = slackwater("sql", asked, "--as-of", "2", "--json")

    assert answer.facts == {"hub_epoch": 2, "rows": [{"rows": 2, "last": 2}]}


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("SELECT * FROM tt", "there is no table 'tt': did you mean t?"),
        ("SELECT * FROM hub_changlog", "did you mean hub_changelog?"),
        ("SELECT idd FROM t", 'Referenced column "idd" not found'),
        ("SELEC 1", "syntax error"),
        ("", "give one query that reads"),
        ("SELECT 1; SELECT 2", "give one query that reads"),
        ("INSERT INTO t VALUES (1)", "give one query that reads"),
        ("CREATE TABLE x AS SELECT 1", "give one query that reads"),
        ("COPY (SELECT 1) TO '/tmp/slackwater-sql'", "give one query that reads"),
        ("ATTACH '/tmp/slackwater-sql'", "give one query that reads"),
        ("SET memory_limit = '99GB'", "give one query that reads"),
        ("SELECT * FROM read_text('/etc/hostname')", "file system operations are disabled"),
        ("SELECT * FROM read_csv('/etc/hostname')", "file system operations are disabled"),
        ("SELECT * FROM glob('/*')", "file system operations are disabled"),
        ("SELECT * FROM '/etc/hostname'", "there is no table '/etc/hostname'"),
        ("SELECT * FROM store", "there is no table 'store'"),
        ("SELECT 'open FROM t", "unterminated string literal"),
        ("UPDATE t SET n = 1", "give one query that reads"),
        ("DELETE FROM t", "give one query that reads"),
        ("PRAGMA database_list", "give one query that reads"),
        ("INSTALL httpfs", "give one query that reads"),
        ("EXPLAIN ANALYZE COPY (SELECT 1) TO '/tmp/slackwater-sql'", "disabled"),
        ("SELECT CAST('x' AS INTEGER)", "Could not convert string 'x' to INT32"),
        ("SELECT DATE '20000-01-01'", "cast it to VARCHAR"),
        ("SELECT repeat('x', 80000000)", "the answer has more than 64,000,000 bytes"),
        ("SELECT * FROM t WHERE v = '\udcff'", "the query is no UTF-8, at character 28"),
    ],
)
@pytest.mark.usefixtures("rows")
def test_what_cannot_be_answered_is_refused_in_a_line(
    slackwater: Slackwater, asked: str, says: str
) -> None:
    """A question reads the hub's tables: no other file, and nothing is changed."""
    answer = slackwater("sql", asked)

    assert answer.code == 2
    assert answer.out == ""
    assert says in answer.err
    assert len(answer.err.splitlines()) == 1
    assert not Path("/tmp/slackwater-sql").exists()


def test_a_value_that_has_no_such_form_is_named(slackwater: Slackwater, rows: WrittenState) -> None:
    """A null in its place would be a wrong answer; who does not ask for the column gets his."""
    rows.append(TableName.CHANGELOG, written(4, n='"many"'))
    rows.commit(4, 4, ruv(r1=4))

    whole, others = slackwater("sql", "SELECT n FROM t"), slackwater("sql", "SELECT id FROM t")

    assert whole.code == 2
    assert 'column n of t, row {"id":"4"}: many is no int32' in whole.err
    assert others.code == 0


def test_a_question_opens_no_table_that_it_does_not_name(
    slackwater: Slackwater, rows: WrittenState
) -> None:
    """A broken table is in the way of those only who ask for it."""
    rows.append(TableName.EVENTS, {"batch": 1, "rid": 1, "offset": 0, "kind": "heartbeat"})
    for file in (rows.root / "events").glob("*.parquet"):
        file.unlink()

    assert slackwater("sql", "SELECT count(*) FROM t").code == 0
    assert slackwater("sql", "SELECT count(*) FROM hub_events").code != 0


@pytest.mark.usefixtures("rows")
def test_a_question_starts_no_spark() -> None:
    """Beside a hub on a small machine a second JVM takes minutes, for four rows."""
    found = modules_of("sql", "SELECT * FROM t")

    assert "duckdb" in found
    assert found & {"pyspark", "kafka", "confluent_kafka"} == set()


@pytest.mark.usefixtures("rows")
def test_no_more_rows_are_answered_than_are_shown(slackwater: Slackwater) -> None:
    """An answer of any length fits into memory."""
    asked = "SELECT a.range FROM range(1000000000) AS a, range(1000000) AS b"

    answer = slackwater("sql", asked, "--limit", "3", "--json")

    assert len(answer.facts["rows"]) == 3


@pytest.mark.usefixtures("rows")
def test_an_answer_is_not_read_on_behind_what_it_may_hold(slackwater: Slackwater) -> None:
    """Whatever the limit of its rows is, they do not fill the memory before they are refused."""
    row = "CASE WHEN range < 10000 THEN repeat('x', 40000) ELSE error('read on') END"

    answer = slackwater("sql", f"SELECT {row} FROM range(20000)", "--limit", "20000")

    assert "the answer has more than 64,000,000 bytes" in answer.err


def test_columns_of_one_name_are_all_there(slackwater: Slackwater, rows: WrittenState) -> None:
    """A join of two tables with `*` has some; one in place of the other is a wrong answer."""
    asked = "SELECT 1 AS n, 2 AS n, 'x'::BLOB AS b, [1, NULL] AS l, 'nan'::DOUBLE AS d"

    assert slackwater("sql", asked).out.splitlines()[2].split()[:3] == ["1", "2", "78"]
    assert slackwater("sql", asked, "--json").facts["rows"] == [
        {"n": 1, "n_2": 2, "b": "78", "l": [1, None], "d": "nan"}
    ]
    assert rows.root.is_dir()


ENDLESS = "SELECT sum(hash(a.range + b.range)) FROM range(10000000) AS a, range(10000000) AS b"


@pytest.mark.usefixtures("rows")
def test_a_query_that_does_not_end_is_ended(slackwater: Slackwater) -> None:
    """A join that lacks its condition would keep a small machine busy beside its hub."""
    answer = slackwater("sql", ENDLESS, "--timeout", "0.1")

    assert answer.code == 2
    assert answer.err == (
        "slackwater: the query takes longer than 0.1 s: ask for less, or give it more time with"
        " --timeout\n"
    )


def test_an_interrupted_query_ends_at_once() -> None:
    """Who presses Ctrl-C has seen what he asked for; the query itself is one step of Python."""
    is_interrupted = threading.Event()

    def work() -> SqlAnswer:
        os.kill(os.getpid(), signal.SIGINT)
        is_interrupted.wait()
        return SqlAnswer((), [])

    with pytest.raises(KeyboardInterrupt):
        answer_within(60, work, is_interrupted.set)

    assert is_interrupted.is_set()
