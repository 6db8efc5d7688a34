"""RUVs, and the purge of a plan, as a row of `epochs` holds them."""

from collections.abc import Iterable, Mapping
from typing import Any

from streaming.core.model.ruv import Ruv, parse_ruv
from streaming.core.retention.purge import Purge


def ruvs_of(pairs: Iterable[tuple[str, list[str]]]) -> dict[str, Ruv]:
    """Data set -> its RUV, as a row holds them."""
    return {dataset: parse_ruv(lines) for dataset, lines in pairs}


def ruv_rows(ruvs: Mapping[str, Ruv]) -> list[tuple[str, list[str]]]:
    """RUVs by data set, as a row holds them."""
    return [(dataset, ruv.text()) for dataset, ruv in sorted(ruvs.items())]


def purge_row(purge: Purge | None) -> dict[str, object]:
    """The columns of a plan for its purge; of a plan without one they are null."""
    if purge is None:
        return {}
    return {
        "purge_epoch": purge.epoch,
        "purge_batch": purge.batch,
        "purge_ruv": ruv_rows(purge.purged),
        "ruv": ruv_rows(purge.kept),
    }


def purge_in(row: Mapping[str, Any]) -> Purge | None:
    """The purge of a plan's row; None: it has none."""
    if row["purge_epoch"] is None:
        return None
    epoch, batch = row["purge_epoch"], row["purge_batch"]
    return Purge(epoch, batch, ruvs_of(row["purge_ruv"]), ruvs_of(row["ruv"]))
