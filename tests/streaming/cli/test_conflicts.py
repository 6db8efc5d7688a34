"""Claims about `conflicts`."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from checkpoints.reading.reader import open_state
from checkpoints.tables import TableName
from streaming.config.sources.load import load
from tests.checkpoints.written_state import WrittenState, ruv
from tests.harness.builders import csn
from tests.streaming.cli.conftest import Slackwater


@pytest.fixture(autouse=True)
def conflicts(state: WrittenState) -> None:
    """Three conflicts on two rows."""
    state.commit(3, 3, ruv(r1=3, r2=3))
    state.append(
        TableName.CONFLICTS,
        *(
            {
                "batch": number,
                "hub_epoch": number,
                "place": 0,
                "id": f"{number}-0",
                "cause": "author",
                "lost": "change",
                "kind": "insert_exists" if number == 1 else "update_origin_change",
                "function": "EPOCH",
                "table": "t",
                "key": '{"id":"7"}' if number == 3 else '{"id":"1"}',
                "loser_csn": csn(number, 2),
                "loser_rid": 2,
                "loser_epoch": 4,
                "winner_csn": csn(number, 1),
                "winner_rid": 1,
                "winner_hub_epoch": number,
                "mre": number - 1,
                "realign_epoch": 0,
                "same_epoch_only": False,
                "after": f'{{"id":"1","loses":{number}}}',
                "winner_image": None if number == 3 else f'{{"id":"1","wins":{number}}}',
                "resolution": "open",
                "at": datetime(2026, 1, 2, 3, 4, number, tzinfo=UTC),
            }
            for number in (3, 1, 2)
        ),
    )


def test_conflicts_are_listed_in_hub_order(slackwater: Slackwater) -> None:
    """The newest stands last, where the prompt is."""
    facts = slackwater("conflicts", "list", "--json").facts

    assert [row["hub_epoch"] for row in facts] == [1, 2, 3]
    assert "3 of 3 conflicts" in slackwater("conflicts", "list").out


def test_a_conflict_has_the_time_when_it_was_judged(slackwater: Slackwater) -> None:
    """Whoever asks what happened last night finds it."""
    listed, shown = slackwater("conflicts", "list"), slackwater("conflicts", "show", "2-0")

    assert "2026-01-02 03:04:02Z" in listed.out
    assert [line.split() for line in shown.out.splitlines() if line.startswith("time")] == [
        ["time", "2026-01-02", "03:04:02Z"]
    ]


def test_a_limit_keeps_the_newest(slackwater: Slackwater) -> None:
    """Old ones were seen before."""
    answer = slackwater("conflicts", "list", "--limit", "2")

    assert csn(1, 2) not in answer.out
    assert csn(3, 2) in answer.out
    assert "2 of 3 conflicts" in answer.out


@pytest.mark.parametrize(
    ("options", "epochs"),
    [
        (["--key", '{"id":"1"}'], [1, 2]),
        (["--kind", "insert_exists"], [1]),
        (["--table", "other"], []),
        (["--loser", "b"], [1, 2, 3]),
        (["--loser", "1"], []),
    ],
)
def test_a_list_can_be_narrowed(
    slackwater: Slackwater, options: list[str], epochs: list[int]
) -> None:
    """One row, one kind, one replica."""
    facts = slackwater("conflicts", "list", "--json", *options).facts

    assert [row["hub_epoch"] for row in facts] == epochs


@pytest.mark.parametrize("rid", [1, 2])
def test_a_conflict_is_found_by_loser_and_by_winner(slackwater: Slackwater, rid: int) -> None:
    """An operator has one CSN and wants the other."""
    answer = slackwater("conflicts", "show", csn(2, rid))

    assert answer.code == 0
    assert '{"id":"1","loses":2}' in answer.out
    assert '{"id":"1","wins":2}' in answer.out
    assert len(slackwater("conflicts", "show", csn(2, rid), "--json").facts) == 1


def test_a_conflict_is_found_as_it_is_listed(slackwater: Slackwater) -> None:
    """Its id is what `accept` and `override` take."""
    for listed in slackwater("conflicts", "list", "--json").facts:
        assert slackwater("conflicts", "show", listed["id"], "--json").facts == [listed]


@pytest.mark.parametrize(
    ("options", "says"),
    [(["--kind", "nope"], "nope"), (["--loser", "nope"], "there is no replica 'nope'")],
)
def test_a_filter_that_names_nothing_is_wrong_usage(
    slackwater: Slackwater, options: list[str], says: str
) -> None:
    """An empty list would be taken for good news."""
    answer = slackwater("conflicts", "list", *options)

    assert answer.code == 2
    assert says in answer.err


def test_a_deleted_winner_is_shown_as_such(slackwater: Slackwater) -> None:
    """A missing image means that the row is gone."""
    assert "deleted" in slackwater("conflicts", "show", csn(3, 2)).out


def test_a_change_without_conflict_is_exit_code_2(slackwater: Slackwater) -> None:
    """There is nothing to be shown, as with any other id that does not exist."""
    answer = slackwater("conflicts", "show", csn(1, 3))

    assert answer.code == 2
    assert csn(1, 3) in answer.err


def test_a_row_that_nobody_wrote_can_win(slackwater: Slackwater, state: WrittenState) -> None:
    """A row that was there before the hub, or was realigned, has no CSN."""
    row = {"batch": 3, "hub_epoch": 3, "place": 1, "loser_csn": csn(4, 2), "loser_rid": 2}
    row |= {"loser_epoch": 4}
    row |= {"kind": "update_recently_deleted", "winner_rid": 0, "id": "3-1", "cause": "realign"}
    state.append(TableName.CONFLICTS, row | {"lost": "change", "resolution": "open"})

    for arguments in (("show", csn(4, 2)), ("list",)):
        shown = " ".join(slackwater("conflicts", *arguments).out.split())
        assert "no replica's row" in shown
        assert "nobody" not in shown
    assert "None" not in slackwater("conflicts", "list").out


@pytest.mark.parametrize("command", ["accept", "override"])
def test_a_resolution_waits_for_the_hub(
    slackwater: Slackwater, state: WrittenState, command: str
) -> None:
    """One writer decides; what the operator had looked at goes with the command."""
    answer = slackwater("conflicts", command, "1-0", "2-0")

    assert answer.code == 0
    assert commands(state) == [(1, command, "1-0", 3), (2, command, "2-0", 3)]


def test_an_operator_may_have_looked_earlier(slackwater: Slackwater, state: WrittenState) -> None:
    """What came since he looked wins against his change."""
    slackwater("conflicts", "override", "1-0", "--seen", "2")

    assert commands(state) == [(1, "override", "1-0", 2)]


def test_a_closed_conflict_is_closed(slackwater: Slackwater, state: WrittenState) -> None:
    """The newest word on it counts, and it is listed once."""
    closed = {"batch": 3, "hub_epoch": 1, "place": 0, "id": "1-0", "resolution": "accepted"}
    state.append(TableName.CONFLICTS, closed | {"kind": "insert_exists", "cause": "author"})

    listed = slackwater("conflicts", "list", "--json").facts
    answer = slackwater("conflicts", "override", "1-0")

    assert [(row["id"], row["resolution"]) for row in listed] == [
        ("1-0", "accepted"),
        ("2-0", "open"),
        ("3-0", "open"),
    ]
    assert len(slackwater("conflicts", "list", "--open", "--json").facts) == 2
    assert (answer.code, "is accepted already" in answer.err) == (1, True)
    assert slackwater("conflicts", "accept", "9-9").code == 2
    assert commands(state) == []


def commands(state: WrittenState) -> list[tuple[int, str, str, int]]:
    """What the hub is asked."""
    return [
        (r["number"], r["command"], r["argument"], r["seen"])
        for r in open_state(state.root).commands()
    ]


def refuse(state: WrittenState, *others: Mapping[str, object]) -> None:
    """Commit a batch with refused rows of b."""
    state.commit(4, 4, ruv(r1=3, r2=3), totals={"refused": len(others)})
    row = {
        "batch": 4,
        "hub_epoch": 3,
        "kind": "refused",
        "table": "t",
        "loser_rid": 2,
        "winner_csn": csn(3, 1),
        "winner_rid": 1,
        "code": "unique",
        "text": "UNIQUE constraint failed: t.email",
        "attempts": 2,
        "sent_epoch": 0,
        "resolution": "open",
    }
    state.append(TableName.CONFLICTS, *({**row, **other} for other in others))


ONE_REFUSED = {"id": "r2-5", "key": '{"id":"8"}'}
TWO_REFUSED = {"id": "r2-6", "key": '{"id":"9"}'}


def test_a_refused_row_is_listed_with_its_reason(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Who refused it, why, and how often."""
    refuse(state, ONE_REFUSED)

    listed = slackwater("conflicts", "list", "--kind", "refused", "--open").out
    shown = slackwater("conflicts", "show", "r2-5").out

    assert "r2-5" in listed
    assert "UNIQUE constraint failed: t.email" in listed
    assert "1 of 4 conflicts" in listed
    assert "2" in shown.split("attempts")[1].splitlines()[0]
    assert csn(3, 1) in shown


