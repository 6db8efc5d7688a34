"""Claims about `undo`: what it would do, what it does, and what it leaves alone.

A hub on real tables, with its topics in memory, and replicas that hold rows and write beside it.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from checkpoints.tables import TableName
from streaming.cli import taken
from streaming.core.model.change import HUB_RID
from streaming.core.model.errors import HubError, QuestionError
from streaming.operator import undo
from tests.model.language import run
from tests.model.local_hub import local_hubs
from tests.model.sentences import Story
from tests.streaming.cli.conftest import Answer, Slackwater
from tests.streaming.replay.conftest import History

DONE = ("--yes", "--why", "a bad release", "--who", "me", "--json")


@dataclass(frozen=True, slots=True)
class LiveStory:
    """A story that goes on, and the command that looks at its tables."""

    story: Story
    history: History
    command: Slackwater

    def tell(self, text: str) -> None:
        """Go on with the story, to where everything has settled."""
        for line in filter(None, map(str.strip, text.splitlines())):
            run(self.story, line)
        run(self.story, "everything settles")

    def rows(self, table: str = "t") -> dict[str, str]:
        """What all replicas hold, which is the same; key -> value."""
        run(self.story, "all hold the same rows")
        run(self.story, "all are level")
        answer = self.command("rows", table, "--json")
        return {row["image"]["k"]: row["image"]["v"] for row in answer.facts["rows"]}

    def undo(self, *arguments: str, table: str = "t") -> Answer:
        """The command, of a table."""
        return self.command("undo", "--table", table, *arguments)

    def undone(self, *arguments: str, table: str = "t") -> Answer:
        """The same, done, and everywhere."""
        answer = self.undo(*arguments, *DONE, table=table)
        assert answer.code == 0, answer.err
        run(self.story, "everything settles")
        return answer

    def epoch(self) -> str:
        """The last hub epoch."""
        return str(self.story.world.hub.hub_epoch())

    def log(self) -> list[dict[str, Any]]:
        """The changelog, in hub order."""
        rows = self.history.rows(TableName.CHANGELOG).to_pylist()
        return sorted(rows, key=lambda row: (row["hub_epoch"], row["place"]))

    def made(self) -> list[tuple[str, str, str]]:
        """(op, key, application) of the hub's own changes, in hub order."""
        own = [row for row in self.log() if row["kind"] == "change" and row["rid"] == HUB_RID]
        return [(row["op"], row["key"], row["app"]) for row in own]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the hub's configuration and state are."""
    monkeypatch.setenv("SLACKWATER_CONFIG", str(tmp_path / "hub.toml"))
    return tmp_path


@pytest.fixture
def begun(folder: Path, slackwater: Slackwater, request: pytest.FixtureRequest) -> LiveStory:
    """Three replicas that hold three rows in each table; the parameter describes the tables."""
    described = getattr(request, "param", "t is EPOCH; u is MAX(v)")
    live = LiveStory(Story(local_hubs(folder)), History(folder), slackwater)
    live.tell(f"given r1 r2 r3; {described}")
    live.tell("""
        r1 writes i = w1
        r2 writes j = w2
        r3 writes k = w3
        r1 writes u.i = w4
    """)
    return live


@pytest.fixture
def config_file(folder: Path) -> Path:
    """The hub's own."""
    return folder / "hub.toml"


def test_rows_are_everywhere_as_they_stood(begun: LiveStory) -> None:
    """First it is said, then done, by one transaction that names who ordered it."""
    then = begun.epoch()
    begun.tell("""
        r1 deletes i as w5
        r1 writes j = w6
        r1 writes m = w7
    """)

    said = begun.undo("--to", then)
    facts = begun.undo("--to", then, "--json").facts

    assert said.code == 0
    assert "3 rows of t as they stood: 1 inserted again, 1 set back, 1 deleted again" in said.out
    assert "nothing is done yet: add --yes and --why TEXT" in said.out
    assert (facts["rows"], facts["kept"], facts["numbers"]) == (3, 0, [])
    assert {"key": '{"k":"m"}', "now": {"k": "m", "v": "w7"}, "then": None} in facts["first_rows"]
    begun.tell("")
    assert begun.rows() == {"j": "w6", "k": "w3", "m": "w7"}

    begun.undo("--to", then, *DONE)
    run(begun.story, "the hub takes all and is killed before the commit")
    begun.tell("the hub restarts")

    assert begun.rows() == {"i": "w1", "j": "w2", "k": "w3"}
    assert begun.made() == [
        ("insert", '{"k":"i"}', "undo: me"),
        ("update", '{"k":"j"}', "undo: me"),
        ("delete", '{"k":"m"}', "undo: me"),
    ]
    own = [row for row in begun.log() if row["app"]]
    assert {row["prim_csn"] for row in own} == {own[0]["csn"]}
    assert begun.undo("--to", then).code == 1


