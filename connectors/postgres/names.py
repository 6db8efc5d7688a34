"""The names of what the agent has in a server: slots and origins are of the whole server."""

import hashlib
import re

MAX_BYTES = 63
"""The longest name that PostgreSQL keeps whole, but of an origin, which may be longer."""

AGENT = "slackwater"
"""With this begins what the agent has in a server."""

PUBLICATION = "slackwater"
"""The name of the publication, which is of one database."""

_PLAIN = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)*", re.ASCII)


def server_name(database: str, replica: str) -> str:
    """The name of the slot, and of the origin, of a replica in a database.

    A slot's name has lower-case letters, digits and underscores only: where the names have others,
    two underscores side by side, or too many, a hash tells them apart.
    """
    whole = f"slackwater__{database}__{replica}"
    if len(whole) <= MAX_BYTES and all(map(_PLAIN.fullmatch, (database, replica))):
        return whole
    digest = hashlib.sha256(f"{database}\0{replica}".encode()).hexdigest()[:12]
    kept = re.sub(r"[^a-z0-9_]", "_", whole.lower(), flags=re.ASCII)[: MAX_BYTES - 13]
    return f"{kept}_{digest}"


def local_origin(server_name_: str) -> str:
    """The name of the origin of writes that stay in the database; of a slot and origin's name."""
    return f"{AGENT}_local{server_name_.removeprefix(AGENT)}"
