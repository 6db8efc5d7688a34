"""Claims about `ruv` and `lacks`."""

from pathlib import Path

import pytest

from checkpoints.tables import TableName
from streaming.core.model.row import Floor
from streaming.core.model.ruv import Element, Ruv, parse_ruv
from tests.checkpoints.written_state import WrittenState, agreement, change_row, replica, ruv
from tests.harness.builders import csn
from tests.streaming.cli.conftest import Slackwater


def behind(state: WrittenState, acked: Ruv) -> None:
    """Commit three changes of a and one of b, of which b acknowledged `acked`."""
    known = ruv(r1=3, r2=1)
    state.append(TableName.CHANGELOG, *(change_row(n, n, 0, csn(n, 1)) for n in (1, 2, 3)))
    state.append(TableName.CHANGELOG, change_row(3, 3, 1, csn(1, 2)))
    refresh = {"batch": 3, "hub_epoch": 3, "place": 2, "kind": "refresh", "rid": 1, "to": 2} | {
        "table": "t"
    }
    state.append(TableName.CHANGELOG, refresh)
    agreements = [agreement("to-a", 1, 3, known), agreement("to-b", 2, 1, acked)]
    state.commit(3, 3, known, [replica(1), replica(2)], agreements)


def test_ruv_is_the_text_form_of_389(slackwater: Slackwater, state: WrittenState) -> None:
    """Tools for that server read it; so does the hub itself."""
    behind(state, ruv(r1=1))

    answer = slackwater("ruv")

    assert answer.out.splitlines()[0] == "{replicageneration} 655d1c80000000010000"
    assert parse_ruv(answer.out.splitlines()) == ruv(r1=3, r2=1)
    assert slackwater("ruv", "--json").facts["ruv"] == answer.out.splitlines()


