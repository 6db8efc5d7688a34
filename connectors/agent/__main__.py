"""`python -m connectors.agent FILE`: the agent of the replica whose settings the file holds.

FILE is the JSON document of connectors.agent.settings, - is the standard input. SIGTERM and
SIGINT end it in good order; exit code 1 with the reason if it cannot go on.
"""

import logging
import signal
import sqlite3
import sys
import threading
from pathlib import Path

from connectors.agent.loop import run
from connectors.agent.settings import AgentSettings, parse
from streaming.core.model.errors import HubError


def main(arguments: list[str]) -> int:
    """Run an agent until it is told to end."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m connectors.agent FILE (settings as JSON; -: stdin)\n")
        return 2
    try:
        source = arguments[0]
        settings = parse(sys.stdin.read() if source == "-" else Path(source).read_text("utf-8"))
    except (HubError, OSError) as error:
        sys.stderr.write(f"agent: {error}\n")
        return 1
    return work(settings)


def work(settings: AgentSettings) -> int:
    """Run the agent until SIGTERM or SIGINT; its exit code."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        logging.basicConfig(
            level=logging.INFO,
            format=f"%(asctime)s {settings.replica} %(levelname)s %(message)s",
            stream=sys.stderr,
        )
        logging.getLogger("kafka").setLevel(logging.CRITICAL)  # topics.py tells of outages, once
        run(settings, stop)
    except (HubError, OSError, sqlite3.Error) as error:
        sys.stderr.write(f"agent: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
