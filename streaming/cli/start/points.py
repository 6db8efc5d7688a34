"""What was checked of a database, a line for each."""

from collections.abc import Sequence

from connectors.agent.found import CheckedPoint
from streaming.terminal.output import write_sentence


def write_points(points: Sequence[CheckedPoint]) -> None:
    """A line for each: that it is in order, or what to do."""
    for one in points:
        if not one.to_do:
            write_sentence(f"ok: {one.what}")
        else:
            write_sentence(
                f"{'to do' if one.is_in_the_way else 'warning'}: {one.what}: {one.to_do}"
            )
