"""A batch of the hub is one transaction of PostgreSQL: rows, position, epoch and answer."""

from collections.abc import Iterator
from dataclasses import replace

import psycopg
import pytest

from connectors.agent.contract import StoreBusyError, StoreError
from connectors.postgres.check.table_faults import check_tables
from connectors.postgres.messages import AppliedMessage
from streaming.core.delivery.consumer import Position
from streaming.core.model.change import Op
from streaming.core.model.errors import ConfigError, StateError
from streaming.core.model.table import ColumnType, Table
from streaming.core.records.record import KEEP, Applied, Item, ItemType, RangeItem
from tests.connectors.postgres.apply_site import (
    CLOCK_S,
    CREATE_ITEMS,
    CSN,
    ITEMS,
    RUV,
    ApplySite,
    delete,
    item,
    made,
    row,
)

TRUNCATE = Item(ItemType.CHANGE, "items", "", Op.TRUNCATE, None, CSN, 2)
MORE = "CREATE TABLE more (id int PRIMARY KEY, a text NOT NULL, b int, extra text NOT NULL)"
MORE_TABLE = Table(
    "more", ("id",), {"id": ColumnType.INT32, "a": ColumnType.TEXT, "b": ColumnType.INT32}
)


@pytest.fixture
def session(dsn: str) -> Iterator[psycopg.Connection]:
    """The agent's connection."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
def site(dsn: str, session: psycopg.Connection) -> ApplySite:
    """A replica of the table `items`."""
    return made(dsn, session, [ITEMS], CREATE_ITEMS)


def of(dsn: str, session: psycopg.Connection, table: Table, *statements: str) -> ApplySite:
    """A replica of another table."""
    return made(dsn, session, [table], *statements)


def test_a_batch_is_applied_with_position_epoch_and_answer(site: ApplySite) -> None:
    """All of it is there for whoever opens the database next."""
    applied = site.apply(item(1, "a", price="1.50"), item(2), delete(2))

    assert site.rows() == [("1", "a", "1.50")]
    assert applied.position == Position("s1", 1, 1, 1, RUV, 1, 1, "a")
    stored = site.stored()
    assert (stored.position, stored.updates_offset, stored.replica_epoch) == (
        *(applied.position, 11),
        2,
    )
    assert site.messages() == [AppliedMessage(Applied(1, 1, 1, RUV, 1), "s1", (CLOCK_S, 5))]


def test_an_applied_csn_that_is_too_far_ahead_is_not_followed(site: ApplySite) -> None:
    """The hub would refuse what this replica writes behind it."""
    far = replace(item(1), csn=f"{CLOCK_S + 10**6:08x}000000020000")

    site.apply(far, item(2))

    assert [one.seen for one in site.messages() if isinstance(one, AppliedMessage)] == [
        (CLOCK_S, 5)
    ]


def test_the_last_item_of_a_row_counts(site: ApplySite) -> None:
    """A statement cannot write a row twice."""
    items = [item(1, "a"), item(2, "b"), item(1, "c"), delete(2), item(2, "d"), item(2, "e")]

    assert site.refused(*items) == ()

    assert site.rows() == [("1", "c", None), ("2", "e", None)]


def test_columns_that_are_absent_stay_as_they_are(site: ApplySite) -> None:
    """Absent is unknown, not null; of two items of a row each writes its own columns."""
    site.write("INSERT INTO items VALUES (1, 'a', 1.50), (2, 'b', 2)")

    site.apply(
        replace(item(1), after='{"id":"1","price":null}'),
        replace(item(2), after='{"id":"2","price":"3"}'),
        replace(item(2), after='{"id":"2","name":"z"}'),
        replace(item(3), after='{"id":"3","name":"c"}'),
    )

    assert site.rows() == [("1", "a", None), ("2", "z", "3"), ("3", "c", None)]


def test_a_row_that_is_there_needs_no_column_that_is_not_replicated(
    dsn: str, session: psycopg.Connection
) -> None:
    """An INSERT with ON CONFLICT would fail at it although the row exists."""
    site = of(dsn, session, MORE_TABLE, MORE, "INSERT INTO more VALUES (1, 'a', 1, 'x')")

    (refused,) = site.refused(
        row("more", '{"id":1}', '{"id":1,"a":"b","b":2}'),
        row("more", '{"id":2}', '{"id":2,"a":"b","b":2}'),
    )

    assert (refused.key, refused.code) == ('{"id":2}', "check")
    assert site.rows("SELECT * FROM more") == [("1", "b", "2", "x")]


def test_unique_values_may_swap_within_a_batch(site: ApplySite) -> None:
    """Each row as the hub has it is a state of all of them."""
    site.write("INSERT INTO items VALUES (1, 'a'), (2, 'b'), (3, 'c')")

    assert site.refused(item(1, "b"), item(2, "c"), item(3, "a")) == ()

    assert [found[:2] for found in site.rows()] == [("1", "b"), ("2", "c"), ("3", "a")]


@pytest.mark.parametrize("index", ["(lower(name))", "(name) WHERE id < 100"])
def test_values_of_any_unique_index_may_swap(
    dsn: str, session: psycopg.Connection, index: str
) -> None:
    """Who is in the way is asked by the expressions and the condition of the index."""
    create = f"CREATE UNIQUE INDEX named ON items {index}"
    site = of(dsn, session, ITEMS, CREATE_ITEMS.replace(" UNIQUE", ""), create)
    site.write("INSERT INTO items VALUES (1, 'a'), (2, 'b'), (9, 'mine')")

    (refused,) = site.refused(item(1, "b"), item(2, "a"), item(3, "mine"))

    assert refused.key == '{"id":"3"}'
    assert [found[:2] for found in site.rows()] == [("1", "b"), ("2", "a"), ("9", "mine")]


def test_a_row_that_a_unique_index_does_not_hold_is_in_nobodys_way(
    dsn: str, session: psycopg.Connection
) -> None:
    """It may have the same value."""
    create = "CREATE UNIQUE INDEX named ON items (name) WHERE id < 100"
    site = of(dsn, session, ITEMS, CREATE_ITEMS.replace(" UNIQUE", ""), create)
    site.write("INSERT INTO items VALUES (1, 'a'), (2, 'b'), (200, 'b')")

    assert site.refused(item(1, "b"), item(2, "a")) == ()


@pytest.mark.parametrize("mode", ["", "DEFERRABLE", "DEFERRABLE INITIALLY DEFERRED"])
def test_an_exclusion_constraint_is_kept(dsn: str, session: psycopg.Connection, mode: str) -> None:
    """What it refuses is tried again behind the others; the role does not switch it off."""
    exclude = f"EXCLUDE USING gist (int4range(b, b + 10) WITH &&) {mode}"
    create = f"CREATE TABLE more (id int PRIMARY KEY, a text, b int, {exclude})"
    site = of(dsn, session, MORE_TABLE, create, "INSERT INTO more VALUES (1, 'a', 1)")

    (refused,) = site.refused(
        row("more", '{"id":2}', '{"id":2,"b":5}'),
        row("more", '{"id":1}', '{"id":1,"b":50}'),
        row("more", '{"id":3}', '{"id":3,"b":55}'),
    )

    assert (refused.key, refused.code) == ('{"id":3}', "other")
    assert site.rows("SELECT * FROM more ORDER BY id") == [("1", "a", "50"), ("2", None, "5")]


def test_a_row_in_the_way_of_which_the_batch_has_nothing_stays(site: ApplySite) -> None:
    """Only rows of the batch move; two that cannot both stand are not both written."""
    site.write("INSERT INTO items VALUES (1, 'a'), (2, 'b'), (3, 'c')")

    refused = site.refused(item(1, "b"), item(2, "c"), item(4, "z"), item(5, "z"))

    assert {one.key for one in refused} == {'{"id":"1"}', '{"id":"2"}', '{"id":"5"}'}
    assert [found[:2] for found in site.rows()] == [
        *(("1", "a"), ("2", "b"), ("3", "c")),
        ("4", "z"),
    ]


def test_columns_that_are_not_replicated_survive_a_swap(
    dsn: str, session: psycopg.Connection
) -> None:
    """A row that was out of the way is put in again whole."""
    create = f"{CREATE_ITEMS[:-1]}, note bytea, made money)"
    site = of(dsn, session, ITEMS, create)
    site.write("INSERT INTO items VALUES (1, 'a', 1, 'x', 5), (2, 'b', 2, 'y', 6)")

    assert site.refused(item(1, "b"), replace(item(2), after='{"id":"2","name":"a"}')) == ()

    query = "SELECT id, name, price, note::text, made FROM items ORDER BY id"
    assert site.rows(query) == [
        ("1", "b", None, "\\x78", "$5.00"),
        ("2", "a", "2", "\\x79", "$6.00"),
    ]


def test_an_item_that_the_database_refuses_holds_up_no_other(site: ApplySite) -> None:
    """It is in the log before the `applied` of its batch; the rest is applied."""
    site.write("INSERT INTO items VALUES (9, 'mine')")

    (refused,) = site.refused(item(1, "a"), item(2, "mine"), item(3, "c"))

    assert (refused.key, refused.code, refused.hub_epoch) == ('{"id":"2"}', "unique", 1)
    assert [found[0] for found in site.rows()] == ["1", "3", "9"]
    assert site.messages()[:1] == [refused]
    assert isinstance(site.messages()[1], AppliedMessage)


def test_a_refused_item_is_tried_again_behind_the_others(site: ApplySite) -> None:
    """What comes later in the batch may have removed the cause."""
    site.write("INSERT INTO items VALUES (9, 'a')")

    assert site.refused(item(1, "a"), item(9, "b")) == ()
    assert site.refused(item(2, "b"), delete(9)) == ()
    assert [found[:2] for found in site.rows()] == [("1", "a"), ("2", "b")]


REFUSALS = """CREATE TABLE hard (
  id int PRIMARY KEY, u int UNIQUE, n int NOT NULL DEFAULT 0, c int CHECK (c < 10), v varchar(3),
  p numeric(6, 2), s smallint, j jsonb, k text, r int4range,
  EXCLUDE USING gist (r WITH &&))"""
HARD = Table(
    "hard",
    ("id",),
    {
        **dict.fromkeys(("id", "u", "n", "c", "s"), ColumnType.INT32),
        "p": ColumnType.DECIMAL,
        **dict.fromkeys(("v", "j", "k", "r"), ColumnType.TEXT),
    },
)


@pytest.mark.parametrize(
    ("image", "code"),
    [
        *(('"u":1', "unique"), ('"n":null', "check"), ('"c":10', "check"), ('"v":"abcd"', "size")),
        *(('"s":40000', "type"), ('"j":"{"', "type"), ('"k":"a\\u0000"', "type")),
        *(('"p":"1.005"', "type"), ('"p":"12345"', "type"), ('"r":"[1,3)"', "other")),
        *(('"u":"1"', "type"), ('"zz":1', "column")),
    ],
)
def test_each_refusal_has_its_code(
    dsn: str, session: psycopg.Connection, image: str, code: str
) -> None:
    """People and the hub act by it."""
    site = of(dsn, session, HARD, REFUSALS, "INSERT INTO hard (id, u, r) VALUES (1, 1, '[1,5)')")

    found = site.refused(
        row("hard", '{"id":2}', f'{{"id":2,{image}}}'), row("hard", '{"id":3}', '{"id":3,"c":5}')
    )

    assert [(one.key, one.code) for one in found] == [('{"id":2}', code)]
    assert [id_ for (id_,) in site.rows("SELECT id FROM hard ORDER BY id")] == ["1", "3"]


SPELLED = """CREATE TABLE "100% spelled" (id uuid PRIMARY KEY, j jsonb, d date, t time,
  at timestamp, a int[], n inet, e "char", x text)"""
SPELLED_TABLE = Table(
    "100% spelled",
    ("id",),
    dict.fromkeys(("id", "j", "d", "t", "at", "a", "n", "e", "x"), ColumnType.TEXT),
)
IDS = [f"00000000-0000-0000-0000-00000000000{place}" for place in "abc"]


@pytest.mark.parametrize(
    "image",
    [
        '"j":"{\\"k\\":1}"',
        '"d":"2024-1-5"',
        '"d":"20240105"',
        '"t":"1:02"',
        '"t":"01:02:03.50"',
        '"at":"2024-01-05T01:02:03"',
        '"a":"{1, 2}"',
        '"n":"10.0.0.1/32"',
        '"e":"two"',
    ],
)
def test_a_value_that_the_server_would_spell_otherwise_is_refused(
    dsn: str, session: psycopg.Connection, image: str
) -> None:
    """Its row would differ from the hub's, and no log would tell of it."""
    site = of(dsn, session, SPELLED_TABLE, SPELLED)
    keys = [f'{{"id":"{one}"}}' for one in IDS]
    bad = row("100% spelled", keys[1], f'{{"id":"{IDS[1]}",{image}}}')
    good = (
        '"j":"{\\"k\\": 1}","d":"2024-01-05","t":"01:02:03.5","at":"2024-01-05 01:02:03",'
        '"a":"{1,2}","n":"10.0.0.1","e":"o","x":"{1, 2}"'
    )

    (refused,) = site.refused(bad, row("100% spelled", keys[2], f'{{"id":"{IDS[2]}",{good}}}'))

    assert (refused.key, refused.code) == (keys[1], "type")
    assert "would hold" in refused.text
    assert site.rows('SELECT id, j::text FROM "100% spelled"') == [(IDS[2], '{"k": 1}')]


