"""Recorded conflicts: a dictionary each, with the columns of the table."""

from typing import Any

from checkpoints.query import Value, records
from checkpoints.reader import Reader
from streaming.core.model.errors import HubError


def conflicts(
    reader: Reader, equal: dict[str, Value | None], newest: int | None = None
) -> list[dict[str, Any]]:
    """Conflicts with these column values in hub order, as they are resolved now."""
    return records(reader.conflicts(equal, newest=newest))


def conflicts_of(reader: Reader, which: str) -> list[dict[str, Any]]:
    """The conflict of this id, or those that a change lost or won; HubError if there is none."""
    columns = ("id", "loser_csn", "winner_csn")
    found = [row for column in columns for row in conflicts(reader, {column: which})]
    if not found:
        raise HubError(
            f"there is no conflict {which}, nor a change that lost or won one:"
            " see `slackwater conflicts list`"
        )
    return found


def open_conflict(reader: Reader, id_: str) -> dict[str, Any]:
    """The conflict of this id; HubError if there is none, or if it is resolved already."""
    found = conflicts(reader, {"id": id_})
    if not found:
        raise HubError(f"there is no conflict {id_}: see `slackwater conflicts list`")
    if found[0]["resolution"] != "open":
        raise HubError(f"conflict {id_} is {found[0]['resolution']} already")
    return found[0]
