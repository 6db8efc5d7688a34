"""Claims about `lsepoch`: the layout and the numbers of document 003."""

import re
from pathlib import Path

import pytest

from tests.checkpoints.written_state import WrittenState, replica, ruv
from tests.streaming.cli.conftest import Slackwater
from tests.streaming.cli.matrix_state import ROWS, at, of_document_003


@pytest.fixture
def sites(config_file: Path, state: WrittenState) -> None:
    """Boston, Bangalore and San Francisco."""
    of_document_003(config_file, state)


def cells(text: str) -> dict[str, str]:
    """Origin -> number, as a script reads them: `oid:<id>=<number> (<name>)`."""
    found = re.findall(r"^ *oid:\S+=(\d+) +\((\w+)\)", text, re.MULTILINE)
    return {name: number for number, name in found}


@pytest.mark.usefixtures("sites")
def test_a_row_has_the_layout_of_multisite(slackwater: Slackwater) -> None:
    """Scripts and eyes that know `multitool lsepoch` read it."""
    lines = slackwater("lsepoch", "sanfran_hub").out.splitlines()

    assert lines[:2] == [
        'For hub "centre":',
        'Oplog IDs for row "sanfran_hub" (@ goldengate):',
    ]
    oids = {one.split("=")[0].strip() for one in lines[2:]}
    assert oids == {
        "oid:87f6265f.72d911d4.a5cd.00:01:80:c0:4b:e7",
        "oid:2",
        "oid:0eaa6fc3.737d11d4.adbe.00:01:80:c0:4b:e7",
    }
    assert cells("\n".join(lines)) == {
        "boston_hub": "912",
        "bangalore": "653",
        "sanfran_hub": "504",
    }


@pytest.mark.usefixtures("sites")
def test_what_document_003_prints_comes_out(slackwater: Slackwater) -> None:
    """913 to 950 for San Francisco; 710 to 950 with 222 to 504 for Bangalore."""
    out = slackwater("lsepoch").out

    assert "(boston_hub)  lacks 913-950" in out.split('row "sanfran_hub"')[1]
    bangalore = out.split('row "bangalore"')[1].split("row")[0]
    assert "(boston_hub)  lacks 710-950" in bangalore
    assert "(sanfran_hub)  lacks 222-504" in bangalore
    own = out.split('row "centre":')[1].split("Oplog")[0]
    assert cells(own) == {"boston_hub": "950", "bangalore": "653", "sanfran_hub": "504"}
    assert "lacks" not in own


@pytest.mark.usefixtures("sites")
def test_the_own_word_of_a_replica_is_what_it_acknowledged(slackwater: Slackwater) -> None:
    """An estimate is a wish: what was sent may be lost."""
    estimate, actual = slackwater("lsepoch", "sanfran_hub"), slackwater("lsepoch", "--actual")

    assert cells(estimate.out)["boston_hub"] == "912"
    assert 'Actual oplog IDs for row "sanfran_hub" (@ goldengate):' in actual.out
    assert cells(slackwater("lsepoch", "--at", "sanfran_hub").out) == {
        "boston_hub": "709",
        "bangalore": "653",
        "sanfran_hub": "504",  # its own, which the hub has
    }


@pytest.mark.usefixtures("sites")
def test_whom_nothing_is_sent_to_has_a_row_of_zeros(slackwater: Slackwater) -> None:
    """That is normal in MultiSite, and says that nobody knows."""
    facts = slackwater("lsepoch", "boston_hub", "--json").facts

    assert set(facts["rows"][0]["numbers"].values()) == {0}
    assert facts["rows"][0]["agreement"] is None


def test_who_reads_the_updates_of_another_hub_is_named(
    config_file: Path, state: WrittenState, slackwater: Slackwater
) -> None:
    """What it has of there is in the matrix of that hub alone."""
    of_document_003(config_file, state)
    served = at("to-sanfran", 3, 3, 3).elsewhere(1)
    state.commit(6, 6, ruv(r1=6), [replica(3, covers=1)], [served], numbers=ROWS[-1])

    answer, own = slackwater("lsepoch", "sanfran_hub"), slackwater("lsepoch", "centre")

    said = 'row "sanfran_hub" (@ goldengate), which reads the updates of another hub:'
    assert said in answer.out
    assert "another hub" not in own.out
    assert slackwater("lsepoch", "--at", "to-sanfran", "--json").facts["rows"][0]["is_elsewhere"]


@pytest.mark.usefixtures("sites")
def test_the_matrix_of_the_past_stands_as_it_stood(slackwater: Slackwater) -> None:
    """What was assumed yesterday explains what was sent today."""
    facts = slackwater("lsepoch", "--as-of", "3", "--json").facts

    own, _, _, sanfran = facts["rows"]
    assert own["numbers"]["boston_hub"] == 912
    assert sanfran["lacks"] == {}
    assert slackwater("lsepoch", "--as-of", "2001-01-01T00:00:00Z").code == 2


@pytest.mark.usefixtures("sites")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["lsepoch", "tokyo"], "the matrix has no row 'tokyo': use one of centre, boston_hub"),
        (["lsepoch", "bangalore", "--at", "boston_hub"], "leave the other name out"),
    ],
)
def test_a_row_that_is_not_there_is_named(
    slackwater: Slackwater, arguments: list[str], said: str
) -> None:
    """A misspelt name is never an answer."""
    answer = slackwater(*arguments)

    assert answer.code == 2
    assert said in answer.err
