"""The columns that stay in one database: its tables have them, and the configuration does not."""

from checkpoints.reading.reader import Reader
from streaming.config.config import Config
from streaming.core.model.foreign_json import loads


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


def _named(hello: str | None) -> tuple[str, ...]:
    """Those that a hello names; the hub has checked it when it took it."""
    return tuple(loads(hello).get("unreplicated") or ()) if hello else ()
