"""`make fuzz-check`: commands and the port on random records in quarantine; exit 1 at a failure."""

import contextlib
import io
import sys
import time
import traceback
from pathlib import Path
from tempfile import TemporaryDirectory

from streaming.cli.main import main as slackwater
from tests.checkpoints.written_state import WrittenState
from tests.harness.mutations import KNOWN
from tests.harness.quarantined_records import answers_of_the_port, keep, mutated_values
from tests.streaming.cli.conftest import CONFIG

AT_ONCE = 20_000
"""Records of one state."""

COMMANDS = (
    ("status", "--json"),
    ("level",),
    ("conflicts", "list", "--kind", "uncarried"),
    ("quarantine", "list", "--limit", str(AT_ONCE)),
    ("quarantine", "list", "--limit", str(AT_ONCE), "--json"),
    ("quarantine", "drop", "--all"),
    ("quarantine", "release", "--all"),
)


def failure(seed: int, count: int, times: int = 1) -> str | None:
    """What goes wrong about so many records in quarantine; None: nothing does.

    `times`: how often each of them came.
    """
    with TemporaryDirectory() as folder:
        file = Path(folder) / "hub.toml"
        file.write_text(CONFIG, encoding="utf-8")
        state = WrittenState(file.parent / "state").create()
        keep(state, list(mutated_values(seed, count)), KNOWN, times)
        for command in COMMANDS:
            if said := _fault([*command, "--config", str(file)]):
                return f"{' '.join(command)}: {said}"
        codes = answers_of_the_port(file)
    bad = {path: code for path, code in codes.items() if code not in (200, 503)}
    return str(bad) if bad else None


def _fault(arguments: list[str]) -> str | None:
    """The traceback of a command, or what it says when it can say nothing."""
    err = io.StringIO()
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(err):
            code = slackwater(arguments)
    except Exception:  # noqa: BLE001  # whatever ends it is what is looked for
        return traceback.format_exc()
    return None if code in (0, 1) else err.getvalue()


def main(arguments: list[str]) -> int:
    """Arguments: the number of records, and a seed; in the end as many are in one state."""
    left = int(arguments[0]) if arguments else 1_000_000
    seed = int(arguments[1]) if len(arguments) > 1 else int(time.time())
    times, flood = left // AT_ONCE, seed
    while left > 0:
        found = failure(seed, min(left, AT_ONCE))
        if found:
            sys.stdout.write(f"seed {seed}, {min(left, AT_ONCE)} records: {found}\n")
            return 1
        left, seed = left - AT_ONCE, seed + 1
    if times and (found := failure(flood, AT_ONCE, times)):
        sys.stdout.write(f"seed {flood}, {AT_ONCE} records {times} times: {found}\n")
        return 1
    sys.stdout.write("commands and port answer\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
