"""The measure of stages/recipients.py for changes: what of a log a consumer lacks."""

from streaming.core.delivery.lack import Lack
from streaming.core.model.csn import rid_of


def must_send(lack: Lack, csn: str) -> bool:
    """Return whether the consumer lacks this change, which is at or after the anchor.

    Skipped are helper records, replicas without lacking changes, changes that the consumer has, and
    changes beyond `stop` (the next calculation includes them).
    """
    return rid_of(csn) in lack.starts and lack.stop.covers(csn) and not lack.has.covers(csn)
