"""Who may read what a port serves: a token, a client's certificate, or the machine's own users."""

import hmac
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from pathlib import Path

from streaming.core.access.secret_names import without_login
from streaming.core.model.errors import ConfigError

_TOKEN = re.compile(r"[!-~]{16,}")
_HOST = re.compile(r"(\[[^\]]*\]|[^:]*)(:\d*)?")
_LOCAL = "localhost"


@dataclass(frozen=True, slots=True)
class PortAccess:
    """What a client of a port must have: the token, or a certificate of `client_ca`.

    Neither: whoever reaches the port may read, so it must be one of loopback. `certificate` and
    `key`: the port's own, for TLS. `names`: those under which clients ask for it.
    """

    token: str | None = field(default=None, repr=False)
    certificate: Path | None = None
    key: Path | None = None
    client_ca: Path | None = None
    names: tuple[str, ...] = ()

    @property
    def is_asked(self) -> bool:
        """Return whether a client must have anything."""
        return self.token is not None or self.client_ca is not None

    def faults(self, host: str, named: str) -> Iterator[str]:
        """One sentence for each reason not to serve at an address; `named`: where it is set."""
        if self.token is not None and not _TOKEN.fullmatch(self.token):
            yield (
                "http.token: give at least 16 printable characters without blanks, as"
                " `openssl rand -hex 32` makes them"
            )
        if (self.certificate is None) != (self.key is None):
            yield "http.certificate and http.key: give both, or neither"
        if self.client_ca is not None and self.certificate is None:
            yield "http.client_ca: clients have certificates over TLS only: give http.certificate"
        if not (self.is_asked or is_loopback(host)):
            yield (
                f"{named} = {without_login(host)!r} is reached from other machines: give"
                " http.token, or http.client_ca with http.certificate and http.key, or an"
                " address of loopback"
            )

    def admits(self, authorization: str, *, has_certificate: bool, cookie: str = "") -> bool:
        """Return whether a request may read, by its header, its connection and its cookie."""
        return (
            not self.is_asked
            or has_certificate
            or _is_same(authorization, f"Bearer {self.token}", self.token)
            or _is_same(cookie, self.cookie(), self.token)
        )

    def with_token(self, token: str | None) -> "PortAccess":
        """The same with another token; ConfigError: it cannot be one, or was taken away."""
        if token is None and self.token is not None:
            raise ConfigError("it was taken away, and the port is opened at the next start only")
        found = replace(self, token=token)
        if faults := list(found.faults(_LOCAL, "http.host")):
            raise ConfigError("; ".join(faults))
        return found

    def known_as(self, host: str, machine: str) -> frozenset[str]:
        """The names that a Host header may have, of a port that listens at `host`."""
        return frozenset(name.lower() for name in (host, machine, *self.names))

    def cookie(self) -> str:
        """What a browser keeps for the token, from which the token cannot be had."""
        return hmac.digest((self.token or "").encode(), b"slackwater page", "sha256").hex()


FILES = ("certificate", "key", "client_ca")
"""The fields of PortAccess that name a file."""
LOOPBACK = "127.0.0.1"
EVERYBODY = PortAccess()
"""A port of loopback that asks for nothing."""


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == _LOCAL


def is_known_host(header: str, names: frozenset[str]) -> bool:
    """Return whether a Host header is an address, or a name that this port has.

    A page of somebody else's can have a browser ask this port under a name of its own, which it
    lets point here (DNS rebinding); it would then read the answers.
    """
    found = _HOST.fullmatch(header)
    if found is None:
        return False
    host = found[1].removeprefix("[").removesuffix("]").lower()
    try:
        ip_address(host)
    except ValueError:
        return host == _LOCAL or host.removesuffix(".") in names
    return True


def _is_same(given: str, expected: str, token: str | None) -> bool:
    """Compare in a time that tells nothing of how much is right."""
    return token is not None and hmac.compare_digest(
        given.encode(errors="surrogateescape"), expected.encode()
    )
