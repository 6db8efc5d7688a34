"""Images and keys of PostgreSQL's rows as the wire has them.

A value that the wire's type has not is {"text": PostgreSQL's text}, which is a value of no type:
the hub quarantines the change with what was written.
"""

from collections.abc import Mapping

from connectors.agent.images import WireImage
from connectors.postgres.values.text import wire_text
from streaming.core.model.table import ColumnType
from streaming.core.model.values import EXPECTED, json_text

SHOWN_CHARS = 60
"""No more of a value is shown in a message."""


def image(columns: Mapping[str, ColumnType], row: Mapping[str, str | None]) -> WireImage:
    """The wire's image of a row's values, in the order of `columns`.

    `row`: column -> its text, None for null; a column that is absent is absent from the image.
    """
    members, known, faults = list[str](), list[str](), list[str]()
    for name, kind in columns.items():
        if name not in row:
            continue
        text = row[name]
        value = wire_text(text, kind)
        if value is None:
            members.append(f"{json_text(name)}:{json_text({'text': text})}")
            faults.append(_fault(name, str(text), kind))
        else:
            members.append(f"{json_text(name)}:{value}")
            known.append(members[-1])
    return WireImage(f"{{{','.join(members)}}}", f"{{{','.join(known)}}}", tuple(faults))


def _fault(name: str, text: str, kind: ColumnType) -> str:
    """Why a value cannot be carried, and what to do."""
    shown = text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}..."
    return (
        f"{name}: {shown!r} cannot be carried as {kind}, which is {EXPECTED[kind]}: write a value"
        " that can be, or configure the column as text"
    )
