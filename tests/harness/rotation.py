"""Which part of the tests that are `more` a run takes: `make test-more` names another each day."""

import os

_TEXT = os.environ.get("SLACKWATER_ROTATION", "")

ROTATION = int(_TEXT) if _TEXT else None
"""The number of the run, of which `make test-slow` has what `make test-more` leaves out.

None: nothing rotates.
"""

SHARES = 3
"""In so many runs with numbers in a row everything that rotates has its turn."""


def has_its_turn(place: int) -> bool:
    """Whether this run takes what stands at this place of a list that rotates."""
    return ROTATION is None or place % SHARES == ROTATION % SHARES
