"""Whether the rows that a hub holds survive when a column is configured as another type.

The hub keeps values as the wire writes them. Under another type most of them are no values, and
some mean something else, as the base64 of bytes does under text.
"""

from streaming.core.model.table import ColumnType

_WIDENED = {(ColumnType.INT32, ColumnType.FLOAT64), (ColumnType.INT64, ColumnType.DECIMAL)}
"""(old, new): each value of the old type is written as the same value of the new one.

An int32 is no int64: one is a JSON number, the other a string. Decimals and times have a text that
a text column would take; but a database may store them otherwise, and then the replicas differ.
"""


def keeps_values(old: ColumnType, new: ColumnType) -> bool:
    """Return whether every value that is written as the old type is the same one of the new."""
    return old is new or (old, new) in _WIDENED
