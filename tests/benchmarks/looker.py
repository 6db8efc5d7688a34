"""Whoever looks at a hub: a scrape each second, and an open page that follows its events.

    python -m tests.benchmarks.looker PORT

It ends on SIGTERM and then prints how often it has scraped and how many events it got.
"""

import http.client
import json
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from subprocess import PIPE, Popen

HOST = "127.0.0.1"
EVERY_S = 1.0
_TIMEOUT_S = 60


@dataclass(slots=True)
class Seen:
    """What it has seen of the hub."""

    scrapes: int = 0
    events: int = 0


@contextmanager
def looking(port: int) -> Iterator[Seen]:
    """A process that looks at the hub at this port; what it has seen is known behind the block."""
    command = [sys.executable, "-m", "tests.benchmarks.looker", str(port)]
    seen = Seen()
    with Popen(command, stdout=PIPE, text=True) as process:
        try:
            yield seen
        finally:
            process.terminate()
            text, _ = process.communicate()
    found = Seen(**json.loads(text))
    seen.scrapes, seen.events = found.scrapes, found.events


def _scrape(connection: http.client.HTTPConnection) -> bool:
    """Scrape over a connection that is kept, as Prometheus does."""
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().read() != b""
    except (OSError, http.client.HTTPException):  # it starts or ends
        connection.close()
        return False


def _follow(port: int, seen: Seen, ended: threading.Event) -> None:
    while not ended.wait(EVERY_S):
        connection = http.client.HTTPConnection(HOST, port, timeout=_TIMEOUT_S)
        try:
            connection.request("GET", "/events")
            for line in connection.getresponse():
                seen.events += line.startswith(b"event:")
        except (OSError, http.client.HTTPException):  # as above
            continue
        finally:
            connection.close()


def main(port: int) -> None:
    """Look until a signal comes."""
    seen, ended = Seen(), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    threading.Thread(target=_follow, args=(port, seen, ended), daemon=True).start()
    connection = http.client.HTTPConnection(HOST, port, timeout=_TIMEOUT_S)
    while not ended.wait(EVERY_S):
        seen.scrapes += _scrape(connection)
    sys.stdout.write(json.dumps(asdict(seen)))


if __name__ == "__main__":
    main(int(sys.argv[1]))
