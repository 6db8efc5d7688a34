"""Which part of the rotating tests a run takes: `make test-more` names another one each day."""

import os

_TEXT = os.environ.get("SLACKWATER_ROTATION", "")

ROTATION = int(_TEXT) if _TEXT else None
"""The number of the run; None: nothing rotates, and `make test-slow` has what a run leaves out."""

SHARES = 3
"""In so many runs with numbers in a row everything that rotates has its turn."""


def has_its_turn(place: int) -> bool:
    """Whether this run takes what stands at this place of a list that rotates."""
    return ROTATION is not None and place % SHARES == ROTATION % SHARES
