"""The comparison beside a hub, as a process of its own: `python -m streaming.compare.beside FILE`.

To hash rows in the hub's process would take its batches' time. The hub holds the other end of its
standard input: when that is closed, because the hub ends or was killed, this ends too, at once and
wherever it is. A round that is cut off has changed nothing.
"""

import logging
import os
import sys
import threading
from pathlib import Path

from connectors.logs import configure_logs
from streaming.compare.rounds import RoundOptions, consumer_rounds, go_round, round_text
from streaming.config.config import Config
from streaming.config.sources.load import load
from streaming.core.access.secret_names import secrets_of
from streaming.core.model.errors import HubError
from streaming.facts.consumers.compared import ComparedRound

LOG = logging.getLogger("slackwater")

NICE = 10
"""The hub's batches go before it."""


def main() -> int:
    """Compare as the configuration says, until the hub ends; 1: it cannot, and its log says why."""
    os.nice(NICE)
    threading.Thread(target=_end_with_the_hub, daemon=True).start()
    try:
        _compare(load(Path(sys.argv[1])))
    except HubError as error:
        LOG.error("the comparison beside the hub: %s", error)  # noqa: TRY400  # it says what to do
    except Exception:
        LOG.exception("the comparison beside the hub failed")
    return 1


def _end_with_the_hub() -> None:
    os.read(sys.stdin.fileno(), 1)  # nothing is written there
    os._exit(0)


def _compare(config: Config) -> None:
    secrets, fields = secrets_of(*config.secret_options), {"hub": config.hub.name}
    configure_logs(config.log.format, config.log.level, "slackwater", lambda: fields, secrets)
    options = RoundOptions()
    go_round(config, consumer_rounds(config, {}, options), options, _log)


def _log(consumer: str, found: ComparedRound | HubError) -> None:
    if isinstance(found, HubError):
        LOG.warning("not compared, until the next round: %s: %s", consumer, found)
    elif found.differing:
        LOG.warning("%s", round_text(consumer, found))
    else:
        LOG.info("%s", round_text(consumer, found))


if __name__ == "__main__":
    sys.exit(main())
