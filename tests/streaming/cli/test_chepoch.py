"""Claims about `chepoch` and `recoverpacket`: what they order, show, ask and refuse."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
import typer

from checkpoints.reading.reader import open_state
from streaming.core.model.command import RowOrder, parse_row_order
from streaming.core.model.statuses import AwayReason
from tests.checkpoints.written_state import START_S, WrittenState, replica, ruv
from tests.streaming.cli.conftest import Slackwater
from tests.streaming.cli.matrix_state import ROWS, at, of_document_003


@pytest.fixture
def sites(config_file: Path, state: WrittenState) -> WrittenState:
    """Boston, Bangalore and San Francisco; what the latter was sent behind hub epoch 1 is lost."""
    of_document_003(config_file, state)
    return state


def orders(state: WrittenState) -> list[RowOrder]:
    """The rows that the hub is to set."""
    return [parse_row_order(c["argument"]) for c in open_state(state.root).commands()]


def test_the_own_word_brings_the_row_back(slackwater: Slackwater, sites: WrittenState) -> None:
    """Then the next packet starts behind what really arrived; the columns are told as there."""
    answer = slackwater("chepoch", "sanfran_hub", "--actual", "--force")

    assert answer.code == 0
    assert answer.out.splitlines()[0] == "Entry for boston_hub changed from: 912 to 709"
    assert "Epoch row successfully set" in answer.out
    assert [(one.agreement, one.hub_epoch) for one in orders(sites)] == [("to-sanfran", 1)]
    assert orders(sites)[0].ruv == tuple(ruv(r1=1).text())


@pytest.mark.parametrize(
    ("numbers", "epoch"),
    [
        (["boston_hub=800"], 2),
        (["boston_hub=899"], 2),
        (["boston_hub=912"], 3),  # the fourth has the same numbers: the first is meant
        (["boston_hub=912", "bangalore=653"], 3),
        (["boston_hub=950", "bangalore=653"], 5),
        (["boston_hub=3"], 1),  # not below its own word
    ],
)
def test_numbers_mean_the_first_hub_epoch_of_the_largest_row_within_them(
    slackwater: Slackwater, sites: WrittenState, numbers: list[str], epoch: int
) -> None:
    """Later ones with the same numbers hold refreshes that may be lost as well."""
    answer = slackwater("chepoch", "sanfran_hub", *numbers, "--force")

    assert answer.code == 0
    assert [one.hub_epoch for one in orders(sites)] == [epoch]


def test_it_asks_first(
    slackwater: Slackwater, sites: WrittenState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The default is no; a program that cannot be asked must say --force."""
    monkeypatch.setattr("typer.confirm", _says_no)
    answer = slackwater("chepoch", "sanfran_hub", "--actual")
    silent = slackwater("chepoch", "sanfran_hub", "--actual", "--json")

    assert (answer.code, orders(sites)) == (1, [])
    assert "nothing is done: it was not confirmed" in answer.err
    assert "Entry for boston_hub changed from: 912 to 709" in answer.out
    assert silent.code == 2
    assert "give --force as well" in silent.err


def _says_no(_: str, *, default: bool) -> bool:
    assert not default
    raise typer.Abort


def test_raise_only_lowers_nothing(slackwater: Slackwater, sites: WrittenState) -> None:
    """What is still under way makes the own word look too low."""
    lowered = slackwater("chepoch", "sanfran_hub", "--actual", "--raise-only")
    raised = slackwater("chepoch", "sanfran_hub", "boston_hub=950", "--raise-only", "--force")

    assert "the row of sanfran_hub stays as it is, at hub epoch 4" in lowered.out
    assert "Entry for boston_hub changed from: 912 to 950" in raised.out
    assert [one.hub_epoch for one in orders(sites)] == [5]


def test_recoverpacket_takes_the_row_as_it_was_before_a_time(
    slackwater: Slackwater, sites: WrittenState
) -> None:
    """The time of the last good import: what was sent since is sent again."""
    since = datetime.fromtimestamp(START_S + 2.5 * 3_600, UTC).isoformat()
    answer = slackwater("recoverpacket", "sanfran_hub", "--since", since, "--force", "--json")

    assert answer.facts["entries"] == [{"origin": "boston_hub", "before": 912, "after": 800}]
    assert [one.hub_epoch for one in orders(sites)] == [2]


@pytest.mark.usefixtures("sites")
def test_no_row_that_old(slackwater: Slackwater) -> None:
    """The document's answer: use chepoch."""
    old = slackwater("recoverpacket", "sanfran_hub", "--since", "2001-01-01T00:00:00Z")

    assert old.code == 2
    assert "no row of sanfran_hub is kept that is so old: use `slackwater chepoch" in old.err


def test_a_time_in_the_future_is_refused(slackwater: Slackwater, sites: WrittenState) -> None:
    """A year mistyped is no row that stays as it is: the packet is still lost."""
    later = slackwater("recoverpacket", "sanfran_hub", "--since", "2106-01-01T00:00Z", "--force")

    assert later.code == 2
    assert "2106-01-01T00:00Z is in the future, and nothing was sent since" in later.err
    assert orders(sites) == []


@pytest.mark.usefixtures("sites")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["centre", "--actual"], "the row of centre is the hub's own, which is fact"),
        (["tokyo", "--actual"], "nothing is sent to 'tokyo': use one of bangalore, sanfran_hub"),
        (["boston_hub", "--actual"], "nothing is sent to 'boston_hub'"),
        (["bangalore", "tokyo=3"], "there is no origin 'tokyo'"),
        (["bangalore", "bangalore=3"], "leave bangalore=3 out"),
        (["bangalore", "boston_hub"], "'boston_hub' is no column"),
        (["bangalore", "boston_hub=-3"], "'boston_hub=-3' is no column"),
        (["bangalore", "boston_hub=951"], "the hub has the changes of boston_hub up to 950"),
        (["bangalore", "boston_hub=3", "boston_hub=4"], "a column is given twice"),
        (["bangalore"], "give either --actual or the columns"),
        (["bangalore", "--actual", "boston_hub=3"], "give either --actual or the columns"),
    ],
)
def test_what_cannot_be_set_is_refused(
    slackwater: Slackwater, arguments: list[str], said: str
) -> None:
    """With what to do instead."""
    answer = slackwater("chepoch", *arguments)

    assert answer.code == 2
    assert said in answer.err


def test_who_is_away_gets_a_resync_anyway(slackwater: Slackwater, sites: WrittenState) -> None:
    """Its row is found anew from its own word."""
    away = at("to-sanfran", 3, 4, 1).away(AwayReason.PAUSED, 1)
    state = [at("to-bangalore", 2, 1, 1), away]
    replicas = [replica(rid, covers=1) for rid in (1, 2, 3)]
    sites.commit(6, 6, ruv(r1=6), replicas, state, numbers=ROWS[-1])

    answer = slackwater("chepoch", "sanfran_hub", "--actual")

    assert answer.code == 2
    assert "nothing is sent to it now" in answer.err
