"""`python -m tests.vectors FILE...`: a line a case; exit 1 when one failed."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.vectors.deviations import Deviations
from tests.vectors.runner import run_file


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all cases of all files; 1 if any of them failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.vectors", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    files = parser.parse_args(arguments).files
    deviations, failed = Deviations.load(), False
    for file in files:
        for outcome in run_file(file, deviations):
            sys.stdout.write(f"{outcome.line}\n")
            failed = failed or outcome.failed
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
