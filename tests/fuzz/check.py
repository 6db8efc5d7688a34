"""`make fuzz-check`: core and columns on random records; exit 1 with the first disagreements."""

import sys
import time
from itertools import islice

from tests.harness.differential import fuzz

SHOWN = 5


def main(arguments: list[str]) -> int:
    """Arguments: the number of records, and a seed."""
    count = int(arguments[0]) if arguments else 1_000_000
    seed = int(arguments[1]) if len(arguments) > 1 else int(time.time())
    sys.stdout.write(f"seed {seed}: {count} records\n")
    sys.stdout.flush()
    found = list(islice(fuzz(seed, count), SHOWN))
    for value, core, columns in found:
        sys.stdout.write(f"\n{value!r}\n  core:    {core}\n  columns: {columns}\n")
    sys.stdout.write("core and columns disagree\n" if found else "no disagreement\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
