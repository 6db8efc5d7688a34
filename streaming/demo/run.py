"""The command `slackwater demo`: 0 all of it holds, 1 it does not or a part failed.

A signal ends it in order with 128 + its number. It is heard from here on, also while the rest of
the package is imported.
"""

import sys
from pathlib import Path

from streaming.core.model.errors import HubError
from streaming.demo.watch import Interrupted, Watch


def main(
    *,
    keep: Path | None = None,
    seconds: float = 10,
    check: Path | None = None,
    as_json: bool = False,
) -> int:
    """Run a demonstration, or look again at one that was kept (`check`); the exit code."""
    with Watch() as watch:
        try:
            from streaming.demo.stage import look_at, perform  # noqa: PLC0415 see above

            watch.check()
            if check is not None:
                return look_at(check, as_json=as_json)
            return perform(watch, keep, seconds, as_json=as_json)
        except (Interrupted, HubError):
            if watch.signal is None:
                raise
            sys.stderr.write("slackwater: interrupted; nothing is left running\n")
            return 128 + watch.signal