def test_what_others_wrote_since_stays(begun: LiveStory) -> None:
    """Good writes behind the bad ones are listed; --overwrite gives them up."""
    then = begun.epoch()
    begun.tell("""
        r1 writes i = w5
        r1 writes j = w6
    """)
    begun.tell("r2 writes j = w7")

    answer = begun.undone("--to", then, "--by", "r1")

    assert begun.rows() == {"i": "w1", "j": "w7", "k": "w3"}
    assert [row["key"] for row in answer.facts["first_kept"]] == ['{"k":"j"}']
    assert begun.undone("--to", then, "--by", "r1", "--overwrite").facts["overwritten"] == 2
    assert begun.rows()["j"] == "w2"


def test_a_row_that_is_written_while_an_undo_is_ordered_stays(begun: LiveStory) -> None:
    """What nobody has looked at is lost to nobody, whatever the function of the table says."""
    then = begun.epoch()
    begun.tell("""
        r1 writes i = w5
        r1 writes j = w6
    """)
    begun.tell("r1 deletes k as w7")
    begun.undo("--to", then, "--overwrite", *DONE)

    begun.tell("""
        r2 writes j = w8
        r2 publishes
    """)

    rows = begun.rows()
    assert (rows["i"], rows["j"], rows["k"]) == ("w1", "w8", "w3")


@pytest.mark.more
def test_an_undo_is_undone_by_its_transaction(begun: LiveStory) -> None:
    """It is a change like any other, and recorded like one."""
    then = begun.epoch()
    begun.tell("r1 deletes i as w5")
    begun.undone("--to", then)
    (csn,) = [row["csn"] for row in begun.log() if row["app"] == "undo: me"]

    begun.undone("--transaction", csn.upper())

    assert begun.rows() == {"j": "w2", "k": "w3"}
    assert begun.command("verify", "--json").facts["sound"]
    assert begun.command("replay", "--json").facts["equal"]


def test_a_truncate_is_undone(begun: LiveStory) -> None:
    """Every row that stood comes back; one that was written behind it stays."""
    then = begun.epoch()
    begun.tell("r2 truncates t as w5")
    begun.tell("r1 writes i = w6")

    begun.undone("--to", then, "--by", "r2")

    assert begun.rows() == {"i": "w6", "j": "w2", "k": "w3"}


@pytest.mark.more
def test_only_what_is_chosen_is_undone(begun: LiveStory) -> None:
    """By transaction, by two moments, by a key, or by a condition on what the rows were."""
    begun.tell("r1 writes j = w5")
    begun.tell("""
        r1 writes i = w6 in T
        r1 deletes k as w7 in T
        r1 commits T
        r2 writes u.k = w8
    """)
    begun.undone("--transaction", begun.history.csn_of("w6"))
    assert begun.rows() == {"i": "w1", "j": "w5", "k": "w3"}

    then = begun.epoch()
    begun.tell("r1 deletes i as w9")
    begun.tell("r1 deletes j as w10")
    between = begun.epoch()
    begun.tell("r1 deletes k as w11")
    begun.undone("--written-between", between, between)
    assert begun.rows() == {"j": "w5"}

    begun.undone("--to", then, "--where", "v LIKE 'w%' AND k > 'j'")
    assert begun.rows() == {"j": "w5", "k": "w3"}
    begun.undone("--to", then, "--key", "i")
    assert begun.rows() == {"i": "w1", "j": "w5", "k": "w3"}


