"""Where Spark is, by `spark.master`: in the hub's own process, or a cluster that must answer."""

import re
import socket
from contextlib import suppress

from streaming.core.access.secret_names import without_login
from streaming.core.model.errors import HubError

LOCAL = "local[2]"
"""Where Spark is unless configured otherwise."""
_STANDALONE = "spark://"
_ANSWER_S = 5.0
_ADDRESS = re.compile(
    r"local(\[(\d+|\*)(,\d+)?\])?|local-cluster\[.+\]|yarn|k8s://.+|spark://[^,]+:\d+(,[^,]+:\d+)*"
)


class MasterError(HubError):
    """The master of a Spark cluster does not answer, or no Spark has such an address."""


def is_local_master(master: str) -> bool:
    """Return whether it names this process: local or local[n], not local-cluster."""
    return re.match(r"local(\[|$)", master) is not None


def master_complaint(master: str) -> str | None:
    """What is wrong with the form of an address, in a sentence."""
    if _ADDRESS.fullmatch(master.replace(" ", "")):
        return None
    return (
        f'spark."spark.master" = {without_login(master)!r}: give spark://HOST:PORT of a'
        " cluster, k8s://URL, yarn, or local[2] for Spark in the hub's own process"
    )


def check_master(master: str) -> None:
    """MasterError if it is no address, or names standalone masters of which none answers.

    Spark itself would try for a minute and then end in an error that names no master.
    """
    if complaint := master_complaint(master):
        raise MasterError(complaint)
    if not master.startswith(_STANDALONE):
        return
    for address in master.removeprefix(_STANDALONE).split(","):
        host, _, port = address.rpartition(":")
        with suppress(OSError, ValueError), socket.create_connection((host, int(port)), _ANSWER_S):
            return
    raise MasterError(
        f"no Spark master answers at {without_login(master)}: start it, or correct"
        ' spark."spark.master" in the configuration; nothing is lost, the hub resumes'
        " where it stopped"
    )
