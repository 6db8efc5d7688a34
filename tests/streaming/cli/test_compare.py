"""`slackwater compare`: two databases, or a database and the hub; what differs is named."""

import os
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from checkpoints.commit.last_poll import LastPoll, write_poll
from checkpoints.commit.lock import FILE, only_hub
from checkpoints.reading.reader import open_state
from checkpoints.tables import TableName
from connectors import wire
from connectors.sqlite.install.install import install
from streaming.compare.rounds import AGAIN_S
from streaming.config.sources.load import load
from streaming.core.model.command import parse_row_repair
from streaming.core.model.ruv import NOTHING_KNOWN
from streaming.core.records.record import LocalWrites
from tests.checkpoints.written_state import WrittenState, agreement, replica, ruv
from tests.harness.builders import csn
from tests.streaming.cli.conftest import Slackwater

Balances = Sequence[tuple[int, str | None]]


@pytest.fixture
def config_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Replicas a and b with a table of balances; c is sent another table."""
    path = tmp_path / "hub.toml"
    path.write_text(
        """
        kafka.bootstrap_servers = "localhost:9092"
        hub.name = "centre"
        replicas = [
            { name = "a", rid = 1 }, { name = "b", rid = 2 }, { name = "c", rid = 3 }
        ]
        tables = [
            { name = "t", key = ["id"], columns = { id = "int64", balance = "decimal" } },
            { name = "other", key = ["id"], columns = { id = "int64" } },
        ]
        agreements = [
            { name = "to-a", consumer = "a", tables = ["t"] },
            { name = "to-b", consumer = "b", tables = ["t"] },
            { name = "to-c", consumer = "c", tables = ["other"] },
        ]
        """,
        encoding="utf-8",
    )
    monkeypatch.setenv("SLACKWATER_CONFIG", str(path))
    return path


def database(folder: Path, name: str, rid: int, rows: Balances) -> str:
    """The file of an attached replica with these rows."""
    path = folder / f"{name}.db"
    tables = load(folder / "hub.toml").table_map()
    with closing(sqlite3.connect(path, isolation_level=None)) as client:
        client.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, balance TEXT)")
        client.execute("BEGIN")
        client.executemany("INSERT INTO t VALUES (?, ?)", rows)
        client.execute("COMMIT")
        install(client, rid, [tables["t"]])
    return str(path)


def hub_row(state: WrittenState, batch: int, number: int, image: str) -> None:
    """A row of the hub, as its changelog has it."""
    row = {"table": "t", "key": f'{{"id":"{number}"}}', "image": image, "op": "insert"}
    entry = {"batch": batch, "hub_epoch": batch, "place": 0, "kind": "change"}
    change = {**row, **entry, "rid": 1, "csn": csn(batch, 1), "verdict": "accepted"}
    state.append(TableName.CHANGELOG, change)
    state.commit(batch, batch, ruv(r1=batch))


def test_equal_replicas_are_equal(slackwater: Slackwater, tmp_path: Path) -> None:
    """A decimal in another spelling is the same; nobody waits where nothing differs."""
    a = database(tmp_path, "a", 1, [(1, "1.5"), (2, None)])
    b = database(tmp_path, "b", 2, [(1, "1.50"), (2, None)])

    answer = slackwater("compare", a, "b", "--database", f"b={b}", "--settle", "900")

    assert answer.code == 0, answer.err
    assert "a and b are equal: 2 rows compared" in answer.out


def test_what_differs_is_named_with_its_columns(slackwater: Slackwater, tmp_path: Path) -> None:
    """As text, as JSON and as a page; exit 1, and only the columns that differ."""
    a = database(tmp_path, "a", 1, [(1, "1.5"), (2, "2"), (4, "4")])
    b = database(tmp_path, "b", 2, [(1, "7"), (3, "3"), (4, "4")])
    page = tmp_path / "report.html"

    told = slackwater("compare", a, b, "--settle", "0", "--html", str(page))
    answer = slackwater("compare", a, b, "--settle", "0", "--json")

    assert (told.code, answer.code) == (1, 1), told.err + answer.err
    assert "a and b differ in 3 rows of 3" in told.out
    assert "a and b differ in 3 rows of 3" in page.read_text(encoding="utf-8")
    assert [(row["key"], row["kind"], row["columns"]) for row in answer.facts["rows"]] == [
        ('{"id":"1"}', "columns", ["balance"]),
        ('{"id":"2"}', "only_first", []),
        ('{"id":"3"}', "only_second", []),
    ]
    assert answer.facts["rows"][0]["second"] == {"id": "1", "balance": "7"}
    assert answer.facts["tables"] == [
        {
            "table": "t",
            "rows": {"first": 3, "second": 3},
            "differing": 3,
            "more_differ": False,
            "in_flight": 0,
            "written": 0,
        }
    ]


def test_a_replica_is_compared_with_the_rows_of_the_hub(
    slackwater: Slackwater, state: WrittenState, tmp_path: Path
) -> None:
    """What the hub does not know of a row is no difference."""
    hub_row(state, 1, 1, '{"id":"1","balance":"1.5"}')
    hub_row(state, 2, 2, '{"id":"2"}')
    hub_row(state, 3, 3, '{"id":"3","balance":"3"}')
    a = database(tmp_path, "a", 1, [(1, "1.5"), (2, "2"), (3, "4")])

    answer = slackwater("compare", "hub", a, "--settle", "0", "--json")

    assert answer.code == 1, answer.err
    assert [(row["key"], row["columns"]) for row in answer.facts["rows"]] == [
        ('{"id":"3"}', ["balance"])
    ]
    assert answer.facts["first"] == "hub"


@pytest.mark.usefixtures("state")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("a", "b"), "where is the database of a? Say --database a=DSN"),
        (("a", "b", "--database", "a"), "say NAME=DSN"),
        (("hub", "nowhere.db"), "there is no database nowhere.db"),
        (("hub", "hub", "--table", "u"), "do not both have table 'u': use one of other, t"),
    ],
)
def test_a_question_that_cannot_be_asked_is_no_answer(
    slackwater: Slackwater, arguments: tuple[str, ...], said: str
) -> None:
    """Exit 1 would say that they differ."""
    answer = slackwater("compare", *arguments)

    assert answer.code == 2
    assert said in answer.err


def test_a_database_of_another_replica_is_not_taken_for_this_one(
    slackwater: Slackwater, tmp_path: Path
) -> None:
    """Two names that were mixed up would be a comparison of who is never named."""
    b = database(tmp_path, "b", 2, [(1, "1")])

    answer = slackwater("compare", "a", b, "--database", f"a={b}")

    assert answer.code == 2
    assert "is the database of b, not of a" in answer.err


def test_tables_that_only_one_has_are_left_out_and_named(
    slackwater: Slackwater, state: WrittenState, tmp_path: Path
) -> None:
    """A replica lacks what its agreement does not send it."""
    hub_row(state, 1, 1, '{"id":"1","balance":"1"}')
    a = database(tmp_path, "a", 1, [(1, "1")])

    answer = slackwater("compare", a, "hub")

    assert answer.code == 0, answer.err
    assert "not compared, because only one of them has them: other" in answer.out


def test_a_row_in_flight_is_not_taken_for_a_lost_one(
    slackwater: Slackwater, state: WrittenState, tmp_path: Path
) -> None:
    """Who waits for less than the lag is told so."""
    row = {"table": "t", "key": '{"id":"1"}', "image": '{"id":"1","balance":"1"}', "op": "insert"}
    entry = {"batch": 1, "hub_epoch": 1, "place": 0, "kind": "change", "verdict": "accepted"}
    state.append(TableName.CHANGELOG, {**row, **entry, "rid": 2, "csn": csn(1, 2)})
    behind, at_ms = agreement("to-a", 1, 0, NOTHING_KNOWN), round(time.time() * 1000) - 90_000
    state.commit(1, 1, ruv(r2=1), [replica(1), replica(2)], [behind], at_ms=at_ms)
    a = database(tmp_path, "a", 1, [])

    answer = slackwater("compare", "hub", a, "--settle", "0")
    facts = slackwater("compare", "hub", a, "--settle", "0", "--json").facts

    assert answer.code == 1, answer.err
    assert "longer than was waited for, so what differs may be in flight" in answer.out
    assert 90 <= facts["behind_s"] < 300


def test_a_round_that_cannot_tell_asks_for_nobody(
    slackwater: Slackwater, state: WrittenState, tmp_path: Path
) -> None:
    """While Kafka is away every row that is written differs, and nothing is lost."""
    hub_row(state, 1, 1, '{"id":"1","balance":"1"}')
    a = database(tmp_path, "a", 1, [(1, "2")])
    write_poll(state.root, LastPoll("host:1", round(time.time() * 1000) - 90_000, {}))
    rounds = ("compare", "--continuous", "--settle", "0", "--rounds", "1")

    found = slackwater(*rounds, "--database", f"a={a}")
    status = slackwater("status")

    assert "a: 1 row compared, 1 differ" in found.out
    assert "the hub or a consumer was 1 min" in found.out
    assert "to-a: compared 0 s ago: 1 row, 1 of them differ; the hub or a consumer" in status.out
    assert "a has other rows than the hub" not in status.out


def test_a_repair_is_shown_first_and_ordered_with_a_reason(
    slackwater: Slackwater, state: WrittenState, tmp_path: Path
) -> None:
    """Who ordered it, and why, stays in the table of commands."""
    hub_row(state, 1, 1, '{"id":"1","balance":"1"}')
    hub_row(state, 2, 2, '{"id":"2","balance":"2"}')
    a = database(tmp_path, "a", 1, [(1, "7"), (2, "2"), (3, "3")])
    asked = ("compare", "hub", a, "--settle", "0", "--repair")

    shown = slackwater(*asked, "--source", "hub", "--all")
    ordered = slackwater(
        *asked,
        "--source",
        "a",
        "--table",
        "t",
        "--key",
        "1",
        "--yes",
        "--why",
        "drill",
        "--by",
        "me",
    )

    assert (shown.code, ordered.code) == (1, 0), shown.err + ordered.err
    assert "2 rows would be set right. Nothing is done yet" in shown.out
    assert "1 row ordered: command 1" in ordered.out
    (command,) = open_state(state.root).commands()
    assert (command["command"], command["seen"]) == ("prefer", 2)
    order = parse_row_repair(command["argument"])
    assert (order.key, order.who, order.why, order.after) == (
        *('{"id":"1"}', "me", "drill"),
        '{"id":"1","balance":"7"}',
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--all",), "--repair needs --source"),
        (("--source", "c", "--all"), "--repair needs --source"),
        (("--source", "hub"), "say what --repair is to set right"),
        (("--source", "hub", "--all", "--key", "1"), "--key needs one --table"),
        (("--source", "hub", "--all", "--yes"), "--yes needs --why"),
        (("--source", "hub", "--table", "t", "--key", "1"), "does not differ"),
    ],
)
def test_a_repair_that_is_not_clear_is_not_begun(
    slackwater: Slackwater,
    state: WrittenState,
    tmp_path: Path,
    arguments: tuple[str, ...],
    said: str,
) -> None:
    """A repair overwrites rows: nothing of it is guessed."""
    hub_row(state, 1, 1, '{"id":"1","balance":"1"}')
    a = database(tmp_path, "a", 1, [(1, "1"), (2, "2")])

    answer = slackwater("compare", "hub", a, "--settle", "0", "--repair", *arguments)

    assert answer.code == 2
    assert said in answer.err
    assert open_state(state.root).commands() == []


def test_rounds_are_shown_by_status(
    slackwater: Slackwater, state: WrittenState, tmp_path: Path
) -> None:
    """What differs needs a person; a database that is away holds up no other one."""
    hub_row(state, 1, 1, '{"id":"1","balance":"1"}')
    hub_row(state, 2, 2, '{"id":"2","balance":"2"}')
    a = database(tmp_path, "a", 1, [(1, "1.00"), (2, "edited")])
    rounds = ("compare", "--continuous", "--settle", "0", "--rounds", "1")

    gone = slackwater(*rounds, "--database", "b=gone.db", "--database", f"a={a}")
    status = slackwater("status")
    facts = slackwater("status", "--json").facts

    assert gone.code == 2, gone.err
    assert "b: there is no database gone.db" in gone.err
    assert "a: 2 rows compared, 1 differ" in gone.out
    assert "to-a: compared 0 s ago: 2 rows, 1 of them differ" in status.out
    assert "a has other rows than the hub" in status.out
    found = {one["name"]: one["comparison"] for one in facts["agreements"]}
    assert (found["to-a"]["rows"], found["to-a"]["differing"]) == (2, 1)
    assert found["to-b"] is None


def test_a_round_settles_local_writes_of_tables_without_a_difference(
    slackwater: Slackwater, state: WrittenState, tmp_path: Path
) -> None:
    """Of one with a difference they are named until somebody has set that right."""
    hub_row(state, 1, 1, '{"id":"1","balance":"1"}')
    writes = LocalWrites('{"t":{"rows":1,"last_ms":5}}')
    event = {"batch": 1, "rid": 1, "offset": 1, "kind": "local_writes", "outcome": "taken"}
    state.append(TableName.EVENTS, event | {"value": wire.encode("s", writes).decode()})
    edited, equal = (database(tmp_path, f"a{at}", 1, [(1, at)]) for at in ("2", "1"))
    rounds = ("compare", "--continuous", "--settle", "0", "--rounds", "1", "--database")

    left = list[int]()
    for path in (edited, equal):
        slackwater(*rounds, f"a={path}")
        left.append(len(slackwater("local", "list", "--json").facts))

    assert left == [1, 0]


def test_a_round_that_fails_is_a_problem_until_one_ends_well(
    slackwater: Slackwater, state: WrittenState, tmp_path: Path, config_file: Path
) -> None:
    """A consumer that is never compared looks like one whose rows are equal."""
    hub_row(state, 1, 1, '{"id":"1","balance":"1"}')
    section = 'consumer = "a", compare = { database = "a.db" },'
    text = config_file.read_text(encoding="utf-8").replace('consumer = "a",', section)
    config_file.write_text(text, encoding="utf-8")
    rounds = ("compare", "--continuous", "--settle", "0", "--rounds", "1")
    problem = "to-a: not compared: there is no database"

    before = slackwater(*rounds)
    shown, failed = slackwater("status").out, slackwater("status", "--json").facts
    database(tmp_path, "a", 1, [(1, "1")])
    after = slackwater(*rounds)
    ended = slackwater("status", "--json").facts

    assert problem in " ".join(shown.split())
    assert (before.code, after.code) == (2, 0)
    assert [problem in one["what"] for one in failed["problems"]].count(True) == 1
    assert [problem in one["what"] for one in ended["problems"]].count(True) == 0
    assert [one["not_compared"] for one in ended["agreements"]] == [None] * 3
    assert ended["agreements"][0]["comparison"]["differing"] == 0


def test_a_failure_that_goes_on_is_stored_once(
    slackwater: Slackwater, state: WrittenState, tmp_path: Path
) -> None:
    """The table is read by every status; another failure is another row."""
    gone = ("--database", f"a={tmp_path / 'gone.db'}")

    slackwater("compare", "--continuous", "--rounds", "3", "--every", "0", *gone)

    (row,) = open_state(state.root).comparisons()
    assert "there is no database" in row["document"]


@pytest.mark.usefixtures("state")
def test_a_failed_round_is_not_followed_by_an_hour_of_silence(
    slackwater: Slackwater, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has corrected a password waits for the problem to go."""
    slept = list[float]()
    monkeypatch.setattr("streaming.compare.rounds.time.sleep", slept.append)
    gone = ("--database", f"a={tmp_path / 'gone.db'}")

    slackwater("compare", "--continuous", "--rounds", "2", "--every", "3600", *gone)

    assert 0 < max(slept) <= AGAIN_S


