"""What both engines of `slackwater sql` call the tables, and where a table's last truncate is."""

from streaming.core.model.truncation import Truncation

HUB = "hub_"
"""Before the name of a table of the hub's, so that it cannot be taken for one of the user's."""

NEVER = Truncation(0, -1, "")
"""Of a table that was not truncated."""
