"""The measure of what columns and SQLite write as text: images, keys and updates."""

from collections.abc import Mapping

from connectors.wire import decode_answer, item_text, update_of
from streaming.core.model.errors import WireError
from streaming.core.model.table import Table
from streaming.core.model.values import Value, json_text, to_json
from streaming.core.records.record import Update


def image_text(values: Mapping[str, Value], table: Table) -> str:
    """The canonical text of a row; columns that `values` lacks are left out."""
    return json_text(
        {
            name: to_json(values[name], kind)
            for name, kind in table.columns.items()
            if name in values
        }
    )


def key_text(values: Mapping[str, Value], table: Table) -> str:
    """The canonical text of a row's key, in key order; WireError if a part is missing or null."""
    for name in table.key:
        if values.get(name) is None:
            raise WireError(f"column {name} of the key of table {table.name} is missing or null")
    return json_text({name: to_json(values[name], table.columns[name]) for name in table.key})


def encode_update(update: Update) -> bytes:
    """A chunk of a batch as it stands in an updates topic."""
    return update_of(update, ",".join(item_text(item) for item in update.items).encode())


def decode_update(value: bytes) -> Update:
    """A record of an updates topic that is a chunk of a batch."""
    found = decode_answer(value)
    assert isinstance(found, Update)
    return found
