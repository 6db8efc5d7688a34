"""The header of a packet: what is written is read back, and nothing else is taken for one."""

import json
from dataclasses import replace

import pytest
from hypothesis import given

from connectors.packets.header import (
    ChangesHeader,
    Content,
    NewerVersionError,
    UpdatesHeader,
    header_text,
    parse_header,
)
from streaming.core.model.errors import WireError
from tests.harness.examples import examples
from tests.harness.packet_headers import CHANGES, HASH, UPDATES, changes, updates

NONE = Content(0, 0, 13, HASH)


@examples(100)
@given(updates | changes)
def test_what_is_written_is_read_back(header: UpdatesHeader | ChangesHeader) -> None:
    """A member that is lost on the way would be lost with every packet."""
    header = replace(header, content=NONE)

    assert parse_header(header_text(header).encode()) == header


@pytest.mark.parametrize("header", [UPDATES, CHANGES], ids=["updates", "changes"])
def test_every_member_is_needed_and_of_one_type(header: UpdatesHeader | ChangesHeader) -> None:
    """A packet that is understood in part loses the rest without a word."""
    members = json.loads(header_text(replace(header, content=NONE)))

    for name in members:
        less = {one: value for one, value in members.items() if one != name}
        with pytest.raises(WireError, match=f"member {name} is missing"):
            parse_header(json.dumps(less).encode())
        with pytest.raises(WireError, match=f"member {name}: "):
            parse_header(json.dumps({**members, name: 1.5}).encode())


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("more", 1, "member more is unknown: upgrade this side"),
        ("got", {"outbox": "o"}, r"member got\.place is missing"),
        ("got", {**dict.fromkeys(("place", "opno", "epoch"), 1), "outbox": "o", "csn": "x"}, "CSN"),
        ("row_after", {"berlin": -1}, r"member row_after\.berlin: -1 must be an integer"),
        ("part", 2, "2 is none of 1 parts"),
        ("session", "other", "header_sha256: the header is not as it was written"),
        ("kind", "other", "'other' is neither updates nor changes"),
    ],
)
def test_a_wrong_member_is_named(name: str, value: object, message: str) -> None:
    """Who has to find out why a packet is refused gets the member, not a traceback."""
    members = json.loads(header_text(replace(UPDATES, content=NONE)))

    with pytest.raises(WireError, match=message):
        parse_header(json.dumps({**members, name: value}).encode())


def test_a_newer_version_says_to_upgrade_before_a_member_is_looked_at() -> None:
    """Its members are those of a program that this one does not know."""
    with pytest.raises(NewerVersionError, match="2 is newer than 1: upgrade this side"):
        parse_header(b'{"v":2,"other":1}')


def test_places_and_records_of_changes_agree() -> None:
    """A hub that believed both would number the records in two ways."""
    text = header_text(replace(CHANGES, end=19, content=NONE))

    with pytest.raises(WireError, match="member records: 0, but its places are 18 to 19"):
        parse_header(text.encode())


@pytest.mark.parametrize(("base", "digest"), [(0, HASH), (17, None)])
def test_only_base_zero_has_no_record_before_it(base: int, digest: str | None) -> None:
    """By the record before it the hub knows that an outbox was not put back."""
    text = header_text(replace(CHANGES, base=base, end=base, hash=digest, content=NONE))

    with pytest.raises(WireError, match="member hash"):
        parse_header(text.encode())


def test_names_sort_as_packets_follow() -> None:
    """Whoever lists a folder, or copies a part of it, sees them in order."""
    packets = [
        replace(UPDATES, number=number, part=part, parts=12)
        for number in (9, 10, 100)
        for part in (1, 2, 12)
    ]
    places = [replace(CHANGES, base=base, end=base + 5) for base in (5, 50, 500)]

    assert [one.name for one in packets] == sorted(one.name for one in packets)
    assert [one.name for one in places] == sorted(one.name for one in places)
    assert UPDATES.name == "updates-to-lisbon-g000001-0000000012-0001of0001.packet"
    assert places[0].name == "changes-lisbon-7d3f1c52-000000000006-000000000010.packet"
