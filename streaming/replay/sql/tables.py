"""What both engines of `slackwater sql` call the tables, and where a table's last truncate is."""

from checkpoints.tables import TableName
from streaming.core.model.truncation import Truncation

HUB = "hub_"
"""Before the name of a table of the hub's, so that it cannot be taken for one of the user's."""

VIEWS = ("conflicts_by_hour", "lag_by_hour")
"""The views over them, without HUB."""

HUB_NAMES = frozenset(f"{HUB}{name}" for name in (*TableName, *VIEWS))
"""All that is the hub's."""

NEVER = Truncation(0, -1, "")
"""Of a table that was not truncated."""
