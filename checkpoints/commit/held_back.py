"""What agreements are not sent yet because of when they send, as `epochs` holds it."""

from collections.abc import Iterable, Mapping
from typing import Any

from checkpoints.times import ms_of, time_of
from streaming.core.state.held_back import HeldBack


def held_back_rows(held_back: Mapping[str, HeldBack]) -> list[dict[str, object]]:
    """What each agreement is not sent yet."""
    return [
        {
            "agreement": name,
            "after": one.after,
            "since": time_of(one.since_ms) if one.since_ms else None,
            "released": one.released,
            "copies": one.copies,
        }
        for name, one in sorted(held_back.items())
    ]


def held_back_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, HeldBack]:
    """Agreement -> what it is not sent yet."""
    return {
        row["agreement"]: HeldBack(
            row["after"],
            ms_of(row["since"]) if row["since"] else 0,
            row["released"],
            row["copies"],
        )
        for row in rows
    }