def test_a_key_that_the_server_would_spell_otherwise_is_of_no_row(
    dsn: str, session: psycopg.Connection
) -> None:
    """Whoever has both spellings deletes one of them, and the other row stays."""
    site = of(dsn, session, SPELLED_TABLE, SPELLED)
    large = IDS[0].upper()
    keys = [f'{{"id":"{one}"}}' for one in (*IDS[:2], large)]
    site.apply(*(row("100% spelled", one, one) for one in keys[:2]))

    (refused,) = site.refused(row("100% spelled", keys[2], keys[2]))
    site.apply(*(row("100% spelled", one, None) for one in keys[1:]))

    assert refused.key == keys[2]
    assert site.rows('SELECT id FROM "100% spelled"') == [(IDS[0],)]


def test_a_table_that_is_not_configured_is_refused(site: ApplySite) -> None:
    """The configuration of the hub and of the agent differ."""
    (refused,) = site.refused(row("others", '{"id":1}', '{"id":1}'), item(1))

    assert (refused.table, refused.code) == ("others", "other")
    assert len(site.rows()) == 1


def test_what_this_agent_does_not_know_stops_it(site: ApplySite) -> None:
    """What it left out, the replica would lack, and nobody would know."""
    with pytest.raises(StateError, match="upgrade"):
        site.apply(item(1), replace(item(2), op="merge"))

    assert site.rows() == []
    assert site.stored().position.covers == 0


