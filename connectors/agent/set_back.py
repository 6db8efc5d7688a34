"""What the replica's user would not notice: own changes that the hub did not accept, refused items.

The hub's batch says so without a record of its own: a refresh carries its cause.
"""

from collections import Counter
from collections.abc import Iterable

from streaming.core.model.record import Item, ItemType, Reason, Refused

NAMED = 5
"""How many refused items of one batch are named, at most."""

_QUARANTINED = {reason.value for reason in Reason}


def quarantined_text(items: Iterable[Item]) -> str | None:
    """Say which own changes the hub quarantined, by the refreshes of a batch; None: none."""
    back = [i for i in items if i.type is ItemType.REFRESH and i.cause in _QUARANTINED]
    if not back:
        return None
    counts = Counter(str(item.cause) for item in back)
    reasons = ", ".join(f"{reason} {count}" for reason, count in sorted(counts.items()))
    rows = f"row {back[0].table} {back[0].key}"
    if len(back) > 1:
        rows = f"{len(back)} rows, the first is {back[0].table} {back[0].key}"
    return (
        f"the hub quarantined changes of this replica ({reasons}) and sets their rows back to its"
        f" own: {rows}; `slackwater quarantine list` shows them"
    )


def refused_texts(refused: tuple[Refused, ...]) -> Iterable[str]:
    """Say which items of a batch the database would not take, and why."""
    for one in refused[:NAMED]:
        yield f"the database refuses row {one.table} {one.key} ({one.code}): {one.text}"
    if len(refused) > NAMED:
        yield f"the database refuses {len(refused)} rows of hub epoch {refused[0].hub_epoch} in all"