@pytest.mark.parametrize(
    ("arguments", "commands"),
    [
        (("r2-6",), ["r2-6"]),
        (("--replica", "b"), ["r2"]),
        (("--all",), ["r2"]),
        (("--table", "t", "--key", '{"id":"8"}'), ["r2-5"]),
        (("--table", "t"), ["r2-5", "r2-6"]),
    ],
)
def test_a_retry_is_a_command_for_the_hub(
    slackwater: Slackwater, state: WrittenState, arguments: tuple[str, ...], commands: list[str]
) -> None:
    """One for all rows of a replica, else one for each row."""
    refuse(state, ONE_REFUSED, TWO_REFUSED)

    answer = slackwater("conflicts", "retry", *arguments)

    assert answer.code == 0
    named = "all rows that b refused" if commands == ["r2"] else commands[0]
    assert f"retry {named}: command 1; a running hub" in answer.out
    taken = [(row["command"], row["argument"]) for row in open_state(state.root).commands()]
    assert taken == [("retry", argument) for argument in commands]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [((), 2), (("r2-7",), 2), (("1-0",), 2), (("--replica", "a"), 1), (("--table", "u"), 1)],
)
def test_a_retry_of_nothing_is_no_command(
    slackwater: Slackwater, state: WrittenState, arguments: tuple[str, ...], code: int
) -> None:
    """The hub could only ignore it."""
    refuse(state, ONE_REFUSED)

    assert slackwater("conflicts", "retry", *arguments).code == code

    assert open_state(state.root).commands() == []


