"""What answers at the port of a hub."""

import socket
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from typing import Any

from streaming.core.model.foreign_json import loads

ANSWER_S = 5.0
"""How long a port gets to answer."""
NO_HUB = "is in use, and no hub answers there"


def answer_at(host: str, port: int) -> Mapping[str, Any] | None:
    """The document at /status; empty: no hub answers. None: nothing listens there."""
    try:
        socket.create_connection((host, port), timeout=1.0).close()
    except OSError:
        return None
    connection = HTTPConnection(host, port, timeout=ANSWER_S)
    try:
        connection.request("GET", "/status")
        found = loads(connection.getresponse().read())
    except (OSError, HTTPException, ValueError):
        return {}
    finally:
        connection.close()
    return found if isinstance(found, dict) else {}
