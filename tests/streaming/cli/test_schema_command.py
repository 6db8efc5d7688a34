"""Claims about `schema`, and about the documents that `agent check` writes."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from checkpoints.tables import TableName
from connectors import wire
from streaming.core.records.record import PublishedSchema
from streaming.core.schema.document import schema_of
from tests.checkpoints.written_state import WrittenState, ruv
from tests.streaming.cli.conftest import Slackwater

pytestmark = pytest.mark.usefixtures("config_file")
TABLE = "CREATE TABLE t (id INT PRIMARY KEY NOT NULL)"


@pytest.fixture
def written(slackwater: Slackwater, tmp_path: Path) -> "Documents":
    """What writes the documents of replicas a and b."""
    return Documents(slackwater, tmp_path)


class Documents:
    """Databases of two replicas, and their documents."""

    def __init__(self, slackwater: Slackwater, folder: Path) -> None:
        self.slackwater, self.folder = slackwater, folder

    def of(self, replica: str, ddl: str = TABLE) -> str:
        """The path of a document of a database with this schema."""
        path, document = self.folder / f"{replica}.db", self.folder / f"{replica}.json"
        path.unlink(missing_ok=True)
        with closing(sqlite3.connect(path)) as client:
            client.executescript(ddl)
        words = ("--replica", replica, "--database", str(path), "--document", str(document))
        self.slackwater("agent", "check", *words)
        return str(document)


def test_equal_schemas_are_a_yes(slackwater: Slackwater, written: Documents) -> None:
    """Exit 0: it can be started."""
    answer = slackwater("schema", written.of("a"), written.of("b"))

    assert answer.code == 0
    assert answer.out == "2 schemas compared with the configuration: no difference matters\n"


def test_a_difference_is_a_no_with_what_it_causes(
    slackwater: Slackwater, written: Documents
) -> None:
    """The same facts for people and for programs."""
    files = written.of("a"), written.of("b", TABLE.replace(")", " CHECK (id > 0))"))

    answer, facts = slackwater("schema", *files), slackwater("schema", *files, "--json")

    assert (answer.code, facts.code) == (1, 1)
    assert answer.out.startswith(
        "difference: table t, CHECK (id > 0): missing at a; there at b: a row that a accepts may be"
        " refused at b, and `slackwater status` then lists it as differing; declare it at every"
        " replica, or at none\n"
    )
    assert not facts.facts["is_good"]
    (one,) = facts.facts["differences"]
    assert (one["table"], one["subject"], one["matters"]) == ("t", "CHECK (id > 0)", True)
    assert one["at"] == {"a": "missing", "b": "there"}


def test_a_replica_without_a_document_is_unknown(
    slackwater: Slackwater, written: Documents
) -> None:
    """Nobody can say that a schema fits which nobody saw."""
    answer = slackwater("schema", written.of("a"))

    assert answer.code == 1
    assert (
        "unknown: the schema of b: write it with `slackwater agent check --replica b" in answer.out
    )


def test_the_ids_of_each_replica_are_printed(slackwater: Slackwater, written: Documents) -> None:
    """An INTEGER PRIMARY KEY gives two replicas the same ids."""
    rowid = "CREATE TABLE t (id INTEGER PRIMARY KEY)"

    files = written.of("a", rowid), written.of("b", rowid)
    answer, facts = slackwater("schema", *files), slackwater("schema", *files, "--json").facts

    assert answer.code == 0
    assert "ids: table t, column id: a database gives the largest id plus one" in answer.out
    steps = [one["next"] for one in facts["ids"][0]["ranges"]]
    assert all(step in answer.out for step in steps)
    assert "BETWEEN 2000000000000 AND 2999999999999" in steps[1]


def test_the_answer_of_check_is_a_document_too(
    slackwater: Slackwater, written: Documents, tmp_path: Path
) -> None:
    """Whoever keeps that already need not run it again."""
    whole = tmp_path / "whole.json"
    written.of("a")
    words = ("--replica", "a", "--database", str(tmp_path / "a.db"), "--json")
    whole.write_text(json.dumps(slackwater("agent", "check", *words).facts))

    assert slackwater("schema", str(whole), written.of("b")).code == 0


def test_files_that_cannot_be_compared_are_wrong_usage(
    slackwater: Slackwater, written: Documents, tmp_path: Path
) -> None:
    """Each with its path and what to do."""
    one = written.of("a")
    none, other = tmp_path / "none.json", tmp_path / "other.json"
    other.write_text(Path(one).read_text("utf-8").replace('"a"', '"z"'))

    answers = [
        slackwater("schema", *files)
        for files in ((str(none),), (one, one), (str(other),), (str(tmp_path / "a.db"),))
    ]

    assert [answer.code for answer in answers] == [2, 2, 2, 2]
    for answer, said in zip(
        answers,
        (
            "none.json cannot be read",
            "are both of replica a",
            "is of 'z', which is no replica of the configuration",
            "a.db is no document of a schema",
        ),
        strict=True,
    ):
        assert said in answer.err


def test_the_tables_of_a_configuration_are_generated(
    slackwater: Slackwater, config_file: Path, tmp_path: Path
) -> None:
    """Before there is a configuration; appended to one, it and the database pass their checks."""
    path, head = tmp_path / "a.db", config_file.read_text("utf-8").partition("[[tables]]")[0]
    with closing(sqlite3.connect(path)) as client:
        client.executescript("CREATE TABLE shop (id INTEGER PRIMARY KEY, at DATE, price STRING)")
    config_file.unlink()

    answer = slackwater("agent", "check", "--database", str(path), "--generate")

    assert answer.code == 0
    config_file.write_text(f"{head}\n{answer.out}", encoding="utf-8")
    assert slackwater("config", "check").code == 0
    assert slackwater("agent", "check", "--database", str(path)).code == 0


def told(state: WrittenState, written: Documents, *ddl: str) -> None:
    """Let agents a and b have published these schemas, and by digest once more."""
    records = []
    for rid, statement in enumerate(ddl, 1):
        one = schema_of(Path(written.of("ab"[rid - 1], statement)).read_bytes(), "a file")
        for offset, document in ((1, one.text()), (9, None)):
            value = wire.encode("s", PublishedSchema(one.digest, document)).decode()
            record = {"batch": 1, "rid": rid, "offset": offset, "kind": "schema", "value": value}
            records.append(record | {"outcome": "taken"})
    state.append(TableName.EVENTS, *records)
    state.commit(1, 1, ruv(r1=1))


def test_what_agents_published_is_compared(
    slackwater: Slackwater, written: Documents, state: WrittenState
) -> None:
    """Without a file; a file takes the place of its replica's."""
    told(state, written, TABLE, TABLE.replace(")", " CHECK (id > 0))"))

    answer = slackwater("schema")
    mended = slackwater("schema", written.of("b"))

    assert answer.code == 1
    assert "difference: table t, CHECK (id > 0): missing at a; there at b" in answer.out
    assert mended.code == 0


