"""Claims about how people name a row: its key in the form of records, or as they would write it."""

import pytest

from streaming.core.model.errors import QuestionError
from streaming.core.model.table import ColumnType, Table
from streaming.facts.history.past_rows import key_named

KINDS = {"t": ColumnType.TEXT, "i": ColumnType.INT64, "n": ColumnType.INT32, "b": ColumnType.BOOL}
ONE = {name: Table(name, (name,), {name: kind}) for name, kind in KINDS.items()}
SEVERAL = Table("s", ("i", "t"), {"i": ColumnType.INT64, "t": ColumnType.TEXT})


@pytest.mark.parametrize(
    ("table", "text", "key"),
    [
        (ONE["t"], "a", '{"t":"a"}'),
        (ONE["t"], "7", '{"t":"7"}'),
        (ONE["t"], '{"t": "a"}', '{"t":"a"}'),
        (ONE["i"], "7", '{"i":"7"}'),
        (ONE["i"], '{"i":"7"}', '{"i":"7"}'),
        (ONE["i"], '{"i": 7}', '{"i":"7"}'),
        (ONE["n"], "7", '{"n":7}'),
        (ONE["n"], '{"n":"7"}', '{"n":7}'),
        (ONE["b"], "true", '{"b":true}'),
        (SEVERAL, '{"t":"ü","i":-1}', '{"i":"-1","t":"ü"}'),
    ],
)
def test_a_key_is_found_in_either_spelling(table: Table, text: str, key: str) -> None:
    """Nobody has to know that the wire has 64 bits as text."""
    assert key_named(table, text) == key


@pytest.mark.parametrize(
    ("table", "text"),
    [
        (ONE["i"], "seven"),
        (ONE["i"], "1.5"),
        (ONE["i"], '{"i":[7]}'),
        (ONE["i"], '{"i":null}'),
        (ONE["n"], "99999999999"),
        (ONE["b"], "1"),
        (ONE["t"], '{"t":"a","u":"b"}'),
        (ONE["t"], '{"u":"b"}'),
        (ONE["t"], "{"),
        (SEVERAL, "7"),
    ],
)
def test_what_no_row_can_have_is_no_answer(table: Table, text: str) -> None:
    """It would be read as a row that does not exist."""
    with pytest.raises(QuestionError, match=r"."):
        key_named(table, text)
