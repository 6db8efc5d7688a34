"""docs/wire.md shows records as the code reads and writes them: every kind, field and value."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from connectors import wire
from streaming.config.sources.load import load
from streaming.core.model.errors import WireError
from streaming.core.model.table import ColumnType
from streaming.core.model.values import from_json, json_text, to_json
from streaming.core.records.check import VERSION, check
from streaming.core.records.kinds import KIND_OF
from streaming.core.records.record import (
    Item,
    ItemType,
    PacketMarker,
    RecordKind,
    Stopped,
    UpdateKind,
)
from tests.reference.wire import decode_update, encode_update, image_text, key_text

CHECKOUT = Path(__file__).parents[2]
TEXT = (CHECKOUT / "docs" / "wire.md").read_text(encoding="utf-8")
TABLES = load(CHECKOUT / "deploy" / "hub.toml").table_map()

EXAMPLES = [
    (info, json_text(json.loads(body)))
    for info, body in re.findall(r"^```json (.+?)\n(.+?)^```$", TEXT, re.DOTALL | re.MULTILINE)
]
"""(info string, the example in canonical text), in the order of the page."""
RECORDS = [(info, text) for info, text in EXAMPLES if info in list(RecordKind)]
UPDATES = [text for info, text in EXAMPLES if info == UpdateKind.UPDATE]
STOPPED = [text for info, text in EXAMPLES if info == UpdateKind.STOPPED]
PACKETS = [text for info, text in EXAMPLES if info == UpdateKind.PACKET]
BAD = [(info.removeprefix("bad "), text) for info, text in EXAMPLES if info.startswith("bad ")]

WRITTEN = datetime(2024, 2, 29, 22, 0, tzinfo=UTC)
"""When the examples are written: their CSNs are of the days around it."""


def rows_under(heading: str, first: str) -> list[list[str]]:
    """The cells of the table under a heading whose first column has this name."""
    section = TEXT.partition(f"\n{heading}\n")[2]
    table = re.split(r"\n#{2,3} ", section)[0].partition(f"| {first} |")[2]
    lines = table.split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.split(" | ")] for line in (x.strip("| ") for x in lines)]


def quoted(cell: str) -> list[str]:
    """What stands in backticks."""
    return re.findall(r"`([^`]+)`", cell)


FIELDS = [
    (kind, quoted(name)[0], required)
    for kind in RecordKind
    for heading in ("## Records", f"### `{kind}`")
    for name, _, required, _ in rows_under(heading, "field")
]
"""(kind, field, whether the page says that it is required)."""


def test_every_kind_has_an_example() -> None:
    """Who writes an agent copies them."""
    assert {info for info, _ in RECORDS} == set(RecordKind)
    assert UPDATES
    assert STOPPED
    assert PACKETS
    updates = len(UPDATES) + len(STOPPED) + len(PACKETS)
    assert len(RECORDS) + updates + len(BAD) == len(EXAMPLES)


@pytest.mark.parametrize(("kind", "text"), RECORDS)
def test_an_example_is_what_the_wire_writes(kind: str, text: str) -> None:
    """Names, order and form of all members are those of the code."""
    session, record = wire.decode(text.encode())

    assert KIND_OF[type(record)] == kind
    assert wire.encode(session, record).decode() == text


@pytest.mark.parametrize("text", UPDATES)
def test_an_update_is_what_the_wire_writes(text: str) -> None:
    """Names, order and form of all members are those of the code."""
    update = decode_update(text.encode())

    assert encode_update(update).decode() == text


@pytest.mark.parametrize("text", STOPPED)
def test_an_answer_to_a_stopped_replica_is_what_the_wire_writes(text: str) -> None:
    """An agent that cannot read it runs on in silence."""
    fields = json.loads(text)
    found = wire.decode_answer(text.encode())

    assert isinstance(found, Stopped)
    assert wire.encode_stopped(found).decode() == text
    listed = {quoted(name)[0] for name, *_ in rows_under("### `stopped`", "field")}
    assert listed == set(fields) - {"v", "kind", "session"}
    for name in listed:
        with pytest.raises(WireError):
            wire.decode_answer(json_text({k: v for k, v in fields.items() if k != name}).encode())


@pytest.mark.parametrize("text", PACKETS)
def test_a_note_of_a_packet_is_what_the_wire_writes(text: str) -> None:
    """A hub that cannot read it takes an older state for the newest."""
    fields = json.loads(text)
    found = wire.decode_answer(text.encode())

    assert isinstance(found, PacketMarker)
    assert wire.encode_packet_marker(found).decode() == text
    listed = {name for row in rows_under("### `packet`", "field") for name in quoted(row[0])}
    assert listed == set(fields) - {"v", "kind", "session"}
    for name in listed:
        with pytest.raises(WireError):
            wire.decode_answer(json_text({k: v for k, v in fields.items() if k != name}).encode())


def test_updates_show_every_field_of_an_item() -> None:
    """A field that no example shows is one that nobody checks; of ranges there is no example."""
    items = [item for text in UPDATES for item in json.loads(text)["items"]]
    shown = {name for item in items for name in item}

    assert shown == set(Item.__slots__)
    assert {quoted(row[0])[0] for row in rows_under("### `update`", "item field")} == shown
    assert {item["type"] for item in items} == set(ItemType) - {
        ItemType.RANGE,
        ItemType.UPSERTS,
        ItemType.KEPT,
    }


@pytest.mark.parametrize(("kind", "name", "required"), FIELDS)
def test_a_field_is_required_or_not(kind: RecordKind, name: str, required: str) -> None:
    """An agent that leaves out a required field fills the quarantine."""
    found = [
        json.loads(text) for info, text in RECORDS if info == kind and name in json.loads(text)
    ]
    given = [fields for fields in found if fields[name] is not None]

    assert found
    for fields in given:
        text = json_text({key: value for key, value in fields.items() if key != name})
        if required == "no":
            wire.decode(text.encode())
        else:  # "yes", "one of them", or the ops that need it, of which all examples are
            with pytest.raises(WireError):
                wire.decode(text.encode())


def test_every_field_of_an_update_but_the_epochs_of_a_page_is_required() -> None:
    """A chunk that lacks one cannot be applied."""
    fields = max((json.loads(text) for text in UPDATES), key=len)
    listed = rows_under("### `update`", "field")

    assert {quoted(name)[0] for name, *_ in listed} == set(fields) - {"v", "kind", "session"}
    for name, _, required, _ in listed:
        rest = {key: value for key, value in fields.items() if key != quoted(name)[0]}
        assert (required == "no") == (quoted(name)[0] == "epochs")
        if required == "no":
            assert decode_update(json_text(rest).encode()).epochs == ()
            continue
        with pytest.raises(WireError):
            decode_update(json_text(rest).encode())


def test_every_member_of_an_example_is_described() -> None:
    """What stands in an example and in no table is a riddle."""
    for info, text in RECORDS:
        listed = {name for kind, name, _ in FIELDS if kind == info}
        assert set(json.loads(text)) <= listed


@pytest.mark.parametrize("text", [*(text for _, text in RECORDS), *UPDATES])
def test_images_are_canonical(text: str) -> None:
    """The values of the examples are of the column types in deploy/hub.toml."""
    fields = json.loads(text)
    for item in [fields, *fields.get("items", ())]:
        for name in {"key", "before", "after"} & item.keys():
            if item[name] is not None:
                table, image = TABLES[item["table"]], json_text(item[name])
                write = key_text if name == "key" else image_text
                assert write(wire.image_values(image, table), table) == image


@pytest.mark.parametrize("kind", ColumnType)
def test_a_column_type_shows_its_values(kind: ColumnType) -> None:
    """A value has one form; what the page calls wrong is refused or is not that form."""
    rows = {quoted(row[0])[0]: row for row in rows_under("## Values", "column type")}
    _, _, good, bad = rows[kind]

    assert set(rows) == set(ColumnType)
    assert quoted(good)
    assert all(is_value(json.loads(text), kind) for text in quoted(good))
    assert quoted(bad)
    assert not any(is_value(json.loads(text), kind) for text in quoted(bad))


def is_value(given: object, kind: ColumnType) -> bool:
    """Return whether this is how the type writes a value."""
    try:
        return to_json(from_json(given, kind), kind) == given
    except WireError:
        return False


@pytest.mark.parametrize(("reason", "text"), [*((None, text) for _, text in RECORDS), *BAD])
def test_the_hub_agrees(reason: str | None, text: str) -> None:
    """Every good example passes the hub's check, every bad one has the reason that it shows."""
    found = check(text.encode(), 1, TABLES)

    assert found.reason == reason


def test_the_version_is_in_the_table() -> None:
    """Who raises the version says what changed."""
    versions = [row[0] for row in rows_under("## Records", "wire version")]

    assert versions == [str(number) for number in range(1, VERSION + 1)]
