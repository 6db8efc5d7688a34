"""The columns in docs/tables.md from the schemas: `python -m checkpoints.tables_page`."""

from pathlib import Path

import pyarrow as pa

from checkpoints.comments import TABLE_COMMENTS, column_comments, member_comments
from checkpoints.tables import SCHEMAS, TableName
from streaming.core.text.markdown import code, table

PLACE = Path(__file__).parents[1] / "docs" / "tables.md"
COLUMNS = "\n## Columns\n"
"""Where what is made from the schemas begins; what is above it is written by hand."""

_NOTE = """
From here on this page is made from `checkpoints/comments.py`; `make docs` writes it.
Delta has these texts too, as comments of the tables and columns (`DESCRIBE TABLE`).
"""


def page(text: str) -> str:
    """The whole page; `text` is what it is now, of which the part above the columns stays."""
    by_hand = text.partition(COLUMNS)[0]
    return "".join([by_hand, COLUMNS, _NOTE, *map(_section, TableName)])


def _section(name: TableName) -> str:
    comments = column_comments(name)
    rows = ((code(one.name), _type(one.type), comments[one.name]) for one in SCHEMAS[name])
    columns = table(("column", "type", "meaning"), rows)
    members = "".join(map(_members, SCHEMAS[name].names))
    return f"\n### {name.value}\n\n{_sentence(TABLE_COMMENTS[name])}\n\n{columns}{members}"


def _members(column: str) -> str:
    """What the structs in a column hold, if that is said of it."""
    comments = member_comments(column)
    if not comments:
        return ""
    rows = ((code(name), meaning) for name, meaning in comments.items())
    return f"\n#### Members of {code(column)}\n\n{table(('member', 'meaning'), rows)}"


def _type(one: pa.DataType) -> str:
    """The type as a reader of the page knows it."""
    return str(one).partition("[")[0].partition("<")[0]


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


if __name__ == "__main__":
    PLACE.write_text(page(PLACE.read_text("utf-8")), encoding="utf-8")