@pytest.mark.parametrize(("silent_s", "is_problem"), [(7100, False), (7300, True)])
def test_rounds_that_do_not_end_are_a_problem(
    slackwater: Slackwater,
    state: WrittenState,
    config_file: Path,
    silent_s: float,
    *,
    is_problem: bool,
) -> None:
    """A process that hangs says nothing; a hub that was just started has time for its first one."""
    section = 'consumer = "a", compare = { database = "a.db" },'
    text = config_file.read_text(encoding="utf-8").replace('consumer = "a",', section)
    config_file.write_text(text, encoding="utf-8")

    with only_hub(state.root):
        began_s = time.time() - silent_s
        os.utime(state.root / FILE, (began_s, began_s))
        facts = slackwater("status", "--json").facts

    said = [one["not_compared"] for one in facts["agreements"]]
    assert said[1:] == [None, None]
    assert (said[0] is not None) == is_problem
    assert said[0] in (None, "no round has ended for 2 h 1 min")


def test_rounds_take_their_databases_from_the_sections(
    slackwater: Slackwater, state: WrittenState, tmp_path: Path, config_file: Path
) -> None:
    """What is said on the command line wins; who is retired for good is compared no more."""
    hub_row(state, 1, 1, '{"id":"1","balance":"1"}')
    database(tmp_path, "a", 1, [(1, "1.00"), (2, "edited")])
    database(tmp_path, "b", 2, [(1, "1")])
    text = config_file.read_text(encoding="utf-8")
    for name in "ab":
        section = f'consumer = "{name}", compare = {{ database = "{name}.db" }},'
        text = text.replace(f'consumer = "{name}",', section)
    config_file.write_text(text, encoding="utf-8")
    rounds = ("compare", "--continuous", "--settle", "0", "--rounds", "1")

    both = slackwater(*rounds)
    one = slackwater(*rounds, "--database", f"b={tmp_path / 'b.db'}")

    assert (both.code, both.err, one.code) == (1, "", 0)
    assert [line.partition(" (")[0] for line in both.out.splitlines()] == [
        "a: 2 rows compared, 1 differ",
        "b: 1 row compared, 0 differ",
    ]
    assert one.out.startswith("b: 1 row compared, 0 differ")


@pytest.mark.usefixtures("state")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--continuous",), "--continuous needs --database NAME=DSN for each replica to compare"),
        (("--continuous", "--database", "x=y"), "no agreement has this consumer"),
        ((), "say which two are to be compared, or --continuous"),
    ],
)
def test_rounds_need_databases(
    slackwater: Slackwater, arguments: tuple[str, ...], said: str
) -> None:
    """A process that compares nothing looks as if nothing differed."""
    answer = slackwater("compare", *arguments)

    assert answer.code == 2
    assert said in answer.err
