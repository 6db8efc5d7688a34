"""Rows of the past: as they stood at a moment, what changed between two, and who wrote what."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from checkpoints.commit.recorded import batch_marks
from checkpoints.query import open_table
from checkpoints.reading.as_of import rows_as_of, touched_keys, travel_to
from checkpoints.reading.past import PastStore
from checkpoints.reading.reader import Reader
from checkpoints.tables import TableName
from streaming.config.config import Config
from streaming.core.conflict.judge import Verdict
from streaming.core.model.errors import ConfigError, QuestionError, StateError, WireError
from streaming.core.model.foreign_json import loads
from streaming.core.model.table import Table
from streaming.core.model.truncation import ALL_KEYS
from streaming.core.model.values import from_json, json_text, to_json
from streaming.core.replay.span import Moment

Image = Mapping[str, Any]


class StandingRow(NamedTuple):
    """A row as it stood: its author's rid, the hub epoch and the change that wrote it."""

    table: str
    key: str
    author: int
    hub_epoch: int
    csn: str
    image: Image


class ChangedRow(NamedTuple):
    """A row at two moments; None: it did not stand."""

    table: str
    key: str
    before: StandingRow | None
    after: StandingRow | None


class ColumnAuthor(NamedTuple):
    """Who wrote the value of a column that stands."""

    column: str
    value: object
    rid: int
    csn: str
    hub_epoch: int
    app: str | None


@contextmanager
def past(config: Config) -> Iterator[PastStore]:
    """The tables of the configured state, to be read as they were; StateError without a state."""
    root = config.hub.state
    if open_table(root, TableName.EPOCHS) is None:
        raise StateError(
            f"no hub has run at {root} yet: there is no state in it; correct hub.state, or start a"
            " hub with `slackwater run`"
        )
    store = PastStore(root)
    try:
        yield store
    finally:
        store.close()


def table_named(config: Config, name: str) -> Table:
    """The configured table of this name; ConfigError if there is none."""
    known = config.table_map()
    if name not in known:
        raise ConfigError(f"there is no table {name!r}: use one of {', '.join(known)}")
    return known[name]


def key_named(table: Table, text: str) -> str:
    """A key in canonical text, given as JSON, or as its value where it has one column.

    QuestionError if it is no key of the table: a key that no row can have is no answer.
    """
    if not text.startswith("{"):
        if len(table.key) != 1:
            raise QuestionError(f"the key of {table.name} has several columns: write it as JSON")
        return _key_text(table, {table.key[0]: text})
    try:
        fields = loads(text)
    except ValueError:
        fields = None
    if not isinstance(fields, dict) or {*fields} != {*table.key}:
        raise QuestionError(f"{text} is no key of {table.name}: it has {', '.join(table.key)}")
    return _key_text(table, fields)


def _key_text(table: Table, fields: Mapping[str, object]) -> str:
    return json_text({name: _on_wire(table, name, fields[name]) for name in table.key})


def _on_wire(table: Table, column: str, value: object) -> object:
    """A value of a key as records have it; people write a number for its text, and the reverse."""
    type_ = table.columns[column]
    for one in (value, json_text(value) if _is_number(value) else _read(value)):
        try:
            found = from_json(one, type_)
        except WireError:
            continue
        if found is not None:
            return to_json(found, type_)
    raise QuestionError(f"{value!r} is no {type_} of column {column} of {table.name}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _read(value: object) -> object:
    """A text as JSON, such as a number; None: it is none."""
    try:
        return loads(value) if isinstance(value, str) else None
    except ValueError:
        return None


def standing_rows(
    store: PastStore, table: str, key: str | None, moment: Moment | None
) -> tuple[int, list[StandingRow]]:
    """The hub epoch of a moment, and the rows of a table as they stood then, by key."""
    epoch = travel_to(store, batch_marks(store), moment)
    return epoch, _rows(store, table, epoch, None if key is None else [key])


def changed_rows(
    store: PastStore, tables: Sequence[str], begin: Moment, end: Moment | None
) -> tuple[int, int, list[ChangedRow]]:
    """Two hub epochs, and the rows that stand otherwise at the second one, by table and key."""
    marks = batch_marks(store)
    first = travel_to(store, marks, begin)
    before = {name: _rows(store, name, first, None) for name in tables}
    last = travel_to(store, marks, end)
    if last < first:
        raise QuestionError(f"the range is empty: it would go from hub epoch {first} to {last}")
    found = list[ChangedRow]()
    for name in tables:
        keys = touched_keys(store, name, first, last)
        after = {row.key: row for row in _rows(store, name, last, keys)}
        older = {row.key: row for row in before[name]}
        for key in sorted({*older, *after} if keys is None else keys):
            pair = older.get(key), after.get(key)
            if _image(pair[0]) != _image(pair[1]):
                found.append(ChangedRow(name, key, *pair))
    return first, last, found


def _image(row: StandingRow | None) -> Image | None:
    return row.image if row else None


def _rows(
    store: PastStore, table: str, epoch: int, keys: Sequence[str] | None
) -> list[StandingRow]:
    return [
        StandingRow(table, **(row | {"image": loads(row["image"])}))
        for row in rows_as_of(store, table, epoch, keys).to_pylist()
    ]


def row_history(reader: Reader, table: str, key: str) -> list[dict[str, Any]]:
    """Every change and refresh of a row in hub order, truncates of its table among them."""
    entries = reader.changelog({"table": table}).to_pylist()
    return [row for row in entries if row["key"] in (key, ALL_KEYS) and row["kind"] != "range"]


def column_authors(reader: Reader, table: str, key: str) -> list[ColumnAuthor]:
    """Of every column of a row that stands, the change that gave it its value."""
    image, found = dict[str, Any](), dict[str, ColumnAuthor]()
    for row in row_history(reader, table, key):
        if row["verdict"] != Verdict.ACCEPTED:
            continue
        new = loads(row["image"]) if row["image"] else {}
        found = {column: one for column, one in found.items() if column in new}
        for column, value in new.items():
            if column not in image or image[column] != value:
                author = row["rid"], row["csn"], row["hub_epoch"], row["app"]
                found[column] = ColumnAuthor(column, value, *author)
        image = new
    return [found[column] for column in image]
