"""Rows by groups, in batches of any size."""

from collections.abc import Sequence

import pyarrow as pa

FEW_ROWS = 10_000


def grouped(rows: pa.Table, columns: Sequence[str]) -> pa.TableGroupBy:
    """The rows by these columns, to be aggregated.

    Few of them are counted where they are: on a machine at work, waking other threads for them
    takes longer than a batch has for it.
    """
    return rows.group_by(list(columns), use_threads=rows.num_rows > FEW_ROWS)
