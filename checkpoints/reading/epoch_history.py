"""Reads how long ago hub epochs were committed, and how many changes they hold."""

from checkpoints.reading.reader import Reader
from checkpoints.tables import TableName
from checkpoints.times import ms_of
from streaming.core.delivery.epoch_history import SPANS_MAX, EpochHistory, EpochSpan

_EPOCHS = """
    SELECT {span} AS span, max(hub_epoch) AS last, min("at") AS "at"
    FROM t WHERE kind = 'commit' AND {within} GROUP BY span ORDER BY span
"""
_CHANGES = """
    SELECT {span} AS span, rid, "table", count(*) AS count
    FROM t WHERE kind = 'change' AND verdict = 'accepted' AND {within} GROUP BY span, rid, "table"
"""


def epoch_history(reader: Reader, after: int) -> EpochHistory:
    """The hub epochs of a committed state above `after`; nothing is read if there are none."""
    hub_epoch = reader.commit.state.hub_epoch if reader.commit else 0
    if after >= hub_epoch:
        return EpochHistory(hub_epoch)
    width = -(-(hub_epoch - after) // SPANS_MAX)
    within = f"hub_epoch > {after} AND batch <= {reader.batch}"
    of = {"span": f"(hub_epoch - {after + 1}) / {width}", "within": within}
    changes: dict[int, dict[tuple[int, str], int]] = {}
    for row in reader.query(TableName.CHANGELOG, _CHANGES.format(**of)):
        changes.setdefault(row["span"], {})[row["rid"], row["table"]] = row["count"]
    spans = (
        EpochSpan(row["last"], ms_of(row["at"]), changes.get(row["span"], {}))
        for row in reader.query(TableName.EPOCHS, _EPOCHS.format(**of))
    )
    return EpochHistory(after, tuple(spans))
