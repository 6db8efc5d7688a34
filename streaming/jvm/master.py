"""Where Spark is, by `spark.master`: in the hub's own process, or a cluster that must answer."""

import re
import socket
from contextlib import suppress

from streaming.core.model.errors import HubError

_STANDALONE = "spark://"
_ANSWER_S = 5.0


class MasterError(HubError):
    """The master of a Spark cluster does not answer."""


def is_local_master(master: str) -> bool:
    """Return whether it names this process: local or local[n], not local-cluster."""
    return re.match(r"local(\[|$)", master) is not None


def check_master(master: str) -> None:
    """MasterError if it names standalone masters of which none takes a connection.

    Spark itself would try for a minute and then end in an error that names no master.
    """
    if not master.startswith(_STANDALONE):
        return
    for address in master.removeprefix(_STANDALONE).split(","):
        host, _, port = address.rpartition(":")
        with suppress(OSError, ValueError), socket.create_connection((host, int(port)), _ANSWER_S):
            return
    raise MasterError(
        f'no Spark master answers at {master}: start it, or correct spark."spark.master" in the'
        " configuration; nothing is lost, the hub resumes where it stopped"
    )