def test_status_and_level_warn_of_a_difference_in_one_line(
    slackwater: Slackwater, written: Documents, state: WrittenState
) -> None:
    """They answer as if there were none: nothing has happened to a row yet."""
    told(state, written, TABLE, "CREATE TABLE t (id INT PRIMARY KEY NOT NULL CHECK (id > 0), x)")

    for command in ("status", "level"):
        (line,) = (
            one for one in slackwater(command).out.splitlines() if one.startswith("warning: the")
        )
        assert line == (
            "warning: the schemas of the replicas differ: table t, column x and 1 more: rows may be"
            " refused, or differ: `slackwater schema` says what each causes"
        )
        assert len(slackwater(command, "--json").facts["schema_differences"]) == 2


def test_a_digest_without_its_document_is_unknown(
    slackwater: Slackwater, written: Documents, state: WrittenState
) -> None:
    """The hub may have lost the record that had it: an old document is not taken for a new one."""
    told(state, written, TABLE, TABLE)
    value = wire.encode("s", PublishedSchema("another")).decode()
    state.append(
        TableName.EVENTS,
        {"batch": 1, "rid": 1, "offset": 20, "kind": "schema", "outcome": "taken", "value": value},
    )

    answer = slackwater("schema")

    assert answer.code == 1
    assert "unknown: the schema of a" in answer.out


def test_check_says_where_the_document_is(slackwater: Slackwater, tmp_path: Path) -> None:
    """Who gave the path of another folder finds it."""
    database, document = tmp_path / "a.db", tmp_path / "a.json"
    with closing(sqlite3.connect(database)) as client:
        client.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")

    answer = slackwater("agent", "check", "--database", str(database), "--document", str(document))

    assert document.exists()
    assert answer.out.splitlines()[-1] == f"its schema is written to {document}"
