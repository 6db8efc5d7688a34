"""The command `slackwater demo`: exit code 0 if all checks pass, 1 if one fails or a part failed.

A signal ends it in order with 128 + its number. Signals are handled from here on, also while the
rest of the package is imported.
"""

import os
import sys
from pathlib import Path

from streaming.core.model.errors import HubError
from streaming.demo.monitor import Interrupted, PartMonitor
from streaming.demo.scenario import DemoScenario


def main(
    *,
    keep: Path | None = None,
    seconds: float = 10,
    scenario: DemoScenario = DemoScenario.COLLISIONS,
    stay: bool = False,
    secure: bool = False,
    check: Path | None = None,
    as_json: bool = False,
) -> int:
    """Run a demonstration, or verify again one that was kept (`check`); the exit code.

    `stay`: it ends when a signal comes, not when all are level. `secure`: on a closed broker. Its
    state is in its own folder, also where the states of others have one, as in a container.
    """
    with PartMonitor() as monitor:
        try:
            from streaming.config.sources.load import STATE_FOLDER_VARIABLE  # noqa: PLC0415 see above
            from streaming.demo.stage import perform, verify_kept  # noqa: PLC0415 see above

            monitor.check()
            os.environ.pop(STATE_FOLDER_VARIABLE, None)  # noqa: TID251  # its parts inherit the rest
            if check is not None:
                return verify_kept(check, as_json=as_json)
            return perform(
                monitor, keep, seconds, scenario, stay=stay, secure=secure, as_json=as_json
            )
        except (Interrupted, HubError):
            if monitor.signal is None:
                raise
            sys.stderr.write("slackwater: interrupted; nothing is left running\n")
            return 128 + monitor.signal
