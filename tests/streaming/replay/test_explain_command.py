"""Claims about `explain`: from the record to the reason, without knowing the tables."""

from checkpoints.tables import TableName
from tests.streaming.cli.conftest import Slackwater
from tests.streaming.replay.conftest import History


def test_a_loser_is_explained_by_what_it_had_not_seen(
    history: History, slackwater: Slackwater
) -> None:
    """The row, its epoch, the MRE, and the reflection that came too late."""
    loser, winner = history.csn_of("w2"), history.csn_of("w1")

    story = slackwater("explain", loser, "--json").facts

    judged = story["judged"]
    assert (judged["verdict"], judged["cause"], judged["row_csn"]) == ("rejected", "author", winner)
    assert story["set_by"]["covers"] == judged["mre"] < judged["row_epoch"]
    assert story["too_late"]["covers"] >= judged["row_epoch"]
    assert story["too_late"]["offset"] > judged["offset"]
    assert [row["cause"] for row in story["refreshes"]] == ["conflict"]
    assert [row["loser_csn"] for row in story["conflicts"]] == [loser]
    assert {one["agreement"] for one in story["covered"]} == {"r1", "r2", "r3"}


def test_a_change_of_a_transaction_tells_that_it_waited(
    history: History, slackwater: Slackwater
) -> None:
    """What is late at the other replicas was uncommitted so long, or behind one that was."""
    csn = history.csn_of("w5")

    answer = slackwater("explain", csn)

    assert answer.code == 0
    assert "transaction" in answer.out
    assert "accepted, not concurrent" in answer.out
    assert "no row of another replica" in answer.out


def test_a_change_that_nobody_knows_is_refused(slackwater: Slackwater) -> None:
    """Exit 2: it may still be on its way."""
    assert "has not reached the hub" in slackwater("explain", "0" * 16 + "0001").err
    assert slackwater("explain", "r1").code == 2


def test_the_history_of_a_row_is_in_hub_order(history: History, slackwater: Slackwater) -> None:
    """Who wrote, who lost, and who was sent what."""
    entries = slackwater("explain", "--row", "t", "k", "--json").facts

    told = [(one["kind"], one["csn"], one["verdict"]) for one in entries]
    winner, loser = history.csn_of("w1"), history.csn_of("w2")
    assert told == [
        ("change", winner, "accepted"),
        ("change", loser, "rejected"),
        ("refresh", winner, None),
    ]


def test_the_story_is_drawn_in_one_file(history: History, slackwater: Slackwater) -> None:
    """The way of the change, and beside it what its verdict was made of."""
    file = history.folder / "story.html"

    slackwater("explain", history.csn_of("w2"), "--html", str(file))

    text = file.read_text(encoding="utf-8")
    assert 'class="verdict"' in text
    assert "rejected, author" in text
    assert "came too late" in text
    assert "http" not in text


def test_what_the_quarantine_holds_is_explained_too(
    history: History, slackwater: Slackwater
) -> None:
    """A change that was never judged is where people look first."""
    log, csn = history.rows(TableName.CHANGELOG), "6553f200000000010000"
    row = {"batch": 1, "id": "1-9", "action": "kept", "reason": "late", "rid": 1, "offset": 9}
    assert csn not in log["csn"].to_pylist()
    history.append(TableName.QUARANTINE, row | {"csn": csn, "detail": "behind another"})

    answer = slackwater("explain", csn)

    assert "1-9: late, kept; behind another" in answer.out
