"""TLS of a port: its certificate, and the authority whose clients may read."""

import ssl
from collections.abc import Iterator

from streaming.core.model.port_access import PortAccess


def server_context(access: PortAccess) -> ssl.SSLContext | None:
    """What a port answers with over TLS; None: it has no certificate. OSError: a file is wrong."""
    if access.certificate is None or access.key is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(access.certificate, access.key)
    if access.client_ca is not None:
        context.load_verify_locations(access.client_ca)
        context.verify_mode = ssl.CERT_OPTIONAL  # who shows none may still have the token
    return context


def tls_faults(access: PortAccess) -> Iterator[str]:
    """One sentence if the files cannot be used."""
    try:
        server_context(access)
    except OSError as error:
        files = [str(one) for one in (access.certificate, access.key, access.client_ca) if one]
        yield f"http.certificate, http.key or http.client_ca ({', '.join(files)}): {error}"
