"""Patterns of canonical JSON values, by column type (core/model/values.py)."""

from streaming.core.model.table import ColumnType

_MONTH_DAY = (
    r"(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])"
    r"|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
)
_YEAR = r"(?:\d{3}[1-9]|\d\d[1-9]0|\d[1-9]00|[1-9]000)"
_BY_FOUR = r"(?:0[48]|[2468][048]|[13579][26])"
_LEAP_YEAR = rf"(?:\d\d{_BY_FOUR}|{_BY_FOUR}00)"
DECIMAL = r'"-?(?:0|[1-9]\d*)(?:\.\d+)?"'
BYTES = r'"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?"'
TIMESTAMP = (
    rf'"(?:{_YEAR}-{_MONTH_DAY}|{_LEAP_YEAR}-02-29)'
    r'T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{6}Z"'
)
_PLAIN = r'[^"\\\x00-\x1f]'
_ESCAPE = r'\\(?:["\\bfnrt]|u00(?:0[0-7bef]|1[0-9a-f]))'
NOT_NUMBERS = '"NaN"|"-?Infinity"'

CANONICAL: dict[ColumnType, str] = {
    ColumnType.BOOL: r"(?:true|false)",
    ColumnType.INT32: r"(?:0|-?[1-9]\d{0,8}|-?1\d{9}|-?20\d{8})",
    ColumnType.INT64: r'"(?:0|-?[1-9]\d{0,17}|-?[1-8]\d{18})"',
    ColumnType.FLOAT64: (
        rf"(?:-?(?:0|[1-9]\d{{0,30}})(?:\.\d{{1,40}})?(?:[eE][+-]?\d\d?)?|{NOT_NUMBERS})"
    ),
    ColumnType.DECIMAL: DECIMAL,
    ColumnType.TEXT: rf'"{_PLAIN}*(?:{_ESCAPE}{_PLAIN}*)*"',
    ColumnType.BYTES: BYTES,
    ColumnType.TIMESTAMP: TIMESTAMP,
}
"""Each matches canonical values of the type only, but not all: core checks numbers near limits."""
