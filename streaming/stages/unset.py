"""Which columns a row has no value of, because it was written before they came.

They have their default in every database. A consumer that wrote one has another value there, which
lost if the row as it stands has none; so it is told to take the default.
"""

import re
from collections.abc import Mapping, Sequence
from json.encoder import encode_basestring

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from streaming.core.model.values import json_text
from streaming.stages.checked import Bools, bools


def unset_columns(images: pa.Array, columns: Sequence[str]) -> pa.Array:
    """Return, by canonical image, those of these columns that it lacks: JSON text, or null.

    Also null where there is no image.
    """
    found: list[str | None] = [None] * len(images)
    for place in np.flatnonzero(_lacks_some(images, columns)) if columns else ():
        there = orjson.loads(images[int(place)].as_py())
        lacking = [name for name in columns if name not in there]
        found[place] = json_text(lacking) if lacking else None
    return pa.array(found, pa.large_string())


def unset_of_tables(
    tables: pa.Array, images: pa.Array, columns: Mapping[str, Sequence[str]], among: Bools
) -> pa.Array:
    """`unset_columns` of the rows of several tables, of these among them; null of the others.

    `columns`: table -> the columns that count; of a table that is absent none.
    """
    found: list[str | None] = [None] * len(images)
    rows = np.flatnonzero(among)
    if not len(rows):
        return pa.array(found, pa.large_string())
    of_rows, images_of_rows = tables.take(pa.array(rows)), images.take(pa.array(rows))
    for name, of_table in columns.items():
        places = np.flatnonzero(bools(pc.equal(of_rows, name)))
        lacking = unset_columns(images_of_rows.take(pa.array(places)), of_table).to_pylist()
        for place, unset in zip(rows[places], lacking, strict=True):
            found[place] = unset
    return pa.array(found, pa.large_string())


def _lacks_some(images: pa.Array, columns: Sequence[str]) -> Bools:
    """Mark the images that may lack a column, all that do among them.

    In a value a name has backslashes before its quotes; members stand in the order of the columns.
    """
    names = (f"[{{,]{re.escape(encode_basestring(name))}:" for name in columns)
    has_all = pc.fill_null(pc.match_substring_regex(images, ".*".join(names)), True)  # noqa: FBT003
    return ~bools(has_all)