@pytest.mark.parametrize("command", ["accept", "override"])
def test_a_refused_row_is_neither_accepted_nor_overridden(
    slackwater: Slackwater, state: WrittenState, command: str
) -> None:
    """Nobody lost in it; it stays listed until the replica has the row."""
    refuse(state, ONE_REFUSED)

    answer = slackwater("conflicts", command, "r2-5")

    assert answer.code == 1
    assert "`slackwater conflicts retry r2-5`" in answer.err


def test_a_truncate_that_lost_is_shown_and_can_only_be_accepted(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """It has no key and no row that could win after all."""
    lost = {"batch": 1, "hub_epoch": 1, "place": 0, "id": "1-1", "lost": "change", "table": "t"}
    lost |= {"kind": "truncate", "key": "", "op": "truncate", "loser_csn": csn(1, 2)}
    state.append(TableName.CONFLICTS, lost | {"loser_rid": 2, "resolution": "open"})

    listed = slackwater("conflicts", "list")
    refused = slackwater("conflicts", "override", "1-1")

    assert "all rows" in listed.out
    assert refused.code == 1
    assert "conflict 1-1 is about all rows of t" in refused.err
    assert slackwater("conflicts", "accept", "1-1").code == 0


def test_what_may_hold_masks_can_only_be_accepted(
    slackwater: Slackwater, state: WrittenState, config_file: Path
) -> None:
    """An override would make the masks everybody's values."""
    known = json.loads(load(config_file).document())
    known["agreements"][1]["masks"] = {"t": {"v": "null"}}
    state.append(TableName.CONFIG, {"number": 1, "kind": "config", "document": json.dumps(known)})
    lost = {"batch": 1, "hub_epoch": 1, "place": 0, "id": "1-1", "lost": "change", "table": "t"}
    lost |= {"kind": "transaction", "key": '{"id":"1"}', "after": "{}", "loser_csn": csn(1, 2)}
    state.append(TableName.CONFLICTS, lost | {"loser_rid": 2, "resolution": "open"})

    refused = slackwater("conflicts", "override", "1-1")

    assert refused.code == 1
    assert "conflict 1-1: replica 2 was once sent table t masked" in refused.err
    assert slackwater("conflicts", "accept", "1-1").code == 0
