"""TLS of a port: its certificate, and the authority whose clients may read."""

import contextlib
import ssl
from collections.abc import Iterator
from pathlib import Path

from connectors.file_mark import FileMark, mark_of
from streaming.core.access.port_access import PortAccess


def server_context(access: PortAccess) -> ssl.SSLContext | None:
    """What a port answers with over TLS; None: it has no certificate. OSError: a file is wrong.

    Files that are changed are read again, for the next connection.
    """
    if access.certificate is None or access.key is None:
        return None
    context = _read(access, access.certificate, access.key)
    context.sni_callback = _Renewal(access, access.certificate, access.key, context).renew
    return context


def _read(access: PortAccess, certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    if access.client_ca is not None:
        context.load_verify_locations(access.client_ca)
        context.verify_mode = ssl.CERT_OPTIONAL  # who shows none may still have the token
    return context


class _Renewal:
    """Gives each connection the certificate as it is in its files then."""

    def __init__(
        self, access: PortAccess, certificate: Path, key: Path, context: ssl.SSLContext
    ) -> None:
        self._access, self._certificate, self._key = access, certificate, key
        self._context, self._marks = context, self._marked()

    def renew(self, connection: ssl.SSLObject | ssl.SSLSocket, *_: object) -> None:
        """Called at the beginning of each handshake; files that are half written change nothing."""
        marks = self._marked()
        if marks != self._marks:
            with contextlib.suppress(OSError):
                self._context = _read(self._access, self._certificate, self._key)
                self._marks = marks
        connection.context = self._context

    def _marked(self) -> list[FileMark | None]:
        files = (self._certificate, self._key, self._access.client_ca)
        return [mark_of(file) for file in files if file is not None]


def tls_faults(access: PortAccess) -> Iterator[str]:
    """One sentence if the files cannot be used."""
    try:
        server_context(access)
    except OSError as error:
        files = [str(one) for one in (access.certificate, access.key, access.client_ca) if one]
        yield f"http.certificate, http.key or http.client_ca ({', '.join(files)}): {error}"
