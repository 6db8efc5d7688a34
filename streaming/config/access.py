"""Whether the port of a configuration may be opened: who could read it, and by what."""

from collections.abc import Iterator

from connectors.tls import tls_faults
from connectors.trusted_file import check_trusted
from streaming.config.sections import HttpConfig
from streaming.core.model.errors import ConfigError


def access_faults(http: HttpConfig) -> Iterator[str]:
    """One sentence for each reason not to open the port of a hub."""
    if http.port:
        yield from http.access.faults(http.host, "http.host")
        yield from _writable(http)
        yield from tls_faults(http.access)


def _writable(http: HttpConfig) -> Iterator[str]:
    """One sentence for each file of the port that another user may write.

    Its certificate is none: who has another one does not have the key of the port.
    """
    for file in (http.key, http.client_ca):
        try:
            if file is not None:
                check_trusted(file)
        except ConfigError as error:
            yield str(error)
        except OSError:
            continue  # TLS says it
