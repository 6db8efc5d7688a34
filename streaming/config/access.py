"""Whether the port of a configuration may be opened: who could read it, and by what."""

from collections.abc import Iterator

from connectors.tls import tls_faults
from streaming.config.sections import HttpConfig
from streaming.config.trusted_file import check_trusted
from streaming.core.model.errors import ConfigError


def access_faults(http: HttpConfig) -> Iterator[str]:
    """One sentence for each reason not to open the port of a hub."""
    if http.port:
        yield from http.access.faults(http.host, "http.host")
        yield from _writable(http)
        yield from tls_faults(http.access)


def _writable(http: HttpConfig) -> Iterator[str]:
    """One sentence if another user may write the key of the port."""
    try:
        if http.key is not None:
            check_trusted(http.key)
    except ConfigError as error:
        yield str(error)
    except OSError:
        return  # TLS says it


def check_access(http: HttpConfig) -> None:
    """ConfigError if the port may not be opened."""
    if faults := list(access_faults(http)):
        raise ConfigError("\n".join(faults))
