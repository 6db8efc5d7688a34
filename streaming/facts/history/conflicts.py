"""Recorded conflicts: a dictionary each, with the columns of the table."""

from collections.abc import Collection
from typing import Any

from checkpoints.query import Value, records
from checkpoints.reading.reader import Reader
from streaming.core.conflict.judge import ConflictKind
from streaming.core.conflict.masked import MaskedTables, may_hold_masks
from streaming.core.model.change import Op
from streaming.core.model.csn import named_csn
from streaming.core.model.errors import HubError, QuestionError


def conflicts(
    reader: Reader, equal: dict[str, Value | None], newest: int | None = None
) -> list[dict[str, Any]]:
    """Conflicts with these column values in hub order, as they are resolved now."""
    return records(reader.conflicts(equal, newest=newest))


def conflicts_of(reader: Reader, which: str) -> list[dict[str, Any]]:
    """The conflict of this id, or those that a change lost or won; HubError if there is none."""
    csn = named_csn(which)
    equal = {"loser_csn": csn, "winner_csn": csn} if csn else {"id": which}
    found = [row for column, value in equal.items() for row in conflicts(reader, {column: value})]
    if not found:
        raise QuestionError(
            f"there is no conflict {which}, nor a change that lost or won one:"
            " see `slackwater conflicts list`"
        )
    return found


def open_conflict(reader: Reader, id_: str) -> dict[str, Any]:
    """The conflict of this id; HubError if there is none, or if it is resolved already."""
    found = conflicts(reader, {"id": id_})
    if not found:
        raise QuestionError(f"there is no conflict {id_}: see `slackwater conflicts list`")
    if found[0]["kind"] == ConflictKind.REFUSED:
        raise HubError(
            f"conflict {id_} is a refused row, in which nobody lost: `slackwater conflicts retry"
            f" {id_}` sends it again"
        )
    if found[0]["resolution"] != "open":
        raise HubError(f"conflict {id_} is {found[0]['resolution']} already")
    return found[0]


def check_can_win(conflict: dict[str, Any], masked: MaskedTables) -> None:
    """HubError if no change of the hub may write the loser: it is no row, or may hold masks."""
    kind, after = conflict["kind"], conflict["after"]
    if may_hold_masks(kind, conflict["loser_rid"], conflict["table"], after, masked):
        raise HubError(
            f"conflict {conflict['id']}: replica {conflict['loser_rid']} was once sent table"
            f" {conflict['table']} masked, and a transaction of it that was rejected may have the"
            " masks in place of values: accept it, and have the replica write the row again"
        )
    if conflict["op"] == Op.TRUNCATE:
        raise HubError(
            f"conflict {conflict['id']} is about all rows of {conflict['table']}: no change of a"
            " row brings its truncate back; accept it, and delete what is not to stand"
        )


def refused_rows(
    reader: Reader,
    *,
    ids: Collection[str] = (),
    rid: int | None = None,
    table: str | None = None,
    key: str | None = None,
) -> list[dict[str, Any]]:
    """The open refusals that have one of these ids, and these values; HubError if there is none."""
    wanted = {"loser_rid": rid, "table": table, "key": key}
    found = [
        row
        for row in reader.refused_rows()
        if (not ids or row["id"] in ids)
        and all(value is None or row[name] == value for name, value in wanted.items())
    ]
    unknown = [id_ for id_ in ids if id_ not in {row["id"] for row in found}]
    if unknown or not found:
        of = f" {', '.join(unknown)}" if unknown else ""
        kind = QuestionError if unknown else HubError
        raise kind(
            f"there is no such open refused row{of}: see"
            " `slackwater conflicts list --kind refused --open`"
        )
    return found
