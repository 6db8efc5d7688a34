"""What answers at the port of a hub."""

import socket
import ssl
from collections.abc import Mapping
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any

from streaming.config.sections import HttpConfig
from streaming.core.model.foreign_json import loads

ANSWER_S = 5.0
"""How long a port gets to answer."""
NO_HUB = "is in use, and no hub answers there"
NOT_ADMITTED: Mapping[str, Any] = {"error": "who asks here may not read"}


def answer_at(http: HttpConfig) -> Mapping[str, Any] | None:
    """The document at /status; empty: no hub answers. None: nothing listens there.

    NOT_ADMITTED: a hub answers, whose token is another one, or which asks for a certificate.
    """
    try:
        socket.create_connection((http.host, http.port), timeout=1.0).close()
    except OSError:
        return None
    token = {"authorization": f"Bearer {http.token}"} if http.token else {}
    connection = _connection(http)
    try:
        connection.request("GET", "/status", headers=token)
        answer = connection.getresponse()
        if answer.status == HTTPStatus.UNAUTHORIZED:
            return NOT_ADMITTED
        found = loads(answer.read())
    except (OSError, HTTPException, ValueError):
        return {}
    finally:
        connection.close()
    return found if isinstance(found, dict) else {}


def _connection(http: HttpConfig) -> HTTPConnection:
    """A connection to the port; over TLS only to one that has this hub's certificate."""
    if http.certificate is None:
        return HTTPConnection(http.host, http.port, timeout=ANSWER_S)
    context = ssl.create_default_context(cafile=str(http.certificate))
    context.check_hostname = False  # it is asked by its address
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return HTTPSConnection(http.host, http.port, timeout=ANSWER_S, context=context)