def test_ruv_of_an_agreement_is_the_consumers_word(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """For comparison with what the consumer itself says."""
    behind(state, ruv(r1=1))

    facts = slackwater("ruv", "--agreement", "to-b", "--json").facts

    assert facts == {"covers": 1, "generation": 1, "ruv": ruv(r1=1).text()}


TABLE_OF_ANOTHER = """
[[tables]]
name = "u"
dataset = "other"
key = ["id"]
columns = { id = "int64" }
"""


def of_two_data_sets(state: WrittenState, config_file: Path) -> None:
    """Commit a RUV for each of two data sets; to-b serves the other one."""
    text = config_file.read_text(encoding="utf-8")
    text = text.replace('consumer = "a"', 'consumer = "a"\ntables = ["t"]')
    text = text.replace('consumer = "b"', 'consumer = "b"\ntables = ["u"]')
    config_file.write_text(text + TABLE_OF_ANOTHER, encoding="utf-8")
    state.append(TableName.CHANGELOG, change_row(2, 2, 0, csn(3, 1), table="u"))
    agreements = [agreement("to-a", 1, 2, ruv(r2=1)), agreement("to-b", 2, 1, ruv(r1=2))]
    state.commit(2, 2, ruv(r2=1), [replica(1), replica(2)], agreements, others={"other": ruv(r1=3)})


def test_each_data_set_has_its_ruv(
    slackwater: Slackwater, state: WrittenState, config_file: Path
) -> None:
    """They move on their own, so one line cannot tell of both."""
    of_two_data_sets(state, config_file)

    assert slackwater("ruv").out.splitlines() == [
        "data set default",
        *ruv(r2=1).text(),
        "data set other",
        *ruv(r1=3).text(),
    ]
    assert slackwater("ruv", "--dataset", "other").out.splitlines() == ruv(r1=3).text()
    assert slackwater("ruv", "--json").facts["ruvs"]["other"] == ruv(r1=3).text()
    assert slackwater("ruv", "--dataset", "none").code == 2
    assert slackwater("ruv", "--agreement", "to-b").out.splitlines() == ruv(r1=2).text()
    assert slackwater("ruv", "--agreement", "to-b", "--dataset", "default").code == 2


def test_an_agreement_is_held_against_the_ruv_of_its_data_set(
    slackwater: Slackwater, state: WrittenState, config_file: Path
) -> None:
    """What it was never to be sent it does not lack."""
    of_two_data_sets(state, config_file)

    assert slackwater("lacks", "to-a", "--json").facts["anchor"] is None
    anchor = slackwater("lacks", "to-b", "--json").facts["anchor"]
    assert (anchor["csn"], anchor["start"]) == (csn(2, 1), "after")
    lacking = {a["name"]: a["lacking"] for a in slackwater("level", "--json").facts["agreements"]}
    assert lacking == {"to-a": [], "to-b": ["a"]}
    assert slackwater("status", "--json").facts["replicas"][0]["max_csn"] == csn(3, 1)


def test_lacks_tells_anchor_stop_and_how_many(slackwater: Slackwater, state: WrittenState) -> None:
    """Why does b lag, and what would mend it?"""
    behind(state, ruv(r1=1))

    facts = slackwater("lacks", "to-b", "--json").facts

    assert facts["supplier"] == {"covers": 3, "ruv": ruv(r1=3, r2=1).text()}
    assert facts["acked"] == {"covers": 1, "ruv": ruv(r1=1).text()}
    assert facts["anchor"] == {
        "csn": csn(1, 1),
        "start": "after",
        "replica": "a",
        "need": "behind",
    }
    assert facts["stop"] == ruv(r1=3, r2=1).text()
    assert (facts["changes"], facts["refreshes"], facts["refused"]) == (2, 1, None)


def test_lacks_tells_each_replicas_reason_start_stop_and_count(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """A consumer lags behind one replica rather than behind the hub."""
    known = ruv(r1=3, r2=1, r3=2, r9=1)
    state.append(TableName.CHANGELOG, *(change_row(1, 1, n, csn(n, 1)) for n in (1, 2, 3)))
    state.append(TableName.CHANGELOG, *(change_row(2, 2, n, csn(n, 3)) for n in (1, 2)))
    state.append(TableName.CHANGELOG, change_row(2, 2, 3, csn(1, 2)))
    state.append(TableName.CHANGELOG, change_row(2, 2, 4, csn(1, 9), table="of no agreement"))
    has = ruv(r1=1, r7=4, r9=1)
    state.commit(2, 2, known, [replica(1), replica(2)], [agreement("to-b", 2, 0, has)])

    facts = slackwater("lacks", "to-b", "--json").facts

    rows = {r.pop("rid"): r for r in facts["replicas"]}
    assert rows == {
        1: {
            "replica": "a",
            "need": "behind",
            "is_own": False,
            "start": {"csn": csn(1, 1), "start": "after"},
            "stop": csn(3, 1),
            "changes": 2,
        },
        2: quiet("b", "level", csn(1, 2)) | {"is_own": True},
        3: {
            "replica": "3",
            "need": "never_seen",
            "is_own": False,
            "start": {"csn": csn(1, 3), "start": "at"},
            "stop": csn(2, 3),
            "changes": 2,
        },
        7: quiet("7", "stranger", None),
        9: quiet("9", "level", csn(1, 9)),
    }
    assert facts["anchor"]["csn"] == csn(1, 1)


def test_lacks_counts_what_sending_would_send(slackwater: Slackwater, state: WrittenState) -> None:
    """Fresh changes are skipped by RUV, refreshes only by covers, rejected and own ones always."""
    refresh = change_row(2, 2, 5, csn(1, 1)) | {"kind": "refresh", "verdict": None}
    state.append(
        TableName.CHANGELOG,
        change_row(1, 1, 0, csn(1, 1)),
        change_row(2, 2, 0, csn(1, 2)),
        change_row(2, 2, 1, csn(1, 3)),
        change_row(2, 2, 2, csn(2, 3)) | {"verdict": "rejected"},
        change_row(2, 2, 3, csn(2, 1), table="of no agreement"),
        change_row(9, 4, 0, csn(2, 3)),  # its batch is not committed
        refresh | {"to": 2},
        refresh | {"to": 3},
    )
    replicas, known = [replica(1), replica(2)], ruv(r1=2, r2=1, r3=2)

    cases = [(ruv(), 0, 2, 1), (ruv(r1=1), 1, 1, 1), (ruv(), 2, 0, 0)]
    for batch, (acked, covers, changes, refreshes) in enumerate(cases, 3):
        state.commit(batch, 2, known, replicas, [agreement("to-b", 2, covers, acked)])
        facts = slackwater("lacks", "to-b", "--json").facts
        assert (facts["changes"], facts["refreshes"]) == (changes, refreshes)


def test_lacks_counts_nothing_of_a_table_that_was_removed(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Nobody is sent such rows, so nobody lacks them: neither changes nor refreshes."""
    behind(state, ruv(r1=1))
    before = slackwater("lacks", "to-b", "--json").facts
    refresh = {"batch": 3, "hub_epoch": 3, "place": 3, "kind": "refresh", "rid": 1, "to": 2}
    state.append(TableName.CHANGELOG, refresh | {"table": "gone"})

    facts = slackwater("lacks", "to-b", "--json").facts

    assert (facts["changes"], facts["refreshes"]) == (2, 1)
    assert facts == before


def test_lacks_tells_the_own_changes_that_a_replica_lost(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """They are sent back to it, so it is not level until it has acknowledged them."""
    state.append(TableName.CHANGELOG, *(change_row(1, 1, n, csn(n, 2)) for n in (1, 2, 3, 4)))
    known, lost = ruv(r2=4), (Floor(2, 9, csn(1, 2), csn(3, 2)),)

    for covers, need, changes in [(0, "behind", 2), (2, "level", 0)]:
        agreements = [agreement("to-b", 2, covers, ruv())]
        state.commit(2 + covers, 2, known, [replica(1), replica(2, floors=lost)], agreements)
        (row,) = slackwater("lacks", "to-b", "--json").facts["replicas"]
        assert (row["is_own"], row["need"], row["changes"]) == (True, need, changes)


def quiet(name: str, need: str, stop: str | None) -> dict[str, object]:
    """What is told of a replica of which nothing is lacking."""
    none = {"is_own": False, "start": None, "changes": 0}
    return {"replica": name, "need": need, "stop": stop, **none}


def test_lacks_shows_the_same_to_people(slackwater: Slackwater, state: WrittenState) -> None:
    """Both RUVs, the anchor and why, the stop, and a line for each replica."""
    behind(state, ruv(r1=1))

    lines = slackwater("lacks", "to-b").out.splitlines()

    of_hub, of_consumer = ruv(r1=3, r2=1).text(), ruv(r1=1).text()
    head = ["agreement   to-b to b, in_sync", "hub         hub epoch 3"]
    assert lines[:2] == head
    assert [line.strip() for line in lines[2:9]] == [
        *of_hub,
        "consumer    covers 1",
        *of_consumer,
        f"anchor      after {csn(1, 1)}, because a is behind",
    ]
    assert lines[9] == f"stop        {of_hub[0]}"
    assert lines[12] == "to be sent  2 changes, 1 refresh"
    assert [line.split() for line in lines[-2:]] == [
        ["1", "a", "behind", "after", csn(1, 1), csn(3, 1), "2"],
        ["2", "b", "level,", "its", "own", "-", csn(1, 2), "0"],
    ]


def test_lacks_of_a_new_consumer_starts_at_the_first_change(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """It has nothing to start after."""
    behind(state, Ruv())

    answer = slackwater("lacks", "to-b")

    assert f"at {csn(1, 1)}, because a is never_seen" in answer.out
    assert "2 changes, 1 refresh" in answer.out  # covers 1: the first one was applied


def test_a_level_consumer_lacks_nothing(slackwater: Slackwater, state: WrittenState) -> None:
    """And is told so."""
    behind(state, ruv(r1=1))

    facts = slackwater("lacks", "to-a", "--json").facts

    assert (facts["anchor"], facts["changes"], facts["refreshes"]) == (None, 0, 0)
    assert [r["start"] for r in facts["replicas"]] == [None, None]
    assert "no fresh change is lacking" in slackwater("lacks", "to-a").out


@pytest.mark.parametrize(
    ("purged", "gap", "text"),
    [
        pytest.param(
            Ruv(), "purged", "came with the initial load, so it needs a resync", id="never logged"
        ),
        pytest.param(
            ruv(r1=2), "purged", "came with the initial load, so it needs a resync", id="purged"
        ),
        pytest.param(
            Ruv(elements={1: Element(csn(0, 1), csn(0, 1))}),
            "missing",
            "though it was not purged",
            id="missing",
        ),
    ],
)
def test_a_start_that_is_not_in_the_changelog_is_told(
    slackwater: Slackwater, state: WrittenState, purged: Ruv, gap: str, text: str
) -> None:
    """Nothing may be sent over a gap, and purged is mended otherwise than missing."""
    state.append(TableName.CHANGELOG, change_row(3, 3, 0, csn(3, 1)))
    state.commit(
        3, 3, ruv(r1=3), [replica(1)], [agreement("to-b", 2, 1, ruv(r1=1))], purge_ruv=purged
    )

    refused = slackwater("lacks", "to-b", "--json").facts["refused"]

    assert (refused["gap"], refused["csn"]) == (gap, csn(1, 1))
    assert text in refused["why"]
    assert refused["why"] in slackwater("lacks", "to-b").out


def test_a_consumer_that_covers_less_than_the_purge_epoch_is_told(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Its RUV is level, and yet refreshes may be gone that it never got."""
    known = ruv(r1=3)
    state.commit(3, 3, known, [replica(1)], [agreement("to-b", 2, 1, known)], purge_epoch=2)

    refused = slackwater("lacks", "to-b", "--json").facts["refused"]

    assert refused["gap"] == "purged"
    assert "covers hub epoch 1, and the changelog is purged up to hub epoch 2" in refused["why"]


def test_an_unknown_agreement_is_wrong_usage(slackwater: Slackwater, state: WrittenState) -> None:
    """The answer names those that there are."""
    behind(state, ruv())

    answer = slackwater("lacks", "to-c")

    assert answer.code == 2
    assert "use one of to-a, to-b" in answer.err


def test_before_the_first_commit_there_is_no_ruv(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """An empty RUV would be a statement."""
    state.plan(1)

    answer = slackwater("ruv")

    assert answer.code == 2
    assert "no batch is committed" in answer.err
