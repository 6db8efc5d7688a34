"""Tables of an earlier hub get the columns that have been added since."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from checkpoints.store import StateStore
from checkpoints.tables import CHANGELOG, EPOCHS, SCHEMAS, TableName
from tests.checkpoints.written_state import WrittenState, change_row


@pytest.mark.parametrize(
    ("table", "first_lacking"),
    [
        (TableName.CHANGELOG, CHANGELOG.get_field_index("app")),
        (TableName.CHANGELOG, CHANGELOG.get_field_index("key_after")),
        (TableName.EPOCHS, EPOCHS.get_field_index("pages")),
    ],
)
def test_an_old_table_gets_the_columns_that_it_lacks(
    tmp_path: Path, table: TableName, first_lacking: int
) -> None:
    """An upgrade must not need a new state, nor lose what the old one holds."""
    store, schema = StateStore(tmp_path), SCHEMAS[table]
    old = pa.schema(list(schema)[:first_lacking])
    DeltaTable.create(store.uri(table), schema=old)

    store.create()

    names = [field.name for field in DeltaTable(store.uri(table)).schema().fields]
    assert names == schema.names


def test_a_table_that_lacks_nothing_is_left_alone(tmp_path: Path) -> None:
    """Every start asks; a commit at each of them would be a version without a change."""
    store = WrittenState(tmp_path).create()
    store.append(TableName.CHANGELOG, change_row(1, 1, 0, "6553f100000100010000"))
    before = {name: DeltaTable(str(tmp_path / name.value)).version() for name in SCHEMAS}

    StateStore(tmp_path).create()

    assert {name: DeltaTable(str(tmp_path / name.value)).version() for name in SCHEMAS} == before
