"""What is sent in place of a column's value: one way, so the value cannot be told from it."""

import base64
import hashlib
import hmac
from dataclasses import dataclass, field

from streaming.core.model.errors import ConfigError
from streaming.core.model.foreign_json import loads
from streaming.core.model.table import ColumnType

NULL = "null"
"""A null, as JSON has it."""

KEY_CHARACTERS = 16
"""So many characters the key of hashes has at least."""


@dataclass(frozen=True, slots=True)
class ConstantMask:
    """The same value in every row; `text`: as the wire writes it."""

    text: str

    def of(self, value: str) -> str:
        """Return what is sent in place of a value, both as the wire writes them."""
        del value
        return self.text


@dataclass(frozen=True, slots=True)
class HashMask:
    """The HMAC-SHA256 of the value, in the column's type: 64 hex digits as text, or 32 bytes.

    Equal values have equal hashes in every table, so masked rows can be joined and counted. A null
    stays null. `key`: without one nothing is sent; it tells no mask from another.
    """

    kind: ColumnType
    key: str | None = field(default=None, repr=False, compare=False)

    def of(self, value: str) -> str:
        """Return what is sent in place of a value, both as the wire writes them."""
        if value == NULL:
            return value
        if not self.key or len(self.key) < KEY_CHARACTERS:
            raise ConfigError(no_key(self.key))
        plain = loads(value)
        if self.kind is ColumnType.BYTES:
            digest = hmac.digest(self.key.encode(), base64.b64decode(plain), hashlib.sha256)
            return f'"{base64.b64encode(digest).decode()}"'
        text = plain.encode(errors="surrogatepass")
        return f'"{hmac.digest(self.key.encode(), text, hashlib.sha256).hex()}"'


ColumnMask = ConstantMask | HashMask


def no_key(key: str | None) -> str:
    """Why nothing can be hashed with this key."""
    found = f"{len(key)} characters, {KEY_CHARACTERS} are needed" if key else "it is not set"
    return (
        f"masking.hash_secret, the key of columns that are sent as a hash: {found}; set it through"
        " a secret file or SLACKWATER_MASKING__HASH_SECRET"
    )
