"""Names of tables under which a hub works, and an agent or a command does not."""

from collections.abc import Iterator, Sequence

from connectors.sqlite.install.system import PREFIX, SQLITE_PREFIX
from streaming.replay.sql.tables import HUB_NAMES


def name_warnings(names: Sequence[str]) -> Iterator[str]:
    """One sentence for each table that should be named otherwise; only warnings: a hub starts."""
    lower = [name.lower() for name in names]
    for place, name in enumerate(lower):
        about = f"tables[{place}].name = {names[place]!r}"
        if name in lower[:place]:
            other = names[lower.index(name)]
            yield (
                f"{about}: {other!r} differs only in case, which SQLite ignores: the agent of a"
                " SQLite replica refuses both; remove one"
            )
        if name.startswith((PREFIX, SQLITE_PREFIX)):
            yield (
                f"{about}: names with this prefix are reserved: the agent of a SQLite replica"
                " refuses it; give the table another name"
            )
        if name in HUB_NAMES:
            yield (
                f"{about}: in `slackwater sql` the hub has a table of this name, which cannot be"
                " read together with this one; give the table another name"
            )
