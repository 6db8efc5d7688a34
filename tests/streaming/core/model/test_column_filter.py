"""A row without the columns that are not sent, whatever its values and names look like."""

import json

from hypothesis import given
from hypothesis import strategies as st

from streaming.core.model.column_filter import ColumnFilter
from streaming.core.model.values import json_text
from tests.harness.examples import examples

HOSTILE = st.text(alphabet='",:{}\\ax1\n\u2028', max_size=6)
NAMES = HOSTILE.filter(bool)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = HOSTILE | st.none() | st.booleans() | NUMBERS


@examples(300)
@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=6), st.data())
def test_a_row_keeps_what_is_sent_as_it_was_written(
    row: dict[str, object], data: st.DataObject
) -> None:
    """A value that looks like another member must neither hide nor show one."""
    sent = data.draw(st.sets(st.sampled_from([*row])))

    shown = ColumnFilter(frozenset(sent)).shown(json_text(row))

    assert shown == json_text({name: value for name, value in row.items() if name in sent})
    assert json.loads(shown).keys() == sent


def test_no_row_has_no_columns() -> None:
    """A delete stays a delete."""
    assert ColumnFilter(frozenset("k")).all_shown([None, '{"k":1,"s":2}']) == [None, '{"k":1}']