def test_a_batch_waits_for_a_local_transaction(site: ApplySite) -> None:
    """Nothing of it is applied meanwhile, it is said who is in the way, and it succeeds later."""
    with psycopg.connect(site.dsn) as user:
        user.execute("INSERT INTO items (id, name) VALUES (1, 'mine')")
        with pytest.raises(StoreBusyError, match=f"pid {user.info.backend_pid} "):
            site.apply(item(2), item(1, "theirs"))

    assert site.rows() == [("1", "mine", None)]
    assert site.messages() == []
    site.apply(item(2), item(1, "theirs"))
    assert site.rows() == [("1", "theirs", None), ("2", None, None)]


def test_a_batch_does_not_wait_for_ever_for_its_position(site: ApplySite) -> None:
    """An old connection of the agent may still hold it."""
    with psycopg.connect(site.dsn) as old:
        old.execute("SELECT FROM slackwater.position FOR UPDATE")
        with pytest.raises(StoreBusyError):
            site.apply(item(1))

    assert site.refused(item(1)) == ()


def test_another_position_in_the_database_stops_it(site: ApplySite) -> None:
    """Somebody put another database in its place."""
    before = site.stored()
    site.apply(item(1))
    site.write("UPDATE slackwater.position SET replica_epoch = 9")
    again = ApplySite(site.dsn, site.tables, site.session, site.origin)

    with pytest.raises(StateError, match="stored last"):
        again.apply_behind(before, item(2))

    assert len(site.rows()) == 1


