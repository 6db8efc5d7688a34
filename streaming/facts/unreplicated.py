"""The columns that stay in one database: its tables have them, and the configuration does not."""

from checkpoints.reader import Reader
from connectors import wire
from streaming.config.config import Config
from streaming.core.model.record import Hello


def unreplicated_columns(config: Config, reader: Reader) -> dict[str, tuple[str, ...]]:
    """Replica -> its columns, each as table.column, as its last hello named them."""
    hellos = reader.hellos()
    names = {one.name: _named(hellos.get(one.rid)) for one in config.replicas}
    return {replica: columns for replica, columns in names.items() if columns}


def unreplicated_warnings(columns: dict[str, tuple[str, ...]]) -> list[str]:
    """A sentence for each of these columns."""
    return [
        f"warning: {replica}: column {name} is not replicated, because it is not configured"
        for replica, names in columns.items()
        for name in names
    ]


def _named(value: str | None) -> tuple[str, ...]:
    if value is None:
        return ()
    _, hello = wire.decode(value.encode())
    return (hello.unreplicated or ()) if isinstance(hello, Hello) else ()
