"""Claims about `sql`: one language over the rows of then, and over what the hub recorded."""

import json
import os
import subprocess
import sys

import pytest

from tests.streaming.replay.conftest import History


def asks(history: History, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a command in a process of its own."""
    command = [sys.executable, "-m", "streaming.cli.main", *arguments]
    named = os.environ | {"SLACKWATER_CONFIG": str(history.folder / "hub.toml")}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=named)


@pytest.mark.more
@pytest.mark.spark
def test_a_query_by_spark_ends_when_its_time_is_over(history: History) -> None:
    """Whoever mistyped a join must not have it run all night on the machine of the hub."""
    endless = "SELECT sum(e1.hub_epoch) FROM " + " CROSS JOIN ".join(
        f"hub_changelog e{number}" for number in range(1, 30)
    )

    answer = asks(history, "sql", endless, "--engine", "spark", "--timeout", "3")

    assert answer.returncode == 2
    assert "the query takes longer than 3 s" in answer.stderr


@pytest.mark.spark
@pytest.mark.parametrize("engine", ["duckdb", pytest.param("spark", marks=pytest.mark.more)])
def test_a_query_sees_everything_as_of_a_moment(history: History, engine: str) -> None:
    """Rows, verdicts and conflicts of one moment fit together, and both engines say the same.

    The command has a process of its own, for it ends its Spark session.
    """
    joined = """
        SELECT t.k, t.v, t._csn, count(c.id) AS conflicts
        FROM t LEFT JOIN hub_conflicts AS c ON c.winner_csn = t._csn
        GROUP BY ALL ORDER BY t.k
    """
    then = history.csn_of("w5")

    asked = ["sql", joined, "--as-of", then, "--json", "--engine", engine]
    answer = asks(history, *asked)

    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["rows"] == [
        {"k": "j", "v": "w5", "_csn": then, "conflicts": 0},
        {"k": "k", "v": "w1", "_csn": history.csn_of("w1"), "conflicts": 1},
    ]
