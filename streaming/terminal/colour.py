"""The colours of statuses on a terminal: in order, on its way, or in need of a person."""

import os
import sys

from streaming.core.model.statuses import AgreementStatus, ReplicaStatus

GREEN, YELLOW, RED = "32", "33", "31"
"""Codes of ANSI (SGR)."""

_OF_STATUS = {
    str(status): RED if status.is_stopped else YELLOW
    for status in (*ReplicaStatus, *AgreementStatus)
    if status not in (ReplicaStatus.RETIRED, AgreementStatus.RETIRED)
} | {str(ReplicaStatus.LIVE): GREEN, str(AgreementStatus.IN_SYNC): GREEN}


def coloured(text: str) -> str:
    """A status in its colour, where the output is a terminal and NO_COLOR is not set.

    What follows the status, such as its detail, has the colour too; any other text has none.
    """
    status, _, _ = text.strip().replace(":", " ").partition(" ")
    code = _OF_STATUS.get(status)
    if code is None or not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    return f"\x1b[{code}m{text}\x1b[0m"