def test_a_connection_that_is_lost_leaves_nothing_half_applied(site: ApplySite) -> None:
    """Rows, position and answer commit together or not at all."""
    site.write(
        "CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END'",
        "CREATE TRIGGER dies AFTER INSERT ON items FOR EACH ROW WHEN (NEW.id = 5)"
        " EXECUTE FUNCTION die()",
        "ALTER TABLE items ENABLE ALWAYS TRIGGER dies",
    )

    with pytest.raises(StoreError):
        site.apply(*(item(number) for number in range(10)))

    assert site.rows() == []
    assert site.messages() == []
    assert site.stored().replica_epoch == 1


def test_the_triggers_of_users_do_not_fire(site: ApplySite) -> None:
    """Their effects come from the replica that wrote."""
    site.write(
        "CREATE FUNCTION loud() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN RAISE EXCEPTION ''no''; END'",
        "CREATE TRIGGER loud BEFORE INSERT ON items FOR EACH ROW EXECUTE FUNCTION loud()",
    )

    assert site.refused(item(1)) == ()


def test_a_truncate_deletes_every_row_also_of_a_table_that_others_refer_to(
    site: ApplySite,
) -> None:
    """A TRUNCATE of it fails."""
    site.write(
        "CREATE TABLE child (id int PRIMARY KEY, item bigint REFERENCES items ON DELETE CASCADE)",
        "INSERT INTO items VALUES (1, 'a'), (2, 'b')",
        "INSERT INTO child VALUES (1, 1)",
    )

    assert site.refused(item(3, "c"), TRUNCATE, item(4, "b")) == ()

    assert site.rows() == [("4", "b", None)]
    assert len(site.rows("SELECT * FROM child")) == 1


