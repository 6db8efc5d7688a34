"""The database of a replica, as its folder says."""

from collections.abc import Mapping

from streaming.core.model.table import Table
from streaming.demo.databases.contract import ReplicaDatabase
from streaming.demo.databases.sqlite_file import SqliteReplica
from streaming.demo.folder import DemoFolder, place_of


def database_of(
    folder: DemoFolder, name: str, rid: int, tables: Mapping[str, Table]
) -> ReplicaDatabase:
    """A file of SQLite, or the database of a server that runs; only that one needs a driver."""
    if not folder.server(name).exists():
        return SqliteReplica(folder.database(name))
    from streaming.demo.databases.server_database import ServerDatabase  # noqa: PLC0415 as said

    return ServerDatabase(place_of(folder, name), name, rid, tables)
