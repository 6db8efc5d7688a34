"""Other files of the same formats: what real servers write, and what is not understood."""

import pytest

from tests.vectors.cases import CONFLICTS, DEVIATIONS, SESSIONS, broken, by_id, csn, session
from tests.vectors.outcome import Case
from tests.vectors.runner import run_case


@by_id(SESSIONS)
def test_a_session_means_the_same_however_it_is_written(case: Case) -> None:
    """RUVs as text of real servers, helper records, and records of replicas that left."""
    strangers = ["0000006f000000000000", "000000de000000000000", "6b006300000000630000"]
    case = {
        **case,
        "supplier_ruv": as_text(case["supplier_ruv"], " ldap://localhost:31389"),
        "consumer_ruv": [*as_text(case["consumer_ruv"], ""), "{replica 98}"],
        "changelog": [*strangers, *reversed(case["changelog"])],
    }

    assert run_case(case, DEVIATIONS).text == "ok"


def as_text(ruv: Case, url: str) -> list[str]:
    """A RUV's lines, with the time that exports have behind an element."""
    return [
        "{replicageneration} 6b00623c000000010000",
        *(f"{{replica {rid}{url}}} {e['min']} {e['max']} 6b006560" for rid, e in ruv.items()),
        f"{{replica 99{url or ' ldap://none'}}}",
    ]


@by_id([case for case in SESSIONS if not case["expect"]["sent"]])
def test_an_expected_anchor_that_the_log_lacks_is_a_refusal(case: Case) -> None:
    """The other way in which a refused session may be written."""
    other = broken(case, "expect", "anchor", value="6b006200000000010000")

    assert run_case(other, DEVIATIONS).text == "ok"


def test_elements_without_csns_are_read() -> None:
    """A replica that is known and has not written yet, on either side."""
    case = session(
        {"1": (1, 3), "2": None},
        {"1": None, "2": (1, 1)},
        [(1, 1), (3, 1)],
        expect={"anchor": csn(1, 1), "sent": [csn(1, 1), csn(3, 1)]},
    )

    assert run_case(case, DEVIATIONS).text == "ok"


def test_a_mark_where_a_log_begins_is_an_anchor_and_never_sent() -> None:
    """A directory server writes one per replica when it is initialized."""
    mark = {"csn": csn(3, 1), "nsuniqueid": "00000000-00000000-00000000-00000000"}
    second = {"csn": csn(5, 2), "nsuniqueid": "00000000-00000000-00000000-00000000"}
    case = session(
        {"1": (1, 4), "2": (2, 5)},
        {"1": (1, 3), "2": (2, 4)},
        [mark, (4, 1), (4, 2), second],
        expect={"anchor": csn(3, 1), "sent": [csn(4, 1)]},
    )

    assert run_case(case, DEVIATIONS).text == "ok"


@pytest.mark.parametrize(
    "step",
    [
        {"cluster": "A", "op": "replace", "table": "t1", "key": 1, "values": {"b": 1}},
        {"cluster": "C", "op": "insert", "table": "t1", "key": 1, "values": {"b": 1}},
        {"cluster": "A", "op": "insert", "table": "t1", "key": 1, "values": {}, "when": "later"},
        {"sync": "A->C"},
        {"sync": "A->B", "expect_epoch": 7},
        {"sync": "A->B", "pause": 1},
    ],
)
def test_a_step_that_is_not_understood_whole_fails(step: Case) -> None:
    """A step that was run by half would prove nothing."""
    case = broken(CONFLICTS[0], "steps", value=[*CONFLICTS[0]["steps"], step])

    assert run_case(case, DEVIATIONS).failed


def test_what_is_expected_at_a_sync_is_compared_there() -> None:
    """Rows on the way differ from rows at the end."""
    insert = {"cluster": "A", "op": "insert", "table": "t1", "key": 1, "values": {"b": "x"}}
    row = {"table": "t1", "key": 1, "values": {"b": "x"}}
    case = {
        "id": "on the way",
        "function": "NDB$EPOCH",
        "detecting_cluster": "A",
        "setup_rows": [],
        "steps": [insert, {"sync": "A->B", "expect_rows_B": [row]}],
        "expect": {"final_rows_B": [row]},
    }

    assert run_case(case, DEVIATIONS).text == "ok"
    assert run_case(broken(case, "steps", 1, "expect_rows_B", value=[]), DEVIATIONS).failed
