"""Packets, and the places of records that they bring, as `epochs` holds them."""

from collections.abc import Iterable, Mapping
from typing import Any

from checkpoints.times import ms_of, time_of
from streaming.core.matrix.packets import PacketFeed, Place

Row = Mapping[str, Any]


def place_row(agreement: str, place: Place) -> dict[str, object]:
    """Up to where a plan reads the records of an agreement's consumer."""
    return {"agreement": agreement, **place._asdict()}


def places_of(rows: Iterable[Row]) -> dict[str, Place]:
    """Agreement -> up to where the plan reads its consumer's records."""
    return {row["agreement"]: Place(row["outbox"], row["place"]) for row in rows}


def feed_row(agreement: str, feed: PacketFeed) -> dict[str, object]:
    """What a batch leaves of the packets of an agreement."""
    outbox, place = feed.got or (None, None)
    return {
        "agreement": agreement,
        "number": feed.number,
        "batch": feed.batch,
        "exported_at": time_of(feed.exported_ms) if feed.exported_ms else None,
        "ordered": feed.is_ordered,
        "open": feed.is_open,
        "unwritten": feed.is_unwritten,
        "outbox": outbox,
        "place": place,
        "csn": feed.csn,
    }


def feeds_of(rows: Iterable[Row]) -> dict[str, PacketFeed]:
    """Agreement -> its packets."""
    return {row["agreement"]: _feed(row) for row in rows}


def _feed(row: Row) -> PacketFeed:
    return PacketFeed(
        row["number"],
        row["batch"],
        ms_of(row["exported_at"]) if row["exported_at"] else 0,
        row["ordered"],
        row["open"],
        row["unwritten"],
        None if row["outbox"] is None else Place(row["outbox"], row["place"]),
        row["csn"],
    )
