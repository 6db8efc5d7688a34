"""Tables of an earlier hub get the columns that have been added since."""

from pathlib import Path

from deltalake import DeltaTable

from checkpoints.store import StateStore
from checkpoints.tables import CHANGELOG, SCHEMAS, TableName
from tests.checkpoints.written_state import WrittenState, change_row


def test_an_old_table_gets_the_columns_that_it_lacks(tmp_path: Path) -> None:
    """An upgrade must not need a new state, nor lose what the old one holds."""
    store = StateStore(tmp_path)
    old = CHANGELOG.remove(CHANGELOG.get_field_index("app"))
    DeltaTable.create(store.uri(TableName.CHANGELOG), schema=old)

    store.create()

    names = [field.name for field in DeltaTable(store.uri(TableName.CHANGELOG)).schema().fields]
    assert names == CHANGELOG.names


def test_a_table_that_lacks_nothing_is_left_alone(tmp_path: Path) -> None:
    """Every start asks; a commit at each of them would be a version without a change."""
    store = WrittenState(tmp_path).create()
    store.append(TableName.CHANGELOG, change_row(1, 1, 0, "6553f100000100010000"))
    before = {name: DeltaTable(str(tmp_path / name.value)).version() for name in SCHEMAS}

    StateStore(tmp_path).create()

    assert {name: DeltaTable(str(tmp_path / name.value)).version() for name in SCHEMAS} == before
