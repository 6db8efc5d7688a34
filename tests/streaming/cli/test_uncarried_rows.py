"""Claims about uncarried rows: what `conflicts list --kind uncarried`, `level` and `status` say."""

from datetime import UTC, datetime

import pytest

from checkpoints.tables import TableName
from streaming.facts.consumers.divergent import MOST
from tests.checkpoints.written_state import WrittenState, agreement, change_row, replica, ruv
from tests.harness.builders import csn
from tests.streaming.cli.conftest import Slackwater
from tests.streaming.cli.test_level import commit_level
from tests.streaming.cli.test_level import quarantined as kept

WHOLE = b'{"after":{"id":"1","v":{"text":"noon"}}}'
LEFT_OUT = b'{"after":{"whole row":{"bytes":"3000019"}}}'
KEY = '{"id":"1"}'


def at(second: int) -> datetime:
    """A time within a minute."""
    return datetime(2026, 1, 2, 3, 4, second, tzinfo=UTC)


def test_an_uncarried_row_is_listed_with_what_to_do(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Replica, row, reason, since when, where its image is, and the commands that end it."""
    commit_level(state)
    record = kept(4, "table", detail="expected a time", value=WHOLE, time=at(5))
    state.append(TableName.QUARANTINE, record)

    shown = slackwater("conflicts", "list", "--kind", "uncarried")
    (row,) = slackwater("conflicts", "list", "--kind", "uncarried", "--json").facts

    assert (row["replica"], row["table"], row["key"], row["id"]) == ("a", "t", KEY, "1-4")
    assert (row["reason"], row["detail"], row["image"]) == (
        *("table", "expected a time", "quarantine"),
    )
    assert row["since"].startswith("2026-01-02T03:04:05")
    assert "1 of 1 row\ntable: write the row again so that the others can take it" in shown.out
    assert "`slackwater quarantine drop ID` sends the row back" in shown.out
    assert shown.code == 0


def test_an_image_beyond_the_budget_is_in_its_topic(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Only a head of it is kept, and a release reads the whole again."""
    commit_level(state)
    state.append(TableName.QUARANTINE, kept(4, "table", value=WHOLE[:9], sha256="hash"))

    (row,) = slackwater("conflicts", "list", "--kind", "uncarried", "--json").facts

    assert row["image"] == "topic"


def test_an_image_that_no_record_holds_is_in_its_database_only(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Who drops it must know that quarantine has none of its bytes."""
    commit_level(state)
    state.append(TableName.QUARANTINE, kept(4, "table", value=LEFT_OUT))

    shown = slackwater("conflicts", "list", "--kind", "uncarried")
    (row,) = slackwater("conflicts", "list", "--kind", "uncarried", "--json").facts

    assert row["image"] == "database"
    assert "1 image of these in the database only" in shown.out


def test_a_row_that_was_written_often_is_listed_once(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """By its newest record, which release and drop name, since the oldest of them."""
    commit_level(state)
    several = [kept(n, "table", csn=csn(n, 1), time=at(n)) for n in (4, 6, 8)]
    state.append(TableName.QUARANTINE, *several)

    (row,) = slackwater("conflicts", "list", "--kind", "uncarried", "--json").facts
    (named,) = slackwater("level", "--json").facts["differing"]

    assert (row["id"], named["id"]) == ("1-8", "1-8")
    assert row["since"].startswith("2026-01-02T03:04:04")


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ((), ["1-4", "1-5"]),
        (("--loser", "b"), []),
        (("--table", "t", "--key", KEY), ["1-4"]),
        (("--table", "u"), []),
        (("--limit", "1"), ["1-5"]),
    ],
)
def test_uncarried_rows_can_be_chosen(
    slackwater: Slackwater, state: WrittenState, options: tuple[str, ...], ids: list[str]
) -> None:
    """By replica, table and key, as conflicts are."""
    commit_level(state)
    other = kept(5, "size", csn=csn(5, 1), key='{"id":"2"}')
    state.append(TableName.QUARANTINE, kept(4, "table"), other)

    facts = slackwater("conflicts", "list", "--kind", "uncarried", "--json", *options).facts

    assert [row["id"] for row in facts] == ids


def test_level_and_status_name_what_is_uncarried(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Neither says yes while a file has a row that no other has."""
    commit_level(state)
    state.append(TableName.QUARANTINE, kept(4, "skew"))

    level, status = slackwater("level"), slackwater("status")

    assert (level.code, status.code) == (1, 1)
    assert "see `slackwater conflicts list --kind uncarried`" in level.out
    assert "a alone has 1 row that nobody else can take" in status.out


@pytest.mark.parametrize(
    ("entry", "rows"),
    [
        ({"rid": 2, "offset": 1}, 0),
        ({"rid": 1, "offset": 9}, 0),
        ({"rid": 1, "offset": 3}, 1),
        ({"rid": 2, "offset": 1, "verdict": "rejected"}, 1),
    ],
    ids=["another replica's", "its own later", "its own earlier", "one that lost"],
)
def test_a_truncate_takes_uncarried_rows_too(
    slackwater: Slackwater, state: WrittenState, entry: dict[str, object], rows: int
) -> None:
    """It is sent to the writer as one item, which names no key."""
    commit_level(state)
    truncate = {"batch": 1, "hub_epoch": 1, "place": 0, "kind": "change", "op": "truncate"}
    where = {"table": "t", "key": "", "csn": csn(9, 2), "verdict": "accepted"}
    state.append(TableName.CHANGELOG, {**truncate, **where, **entry})
    state.append(TableName.QUARANTINE, kept(4, "table"))

    assert len(slackwater("conflicts", "list", "--kind", "uncarried", "--json").facts) == rows


@pytest.mark.parametrize(("batch", "offset", "rows"), [(1, 9, 0), (1, 3, 1), (0, 9, 1)])
def test_an_emptied_database_holds_no_uncarried_row(
    slackwater: Slackwater, state: WrittenState, batch: int, offset: int, rows: int
) -> None:
    """Its hello says so; what stands behind that in its topic was written since."""
    commit_level(state)
    hello = {"batch": batch, "rid": 1, "offset": offset, "kind": "hello", "outcome": "taken"}
    state.append(TableName.EVENTS, hello | {"value": '{"kind":"hello","epoch":4,"reinit":true}'})
    state.append(TableName.QUARANTINE, kept(4, "table"))

    assert len(slackwater("conflicts", "list", "--kind", "uncarried", "--json").facts) == rows


def test_without_an_agreement_nothing_overwrites_a_row(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """What another replica writes is not sent there, so the row stays listed."""
    known = ruv(r1=2, r2=2)
    agreements = [agreement("to-a", 1, 3, known), agreement("to-b", 2, 3, known)]
    state.commit(1, 3, known, [replica(1), replica(2)], agreements)
    state.append(TableName.QUARANTINE, kept(4, "table", rid=7))

    (row,) = slackwater("conflicts", "list", "--kind", "uncarried", "--json").facts

    assert row["replica"] == "7"


def test_a_key_that_names_no_row_is_listed_until_it_is_deleted(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Its writer corrects it by another key, which deletes the row of this one."""
    commit_level(state)
    odd = {"key": '{"id":null}', "op": "insert"}
    state.append(TableName.QUARANTINE, kept(4, "key", **odd))
    listed = ("conflicts", "list", "--kind", "uncarried", "--json")
    (row,) = slackwater(*listed).facts

    delete = odd | {"csn": csn(10, 1), "op": "delete"}
    state.append(TableName.QUARANTINE, kept(5, "key", **delete))

    assert row["key"] == '{"id":null}'
    assert slackwater(*listed).facts == []


def test_a_row_that_its_writer_told_again_as_the_hub_has_it_is_no_more_listed(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """`slackwater agent --snapshot` finds both equal: the row was adopted."""
    commit_level(state)
    told = change_row(1, 1, 0, csn(12, 1)) | {"offset": 9, "verdict": "adopted"}
    state.append(TableName.CHANGELOG, told)
    state.append(TableName.QUARANTINE, kept(4, "table"))

    assert slackwater("conflicts", "list", "--kind", "uncarried", "--json").facts == []


def test_what_was_written_again_needs_nobody(slackwater: Slackwater, state: WrittenState) -> None:
    """Its record stays in quarantine; nothing differs, and there is nothing to decide."""
    commit_level(state)
    state.append(TableName.QUARANTINE, kept(4, "table"))
    before = slackwater("status", "--json").facts

    again = change_row(1, 1, 0, csn(12, 1)) | {"offset": 9}
    state.append(TableName.CHANGELOG, again)
    after = slackwater("status", "--json").facts

    quarantine = {"kept": 1, "by_reason": {"table": 1}, "undecided": 0}
    assert before["quarantine"] == after["quarantine"] == quarantine
    said = [[one["what"] for one in facts["problems"]] for facts in (before, after)]
    alone = "a alone has 1 row that nobody else can take"
    assert (alone in said[0], [one for one in said[0] if one != alone]) == (True, said[1])


def test_many_refused_rows_hide_no_uncarried_one(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """A table that is missing at one replica is no reason to forget what another one wrote."""
    commit_level(state, refused=MOST)
    row = {"batch": 1, "kind": "refused", "hub_epoch": 2, "loser_rid": 1, "table": "t"}
    of_it = {"resolution": "open", "code": "other"}
    refused = ({"id": f"r1-{n}", "key": f'{{"id":"{n}"}}', **row, **of_it} for n in range(MOST))
    state.append(TableName.CONFLICTS, *refused)
    state.append(TableName.QUARANTINE, kept(4, "table"))

    (listed,) = slackwater("conflicts", "list", "--kind", "uncarried", "--json").facts

    assert listed["id"] == "1-4"


def test_many_records_of_no_row_hide_no_row(slackwater: Slackwater, state: WrittenState) -> None:
    """What an old agent said in vain is kept as long as nobody drops it, and tells of no row."""
    commit_level(state)
    said = {
        "batch": 1,
        "action": "kept",
        "rid": 1,
        "reason": "session",
        "value": b'{"kind":"abort"}',
    }
    state.append(
        TableName.QUARANTINE, *({"id": f"1-{n}", "offset": n, **said} for n in range(MOST))
    )

    state.append(TableName.QUARANTINE, kept(MOST, "late"))

    (listed,) = slackwater("level", "--json").facts["differing"]

    assert listed["id"] == f"1-{MOST}"


def test_rows_that_are_not_asked_for_hide_none(slackwater: Slackwater, state: WrittenState) -> None:
    """At most a thousand are listed, of those of the kind, replica, table and key."""
    commit_level(state)
    keys = [{"key": f'{{"id":"{n}"}}', "csn": csn(n, 1)} for n in range(MOST + 1)]
    late = (kept(n, "late", **keys[n]) for n in range(MOST))
    state.append(TableName.QUARANTINE, *late, kept(MOST, "table", **keys[MOST]))

    (listed,) = slackwater("conflicts", "list", "--kind", "uncarried", "--json").facts

    assert listed["id"] == f"1-{MOST}"


@pytest.mark.parametrize(
    ("reason", "entry", "rows"),
    [
        ("column", {"csn": csn(12, 2), "rid": 2}, 1),
        ("column", {"csn": csn(12, 2), "rid": 2, "op": "delete"}, 0),
        ("column", {"csn": csn(12, 1), "offset": 9}, 0),
        ("table", {"csn": csn(12, 2), "rid": 2}, 0),
    ],
    ids=["another replica's", "its delete", "its own later", "of another reason"],
)
def test_others_do_not_set_right_what_has_a_column_that_they_lack(
    slackwater: Slackwater,
    state: WrittenState,
    reason: str,
    entry: dict[str, object],
    rows: int,
) -> None:
    """What they write leaves the column as it is at its writer, where alone it has this value."""
    commit_level(state)
    state.append(TableName.QUARANTINE, kept(4, reason))
    state.append(TableName.CHANGELOG, change_row(1, 1, 0, csn(12, 1)) | {"key": KEY} | entry)

    assert len(slackwater("conflicts", "list", "--kind", "uncarried", "--json").facts) == rows