@pytest.mark.more
@pytest.mark.parametrize("begun", ["t is EPOCH_TRANS; u is OLD(v)"], indirect=True)
def test_tables_with_other_functions_are_undone_too(begun: LiveStory) -> None:
    """An undo has seen all that it writes over, so no function is asked."""
    then = begun.epoch()
    begun.tell("""
        r1 writes i = w5 in T
        r1 deletes j as w6 in T
        r1 commits T
        r1 writes u.i = w7
    """)

    begun.undone("--to", then)
    begun.undone("--to", then, table="u")

    assert begun.rows() == {"i": "w1", "j": "w2", "k": "w3"}
    assert begun.rows("u") == {"i": "w4"}


WRONG = [
    (("--to", "99"), "the last one is"),
    (("--to", "2999-01-01T00:00:00Z"), "is still to come"),
    (("--to", "1", "--where", "v ="), "is no condition in SQL"),
    (("--to", "1", "--where", "x = 1"), "'x' is no column of table t"),
    (("--to", "1", "--where", "now() > 'x'"), "is no column of table t"),
    (("--to", "1", "--by", "somebody"), "neither a replica"),
    (("--to", "1", "--key", '{"x":"1"}'), "is no key of t"),
    (("--to", "1", "--yes"), "--yes needs --why"),
    (("--transaction", "0" * 20), "the changelog has no change"),
    ((), "say which changes are to be undone"),
]


def test_what_cannot_be_asked_is_said(begun: LiveStory) -> None:
    """Exit 2, and nothing is ordered."""
    elsewhere = ("--transaction", begun.history.csn_of("w4"))
    for arguments, why in [*WRONG, (elsewhere, "wrote u, and nothing of t")]:
        answer = begun.undo(*arguments)
        assert (answer.code, why in answer.err) == (2, True), answer.err


def goes_on(begun: LiveStory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the hub go on whenever the command waits; other threads sleep as ever."""
    hub = SimpleNamespace(
        monotonic=time.monotonic, sleep=lambda _: run(begun.story, "everything settles")
    )
    monkeypatch.setattr(taken, "time", hub)


def test_who_waits_is_told_what_came_of_it(
    begun: LiveStory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script goes on behind what is written, and not behind what is only ordered."""
    then = begun.epoch()
    begun.tell("r1 deletes i as w5")
    waits = ("--to", then, "--wait", "9")

    early = begun.undo("--to", then, *DONE, "--wait", "0.01")
    goes_on(begun, monkeypatch)
    said = begun.undo(*waits, *DONE[:-1])
    begun.tell("r1 deletes i as w6")
    done = begun.undo(*waits, "--overwrite", *DONE)

    assert (early.code, "outcome" in early.facts) == (1, False)
    assert said.code == 0, said.err
    written = [row for row in begun.log() if row["app"] == "undo: me"]
    assert f"1 row written by hub epoch {written[0]['hub_epoch']}" in said.out
    assert f"`slackwater wait {written[0]['csn']}` waits until all have them" in said.out
    assert (done.facts["outcome"]["accepted"], done.facts["outcome"]["rejected"]) == (1, 0)
    assert begun.undo(*waits, *DONE).code == 1


def raises(error: HubError) -> Callable[..., NoReturn]:
    """What a hub finds that looks."""

    def found(*_: object) -> NoReturn:
        raise error

    return found


def test_who_waits_is_told_what_the_hub_refused(
    begun: LiveStory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written then, and what was ordered is not silently gone."""
    then = begun.epoch()
    begun.tell("r1 deletes i as w5")
    goes_on(begun, monkeypatch)
    monkeypatch.setattr(undo, "planned", raises(QuestionError("it is purged by now")))

    answer = begun.undo("--to", then, "--wait", "9", *DONE[:-1])

    assert answer.code == 1
    assert "the hub refused 1 command: the moment is purged by now" in answer.out


def test_only_an_order_is_waited_for(begun: LiveStory) -> None:
    """A question is answered at once."""
    answer = begun.undo("--to", begun.epoch(), "--wait", "9")

    assert (answer.code, "--wait needs --yes" in answer.err) == (2, True)
