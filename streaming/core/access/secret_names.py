"""Which options are secrets, by their names; no value of one is ever shown, stored or logged."""

import re
from collections.abc import Mapping

HIDDEN = "***"
"""What stands for a secret wherever it is shown or stored."""

_SECRET = re.compile(
    r"password|passphrase|jaas|secret|token|credential|access\.?key|keystore\.key|private",
    re.IGNORECASE,
)
_QUOTED = re.compile(r'(\w+\s*=\s*)?"([^"]+)"')
_USER = re.compile(r"username\s*=\s*", re.IGNORECASE)
_LOGIN = re.compile(r"^([a-z][a-z0-9+.-]*://)?.*@", re.IGNORECASE | re.DOTALL)


def is_secret(name: str) -> bool:
    """Return whether the value of an option of this name must not be shown."""
    return _SECRET.search(name) is not None


def without_login(address: str) -> str:
    """Return an address or URL with what stands before its last `@` replaced, except the scheme."""
    return _LOGIN.sub(rf"\1{HIDDEN}@", address)


def secrets_of(*options: Mapping[str, str]) -> frozenset[str]:
    """The values that must not be shown, and what is in quotes inside them (JAAS).

    The name of a user is none: it is a part of topics' and replicas' names, and of what Kafka says.
    """
    values = {text for one in options for name, text in one.items() if is_secret(name) and text}
    quoted = (found for text in values for found in _QUOTED.findall(text))
    return frozenset(values | {part for name, part in quoted if not _USER.fullmatch(name)})
