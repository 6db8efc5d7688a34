"""Which conflicts would not have been: at half the lag, or if each column were judged."""

from streaming.core.model.foreign_json import loads


def is_avoided_by_half_the_lag(change_ms: int, met_ms: int, reflected_ms: int | None) -> bool:
    """Return whether its replica would have had the row when it wrote, at half the lag.

    `change_ms`: when the change was written; `met_ms`: when the row was that it met;
    `reflected_ms`: when the change's replica said that it has that row, None: never yet.
    """
    if reflected_ms is None:
        return False
    return change_ms >= met_ms + max(0, reflected_ms - met_ms) / 2


def is_avoided_by_column(
    change: tuple[str | None, str | None], met: tuple[str | None, str | None]
) -> bool | None:
    """Return whether two updates changed different columns; None: a before-image is missing.

    Each is (before, after). Of an insert or delete all columns are changed.
    """
    mine, theirs = _changed(*change), _changed(*met)
    if mine is None or theirs is None:
        return None
    return mine.isdisjoint(theirs)


def _changed(before: str | None, after: str | None) -> set[str] | None:
    if before is None or after is None:
        return None
    old, new = loads(before), loads(after)
    return {name for name in new if name not in old or old[name] != new[name]}
