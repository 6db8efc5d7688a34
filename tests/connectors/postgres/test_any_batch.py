"""Whatever a batch holds: each row stands as its last item says, or is refused for a reason."""

from collections.abc import Iterator
from dataclasses import replace

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streaming.core.records.record import Item
from tests.connectors.postgres.apply_site import CREATE_ITEMS, ITEMS, ApplySite, delete, item, made
from tests.harness.examples import CALM, examples

IDS = st.integers(1, 5)
NAMES = st.sampled_from("abcd")
PARTIAL = st.builds(lambda id_: replace(item(id_), after=f'{{"id":"{id_}","price":"1"}}'), IDS)
BATCHES = st.tuples(
    st.lists(PARTIAL, max_size=2),
    st.lists(st.builds(item, IDS, NAMES) | st.builds(delete, IDS), max_size=8),
).map(lambda both: [*both[0], *both[1]])
BEFORE = st.dictionaries(IDS, NAMES).filter(lambda rows: len({*rows.values()}) == len(rows))
ROWS = dict[str, str | None]


@pytest.fixture(params=["UNIQUE", "UNIQUE DEFERRABLE INITIALLY DEFERRED"])
def site(dsn: str, request: pytest.FixtureRequest) -> Iterator[ApplySite]:
    """A replica whose names are unique."""
    with psycopg.connect(dsn, autocommit=True) as session:
        yield made(dsn, session, [ITEMS], CREATE_ITEMS.replace("UNIQUE", request.param))


SHARED_DATABASE = settings(CALM, suppress_health_check=[HealthCheck.function_scoped_fixture])


@examples(60, share=30, base=SHARED_DATABASE)
@given(before=BEFORE, items=BATCHES)
def test_a_batch_leaves_what_it_says(
    site: ApplySite, before: dict[int, str], items: list[Item]
) -> None:
    """Nothing is refused if all rows can stand together; what is not refused stands."""
    site.write("DELETE FROM items")
    for id_, name in before.items():
        site.write(f"INSERT INTO items VALUES ({id_}, '{name}')")
    wanted = _wanted({str(id_): name for id_, name in before.items()}, items)

    refused = {one.key for one in site.refused(*items)}

    found = {str(id_): name for id_, name, _ in site.rows()}
    names = [name for name in wanted.values() if name is not None]
    if len({*names}) == len(names):
        assert refused == set()
        assert found == wanted
    written = {id_: name for id_, name in wanted.items() if f'{{"id":"{id_}"}}' not in refused}
    assert {id_: found.get(id_) for id_ in written} == written


def _wanted(rows: ROWS, items: list[Item]) -> ROWS:
    """The rows as the hub has them."""
    for one in items:
        id_ = one.key.split('"')[3]
        if one.after is None:
            rows.pop(id_, None)
        elif '"price":"1"' in one.after:
            rows.setdefault(id_, None)
        else:
            rows[id_] = one.after.split('"name":"')[1][0]
    return rows
