"""TLS of a port: its certificate, and the authority whose clients may read."""

import contextlib
import ssl
from collections.abc import Iterator
from pathlib import Path

from connectors.live_value import FileMark, mark_of
from streaming.core.access.port_access import PortAccess


def server_context(access: PortAccess) -> ssl.SSLContext | None:
    """What a port answers with over TLS; None: it has no certificate. OSError: a file is wrong.

    Files that are changed are read again, for the next connection.
    """
    if access.certificate is None or access.key is None:
        return None
    certificate, key = access.certificate, access.key
    context = current = _read(access, certificate, key)
    marks = _marks(access)

    def renew(connection: ssl.SSLObject | ssl.SSLSocket, *_: object) -> None:
        """At the beginning of each handshake; files that are half written change nothing."""
        nonlocal current, marks
        found = _marks(access)
        if found != marks:
            with contextlib.suppress(OSError):
                current, marks = _read(access, certificate, key), found
        connection.context = current

    context.sni_callback = renew
    return context


def _read(access: PortAccess, certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    if access.client_ca is not None:
        context.load_verify_locations(access.client_ca)
        context.verify_mode = ssl.CERT_OPTIONAL  # who shows none may still have the token
    return context


def _marks(access: PortAccess) -> list[FileMark | None]:
    return [mark_of(file) for file in _files(access)]


def _files(access: PortAccess) -> list[Path]:
    return [one for one in (access.certificate, access.key, access.client_ca) if one is not None]


def tls_faults(access: PortAccess) -> Iterator[str]:
    """One sentence if the files cannot be used."""
    try:
        server_context(access)
    except OSError as error:
        files = ", ".join(map(str, _files(access)))
        yield f"http.certificate, http.key or http.client_ca ({files}): {error}"
