"""What was checked of a database, a line for each."""

from collections.abc import Sequence

from connectors.agent.found import CheckedPoint
from streaming.terminal.output import write_sentence


def write_points(points: Sequence[CheckedPoint], mark: str = "") -> None:
    """A line for each behind the mark: that it is in order, or what to do."""
    for one in points:
        kind = "to do" if one.is_in_the_way else "warning"
        subject = "" if one.to_do.startswith(one.what) else f"{one.what}: "
        text = f"{kind}: {subject}{one.to_do}" if one.to_do else f"ok: {one.what}"
        write_sentence(f"{mark}{text}")
