"""The command `slackwater demo`: exit code 0 if all checks pass, 1 if one fails or a part failed.

A signal ends it in order with 128 + its number. Signals are handled from here on, also while the
rest of the package is imported.
"""

import os
import sys
from pathlib import Path

from streaming.core.model.errors import HubError
from streaming.demo.monitor import Interrupted, PartMonitor
from streaming.demo.scenario import DemoOptions


def main(options: DemoOptions, check: Path | None) -> int:
    """Run a demonstration, or verify again one that was kept (`check`); the exit code.

    Its state is in its own folder, also where the states of others have one, as in a container.
    """
    with PartMonitor() as monitor:
        try:
            from streaming.config.sources.load import STATE_FOLDER_VARIABLE  # noqa: PLC0415 see above
            from streaming.demo.stage import perform, verify_kept  # noqa: PLC0415 see above

            monitor.check()
            os.environ.pop(STATE_FOLDER_VARIABLE, None)  # noqa: TID251  # its parts inherit the rest
            if check is not None:
                return verify_kept(monitor, check, as_json=options.as_json)
            return perform(monitor, options)
        except (Interrupted, HubError):
            if monitor.signal is None:
                raise
            sys.stderr.write("slackwater: interrupted; nothing is left running\n")
            return 128 + monitor.signal
