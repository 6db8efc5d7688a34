"""Names of tables under which a hub works, and an agent or a command does not."""

from collections.abc import Iterator, Sequence

from connectors.database_kinds import KINDS
from connectors.databases import kind_of
from streaming.replay.sql.tables import HUB_NAMES

_OF_HUB = (
    "in `slackwater sql` the hub has a table of this name, which cannot be read together with this"
    " one; give the table another name"
)


def name_warnings(names: Sequence[str]) -> Iterator[str]:
    """One sentence for each table that should be named otherwise; only warnings: a hub starts."""
    found = [warning for scheme in KINDS for warning in kind_of(scheme).name_warnings(names)]
    found += [(place, _OF_HUB) for place, name in enumerate(names) if name.lower() in HUB_NAMES]
    for place, why in sorted(found):
        yield f"tables[{place}].name = {names[place]!r}: {why}"
