"""The rows as the hub has them, for comparing a replica's file with them."""

from collections.abc import Iterable

from checkpoints.query import among, open_table, select
from checkpoints.reading.reader import Reader
from checkpoints.tables import TableName
from streaming.core.conflict.judge import Verdict
from streaming.core.model.change import RowKey
from streaming.core.model.truncation import ALL_KEYS

_ROW = ("table", "key", "image")


def hub_images(reader: Reader, tables: Iterable[str]) -> dict[RowKey, str]:
    """The image of every row of these tables that exists, as of the reader's commit."""
    wanted = among("table", sorted(tables))
    stored = select(
        open_table(reader.root, TableName.ROWS), TableName.ROWS, columns=_ROW, where=[wanted]
    )
    after = reader.commit.rows_epoch if reader.commit else 0
    accepted = {"kind": "change", "verdict": Verdict.ACCEPTED.value}
    newer = reader.changelog(accepted, after=after, columns=_ROW)
    last = dict[RowKey, str | None]()
    for row in (row for part in (stored, newer) for row in part.to_pylist()):
        if row["key"] == ALL_KEYS:
            last = {key: image for key, image in last.items() if key[0] != row["table"]}
        else:
            last[row["table"], row["key"]] = row["image"]
    return {key: image for key, image in last.items() if image is not None}
