"""The position that is stored in a replica's database with its rows."""

from connectors.postgres.connection import connected
from connectors.postgres.install.attachment import attached
from connectors.postgres.install.system import read_position
from streaming.core.delivery.consumer import Position


def position_of(dsn: str) -> tuple[int, Position]:
    """The rid and the position of the replica in a database; StateError: it is none."""
    with connected(dsn) as session:
        attached(session)
        stored = read_position(session)
        return stored.rid, stored.position