def test_a_range_deletes_strangers_within_it(site: ApplySite) -> None:
    """Numbers are in a range by their value; a kept row is left alone."""
    site.write("INSERT INTO items (id, name) SELECT n, 'n' || n FROM generate_series(1, 12) n")
    kept = Item(ItemType.KEPT, "items", '{"id":"4"}', KEEP, None, None, 0)
    refresh = replace(item(3, "new"), type=ItemType.REFRESH)

    site.apply(RangeItem("items", '{"id":"2"}', '{"id":"10"}', 2), refresh, kept)

    found = [(number, name) for number, name, _ in site.rows()]
    assert found == [
        ("1", "n1"),
        ("2", "n2"),
        ("3", "new"),
        ("4", "n4"),
        ("11", "n11"),
        ("12", "n12"),
    ]


def test_a_range_of_text_keys_is_by_bytes(dsn: str, session: psycopg.Connection) -> None:
    """The collation of the database may order them otherwise."""
    table = Table(
        "pairs", ("a", "b"), {"a": ColumnType.TEXT, "b": ColumnType.BYTES, "c": ColumnType.TEXT}
    )
    create = 'CREATE TABLE pairs (a text COLLATE "en-x-icu", b bytea, c text, PRIMARY KEY (a, b))'
    site = of(dsn, session, table, create)
    site.write(
        "INSERT INTO pairs VALUES ('B', '\\x01'), ('a', '\\x01'), ('a', '\\xff'), ('b', ''),"
        " ('é', '')"
    )

    site.apply(RangeItem("pairs", '{"a":"B","b":"AQ=="}', '{"a":"a","b":"/w=="}', 0))

    assert site.rows('SELECT a FROM pairs ORDER BY a COLLATE "C"') == [("B",), ("b",), ("é",)]


