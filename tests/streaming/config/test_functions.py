"""Users' functions are found, or it is said what is wrong."""

import re
from decimal import Decimal
from pathlib import Path

import pytest

from streaming.config.functions import loaded
from streaming.core.model.errors import FunctionError
from streaming.core.model.function import EPOCH, parse_function
from streaming.core.model.table import ColumnType, Table
from streaming.functions import ConflictFacts, Image, UserFunction, Winner

NOT_A_FUNCTION = 7


def resolve(_row: Image | None, _change: Image | None, _facts: ConflictFacts) -> Winner:
    """Let every change win."""
    return Winner.CHANGE


def table(function: str) -> Table:
    """A table with this function."""
    return Table("t", ("k",), {"k": ColumnType.TEXT}, parse_function(function))


def test_a_users_function_is_found_by_its_import_path() -> None:
    """The configuration names nothing else."""
    path = f"{__name__}:resolve"

    found = loaded([table(path), Table("u", ("k",), {"k": ColumnType.TEXT}, EPOCH)])

    assert found == {path: resolve}


@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        ("no_such_module:resolve", "cannot be loaded: ModuleNotFoundError"),
        (f"{__name__}:other", "cannot be loaded: AttributeError"),
        (f"{__name__}:NOT_A_FUNCTION", "cannot be called"),
    ],
)
def test_a_function_that_is_not_there_ends_the_start(path: str, complaint: str) -> None:
    """Found out at the first conflict it would be too late."""
    with pytest.raises(FunctionError, match=f"{path} of table t {complaint}"):
        loaded([table(path)])


@pytest.mark.parametrize("page", ["README.md", "docs/conflicts.md"])
def test_the_function_of_the_pages_adds_what_each_side_added(page: str) -> None:
    """Who copies it must get what it promises."""
    text = (Path(__file__).parents[3] / page).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (block,) = [one for one in blocks if "def both_amounts" in one]
    scope: dict[str, UserFunction] = {}
    exec(block, scope)
    facts = ConflictFacts("t", "{}", "update", "", 1, 0, None, 2, 3, {"amount": Decimal(10)})

    found = scope["both_amounts"]({"amount": Decimal(12)}, {"amount": Decimal(15)}, facts)

    assert found == {"amount": Decimal(17)}
    assert scope["both_amounts"](None, {"amount": Decimal(15)}, facts) is Winner.CHANGE
