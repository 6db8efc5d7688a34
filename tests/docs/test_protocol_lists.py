"""The protocol names every kind of conflict, cause and reason that there is."""

import re
from enum import StrEnum
from pathlib import Path

import pytest

from streaming.core.conflict.judge import Cause, ConflictKind
from streaming.core.records.record import Reason

PAGE = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text(encoding="utf-8")
CAUSES = re.findall(r"the cause \(([^)]*)\) and the kind", PAGE)[0]
STAYING = re.findall(r"\*\*Uncarried: it stays\.\*\*.*?The reasons are ([^.]*)\.", PAGE, re.DOTALL)[
    0
]


def first_cells(head: str) -> set[str]:
    """What stands in backticks in the first column of the tables with this head."""
    tables = re.findall(rf"^{re.escape(head)}.*\n\|[-| ]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    return {name for one in tables for name in re.findall(r"^\| `(\w+)` \|", one, re.MULTILINE)}


@pytest.mark.parametrize(
    ("enum", "listed"),
    [
        (ConflictKind, first_cells("| kind | the change | met |")),
        (Reason, first_cells("| reason | the ")),
        (Cause, set(re.findall(r"`(\w+)`", CAUSES))),
    ],
    ids=["kinds", "reasons", "causes"],
)
def test_a_list_of_the_protocol_is_whole(enum: type[StrEnum], listed: set[str]) -> None:
    """Who writes an agent, or reads `conflicts`, finds what is meant there, and nothing else."""
    assert listed == {one.value for one in enum}


def test_the_protocol_names_the_reasons_for_which_a_write_stays() -> None:
    """An operator decides by them whether a replica must write a row again."""
    assert {*re.findall(r"`(\w+)`", STAYING)} == {one.value for one in Reason if one.is_uncarried}