@pytest.mark.parametrize("mode", ["DEFERRABLE", "DEFERRABLE INITIALLY DEFERRED"])
def test_a_unique_constraint_that_is_deferrable_is_kept(
    dsn: str, session: psycopg.Connection, mode: str
) -> None:
    """The role `replica` does not check it: duplicates would stay."""
    site = of(dsn, session, ITEMS, CREATE_ITEMS.replace("UNIQUE", f"UNIQUE {mode}"))
    site.write("INSERT INTO items VALUES (1, 'a'), (2, 'b'), (9, 'mine')")

    assert site.refused(item(1, "b"), item(2, "a")) == ()
    (refused,) = site.refused(item(3, "mine"), item(4, "d"))

    assert (refused.key, refused.code) == ('{"id":"3"}', "unique")
    assert [found[:2] for found in site.rows()] == [
        *(("1", "b"), ("2", "a"), ("4", "d")),
        ("9", "mine"),
    ]


def test_a_deferrable_constraint_beside_triggers_is_an_error(
    dsn: str, session: psycopg.Connection
) -> None:
    """They would act on the rows of the hub while it is checked."""
    site = of(dsn, session, ITEMS, CREATE_ITEMS.replace("UNIQUE", "UNIQUE DEFERRABLE"))
    site.write("CREATE TABLE child (id int PRIMARY KEY, item bigint REFERENCES items)")

    with pytest.raises(ConfigError, match="NOT DEFERRABLE"):
        check_tables(session, [ITEMS])


def test_an_identity_that_is_always_generated_is_written(
    dsn: str, session: psycopg.Connection
) -> None:
    """No UPDATE can set it, so the row is deleted and inserted again."""
    always = "GENERATED ALWAYS AS IDENTITY"
    site = of(
        *(dsn, session, MORE_TABLE),
        f"CREATE TABLE more (id int {always} PRIMARY KEY, a text, b int)",
        f"CREATE TABLE other (id int PRIMARY KEY, a text, b int {always}, note text)",
    )
    other = replace(MORE_TABLE, name="other")
    site = ApplySite(dsn, [MORE_TABLE, other], session, site.origin)
    site.write("INSERT INTO other OVERRIDING SYSTEM VALUE VALUES (1, 'a', 5, 'note')")

    refused = site.refused(
        row("more", '{"id":7}', '{"id":7,"a":"x","b":1}'),
        row("more", '{"id":7}', '{"id":7,"a":"y","b":1}'),
        row("other", '{"id":1}', '{"id":1,"b":8}'),
        row("other", '{"id":2}', '{"id":2,"b":9}'),
    )

    assert refused == ()
    assert site.rows("SELECT * FROM more") == [("7", "y", "1")]
    assert site.rows("SELECT * FROM other ORDER BY id") == [
        ("1", "a", "8", "note"),
        ("2", None, "9", None),
    ]


def test_names_are_quoted(dsn: str, session: psycopg.Connection) -> None:
    """Also those that mean something to the driver or to SQL."""
    table = Table('a "b" 5%s', ("%",), {"%": ColumnType.INT32, "or'der": ColumnType.TEXT})
    site = of(
        *(dsn, session, table, 'CREATE TABLE "a ""b"" 5%s" ("%" int PRIMARY KEY, "or\'der" text)')
    )

    site.apply(row(table.name, '{"%":1}', '{"%":1,"or\'der":"x"}'))
    site.apply(
        RangeItem(table.name, '{"%":0}', '{"%":5}', 1),
        row(table.name, '{"%":2}', '{"%":2,"or\'der":"y"}'),
    )

    assert site.rows('SELECT * FROM "a ""b"" 5%s"') == [("2", "y")]
