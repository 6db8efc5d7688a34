"""The measure of core's column filter: a row with some columns, by JSON and a loop."""

import json

from streaming.core.model.change import Change
from streaming.core.model.column_filter import ColumnFilter
from streaming.core.model.values import json_text


def image_with(image: str | None, known: ColumnFilter) -> str | None:
    """Return an image with the columns of a filter alone, and its masks."""
    if image is None:
        return None
    values = {n: json_text(v) for n, v in json.loads(image).items() if n in known.columns}
    masked = {n: known.masks[n].of(v) if n in known.masks else v for n, v in values.items()}
    return json_text({name: json.loads(value) for name, value in masked.items()})


def with_columns(change: Change, known: ColumnFilter) -> Change:
    """Return a change with the columns that its replica has."""
    before, after = image_with(change.before, known), image_with(change.after, known)
    return change._replace(before=before, after=after)
