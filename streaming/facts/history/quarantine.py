"""Records in quarantine: a dictionary each, with the columns of the table and `action_batch`."""

import base64
from collections.abc import Collection
from typing import Any

from checkpoints.reading.reader import Reader
from streaming.core.model.errors import HubError, QuestionError
from streaming.core.records.record import Reason


def quarantined_record(reader: Reader, id_: str) -> dict[str, Any]:
    """One record, as `Reader.quarantine` has it; HubError if there is none of this id."""
    found = reader.quarantine({"id": id_})
    if not found:
        raise _not_there(id_)
    return found[0]


def kept_ids(
    reader: Reader,
    *,
    ids: Collection[str] = (),
    reason: Reason | None = None,
    rid: int | None = None,
) -> list[str]:
    """Ids of the records that are kept, in the order of their topics; of these `ids`, or of all.

    HubError if one of `ids` is not in quarantine, or not any more.
    """
    if not ids:
        return reader.quarantine_ids({"reason": reason, "rid": rid})
    found = {row["id"]: row for row in reader.quarantine_actions(ids)}
    for id_ in ids:
        if id_ not in found:
            raise _not_there(id_)
        if (action := found[id_]["action"]) != "kept":
            raise HubError(f"{id_} was already {action} in batch {found[id_]['batch']}")
    kept = [
        id_
        for id_ in ids
        if reason in (None, found[id_]["reason"]) and rid in (None, found[id_]["rid"])
    ]
    return list(dict.fromkeys(kept))


def _not_there(id_: str) -> QuestionError:
    return QuestionError(f"{id_} is not in quarantine: see `slackwater quarantine list --all`")


def quarantine_document(row: dict[str, Any]) -> dict[str, Any]:
    """The record for JSON: `value` as text or None if it is not UTF-8, and `value_base64`."""
    value = row["value"] or b""
    return row | {"value": utf8(value), "value_base64": base64.b64encode(value).decode()}


def utf8(value: bytes) -> str | None:
    """The text of some bytes; None: they are not UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None
