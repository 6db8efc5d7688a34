"""How many random cases a property is tried on: a few in `make test`, many in `make test-deep`."""

import os

from hypothesis import HealthCheck, settings

from tests.harness.rotation import ROTATION

DEEP = int(os.environ.get("SLACKWATER_EXAMPLES", "0"))
"""The number of the cheapest properties in a deep run; 0: this is none."""

USUAL = 50
"""The number of cases of a property that names none, where the run is not deep."""

SHARE = 4
"""A property that names no share of its own is tried on a quarter of DEEP."""

CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A busy machine is not a failed law."""


def examples(
    usual: int = USUAL,
    *,
    share: int = SHARE,
    is_fixed: bool = False,
    base: settings = CALM,
) -> settings:
    """Try a property on `usual` cases; in a deep run on DEEP / `share` of them, and no fewer.

    `share`: what a case costs, so that no property takes all the time. `is_fixed`: the same cases
    in every run that neither is deep nor has a rotation; those are repeated by their seed.
    """
    count = max(usual, DEEP // share) if DEEP else usual
    is_same = is_fixed and not DEEP and ROTATION is None
    return settings(base, max_examples=count, derandomize=is_same)
