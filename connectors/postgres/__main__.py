"""`python -m connectors.postgres FILE`: the agent of the replica whose settings FILE holds.

FILE is the JSON document of connectors.agent.settings, - is the standard input. SIGTERM and
SIGINT stop it in order; exit code 1 with the reason if it fails.
"""

import sys

from connectors.agent.process import run_arguments
from connectors.postgres.run import open_store


def main(arguments: list[str]) -> int:
    """Run an agent until SIGTERM or SIGINT; its exit code."""
    return run_arguments("connectors.postgres", arguments, open_store)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
