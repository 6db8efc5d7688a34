"""The example reads the tables as its page says, with nothing of ours."""

import runpy
from pathlib import Path

from tests.streaming.replay.conftest import History

EXAMPLE = Path(__file__).parents[3] / "examples" / "read_tables.py"


def test_the_tables_are_read_without_spark(history: History) -> None:
    """People open the tables with what they have: the rows, the conflicts and the lag are there."""
    example = runpy.run_path(str(EXAMPLE))

    session = example["connect"](history.state)

    rows = session.sql(example["STANDING_ROWS"]).fetchall()
    assert [(row[0], row[1]) for row in rows] == [
        ("t", '{"k":"i"}'),
        ("t", '{"k":"k"}'),
        ("u", '{"k":"k"}'),
    ]
    conflicts = session.sql(example["CONFLICTS_BY_HOUR"]).fetchall()
    assert sorted(row[1:] for row in conflicts) == [("t", 1), ("u", 1)]
    assert session.sql(example["LAG"]).fetchall() == [("r1", 0), ("r2", 0), ("r3", 0)]
