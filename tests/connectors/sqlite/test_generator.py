"""The rule of CSNs in SQL is core's: the trigger and the model never give different ones."""

import sqlite3
from contextlib import closing

from hypothesis import given
from hypothesis import strategies as st

from connectors.sqlite import sql
from connectors.sqlite.install.system import CAPTURE, CSN_SQL, TABLES, next_csn_sql
from streaming.core.model.csn import MAX_SEQUENCE, MAX_TIME_S, Generator, rid_of, time_of
from tests.connectors.sqlite.sqlite_replica import RID, Replica

SMALL = st.integers(0, 50)
GENERATORS = st.builds(
    Generator,
    st.integers(1, 65_535),
    SMALL,
    st.integers(-1, 2) | st.integers(MAX_SEQUENCE - 2, MAX_SEQUENCE),
)


BEYOND = st.integers(MAX_TIME_S - 100, MAX_TIME_S + 10**10)
CLOCKS = SMALL | BEYOND | st.integers(-(10**10), 0)


@given(GENERATORS, st.lists(CLOCKS, min_size=1, max_size=12))
def test_sql_gives_the_same_csns_as_core(generator: Generator, clocks: list[int]) -> None:
    """Whatever the clock does: stops, jumps ahead, goes back; and when the sequence overflows.

    A clock in 2200 or 1900 for a moment leaves no CSN that is none.
    """
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(TABLES["_slackwater_origin"])
        connection.execute(
            "INSERT INTO _slackwater_origin (id, format, rid, time_s, sequence)"
            " VALUES (1, 1, ?, ?, ?)",
            (generator.rid, generator.time_s, generator.sequence),
        )

        for clock_s in clocks:
            connection.execute(next_csn_sql(str(clock_s)))
            (given_csn,) = connection.execute(
                f"SELECT {CSN_SQL} FROM _slackwater_origin"
            ).fetchone()
            expected, generator = generator.next(clock_s)
            assert given_csn == expected


def test_the_triggers_use_this_rule_with_the_clock_of_the_statement() -> None:
    """The rule that is proven is the one that runs."""
    assert next_csn_sql(sql.NOW_S) in CAPTURE["_slackwater_capture_change"]


def test_a_captured_csn_is_of_the_replica_and_of_now(replica: Replica) -> None:
    """Time and rid stand where every hub looks for them."""
    before = _now(replica.client)
    replica.client.execute("INSERT INTO items (id) VALUES (1)")
    after = _now(replica.client)

    (change,) = replica.changes()
    assert rid_of(change.csn) == RID
    assert before <= time_of(change.csn) <= after


def _now(connection: sqlite3.Connection) -> int:
    (now,) = connection.execute(f"SELECT {sql.NOW_S}").fetchone()
    assert isinstance(now, int)
    return now
