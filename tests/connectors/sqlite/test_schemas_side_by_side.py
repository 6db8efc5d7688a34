"""Schemas of real SQLite files side by side: each difference is named, and nothing else is."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from connectors.sqlite.install.install import install
from connectors.sqlite.schema.document import schema_in
from streaming.core.model.errors import StateError
from streaming.core.model.table import ColumnType, Table
from streaming.core.schema.compare import SchemaComparison, compared
from streaming.core.schema.difference import SchemaDifference
from streaming.core.schema.document import IdSource, SchemaReference, SchemaUnique, schema_of
from streaming.core.schema.limits import condition_of

T = ColumnType
SHOP = Table("shop", ("id",), {"id": T.INT64, "name": T.TEXT, "price": T.DECIMAL})
PLAIN = "CREATE TABLE shop (id INT PRIMARY KEY NOT NULL, name TEXT, price NUMERIC)"
RIDS = {"berlin": 1, "lisbon": 2}


def database(path: Path, ddl: str) -> Path:
    """A file with this schema."""
    with closing(sqlite3.connect(path)) as client:
        client.executescript(ddl)
    return path


def comparison(folder: Path, berlin: str, lisbon: str, table: Table = SHOP) -> SchemaComparison:
    """Two files with these schemas side by side, by their documents as text."""
    schemas = [
        schema_in(database(folder / f"{name}.db", ddl), name, [table])
        for name, ddl in (("berlin", berlin), ("lisbon", lisbon))
    ]
    return compared([schema_of(one.text(), one.replica) for one in schemas], [table], RIDS)


def beside(folder: Path, lisbon: str, berlin: str = "") -> SchemaComparison:
    """A berlin with every column and a lisbon that is not sent the price, which has this schema."""
    schemas = [
        schema_in(database(folder / f"{name}.db", ddl), name, [SHOP])
        for name, ddl in (("berlin", berlin or PLAIN), ("lisbon", lisbon))
    ]
    return compared(schemas, [SHOP], RIDS, {("lisbon", "shop"): frozenset({"price"})})


def instead(old: str, new: str) -> str:
    """The plain schema with something else in it."""
    assert old in PLAIN
    return PLAIN.replace(old, new)


TRIGGER = "CREATE TRIGGER mine BEFORE INSERT ON shop BEGIN SELECT RAISE(IGNORE); END"
MATTERS = {
    "unique": (f"{PLAIN}; CREATE UNIQUE INDEX i ON shop (name)", "UNIQUE (name)"),
    "partial unique": (
        f"{PLAIN}; CREATE UNIQUE INDEX i ON shop (name) WHERE price > 0",
        "UNIQUE (name) WHERE price > 0",
    ),
    "unique expression": (
        f"{PLAIN}; CREATE UNIQUE INDEX i ON shop (lower(name), price)",
        "UNIQUE (lower(name), price)",
    ),
    "check": (instead("name TEXT", "name TEXT CHECK (name <> '')"), "CHECK (name <> '')"),
    "not null": (instead("name TEXT", "name TEXT NOT NULL"), "column name, NOT NULL"),
    "type": (instead("price NUMERIC", "price TEXT"), "column price, type"),
    "foreign key": (
        instead("name TEXT", "name TEXT REFERENCES names (name)"),
        "FOREIGN KEY (name) REFERENCES names (name)",
    ),
    "trigger": (f"{PLAIN}; {TRIGGER}", "trigger mine"),
    "column beside": (instead("name TEXT", "name TEXT, colour TEXT"), "column colour"),
    "column lacking": (instead(", price NUMERIC", ""), "column price"),
    "table lacking": ("CREATE TABLE other (id)", "table"),
    "key": (instead("INT PRIMARY KEY NOT NULL", "INT NOT NULL"), "key (id)"),
    "unique key by collation": (
        f"{PLAIN}; CREATE UNIQUE INDEX i ON shop (id COLLATE NOCASE)",
        "UNIQUE (id), collation",
    ),
    "key without bytes": (
        instead("INT PRIMARY KEY", "INT COLLATE NOCASE PRIMARY KEY"),
        "key (id)",
    ),
    "generated": (instead("name TEXT", "name TEXT AS (id || 'x')"), "column name, configured as"),
    "type not kept": (instead("name TEXT", "name REAL"), "column name, configured as text"),
    "not null beside": (
        instead("name TEXT", "name TEXT, colour TEXT NOT NULL"),
        "column colour",
    ),
}
NOTES = {
    "default": (instead("name TEXT", "name TEXT DEFAULT 'x'"), "column name, default"),
    "declared": (instead("name TEXT", "name VARCHAR(20)"), "column name, declared type"),
    "collation": (instead("name TEXT", "name TEXT COLLATE NOCASE"), "column name, collation"),
    "ids": (instead("INT PRIMARY KEY", "INTEGER PRIMARY KEY"), "column id, ids"),
    "strict": (f"{instead('NUMERIC', 'ANY')} STRICT", "options"),
    "without rowid": (f"{PLAIN} WITHOUT ROWID", "options"),
    "encoding": (f"PRAGMA encoding = 'UTF-16le'; {PLAIN}", "encoding of text"),
    "generated beside": (
        instead("name TEXT", "name TEXT, upper_name TEXT AS (upper(name))"),
        "column upper_name",
    ),
}


def named(found: SchemaComparison, subject: str) -> SchemaDifference:
    """The difference of this subject."""
    (one,) = (one for one in found.differences if one.subject.startswith(subject))
    return one


@pytest.mark.parametrize(("ddl", "subject"), MATTERS.values(), ids=MATTERS)
def test_what_will_refuse_rows_or_make_them_differ_is_named(
    tmp_path: Path, ddl: str, subject: str
) -> None:
    """Before anything runs, whichever replica has it."""
    found = comparison(tmp_path, PLAIN, ddl)
    (tmp_path / "other").mkdir()
    turned = comparison(tmp_path / "other", ddl, PLAIN)

    for one in (named(found, subject), named(turned, subject)):
        assert one.matters
        assert one.causes
        assert one.remedy
    assert not found.is_good
    assert not turned.is_good


@pytest.mark.parametrize(("ddl", "subject"), NOTES.values(), ids=NOTES)
def test_what_leaves_the_rows_alike_is_only_a_note(tmp_path: Path, ddl: str, subject: str) -> None:
    """A default of its own per site is nothing to set right."""
    found = comparison(tmp_path, PLAIN, ddl)

    assert not named(found, subject).matters
    assert not [one for one in found.differences if one.matters and subject != "options"]


@pytest.mark.parametrize(
    ("berlin", "lisbon"),
    [
        (PLAIN, PLAIN),
        (PLAIN, PLAIN.lower()),
        (PLAIN, PLAIN.replace(" TEXT", "\n  TEXT -- the name's\n ")),
        (f"{PLAIN}; CREATE UNIQUE INDEX a ON shop (name)", instead("TEXT", "TEXT UNIQUE")),
        (
            instead("name TEXT", "name TEXT CHECK (price>0 AND name<>'A b')"),
            instead("name TEXT", "name TEXT check( price > 0 and name <> 'A b' )"),
        ),
        (PLAIN, f"{PLAIN}; CREATE INDEX fast ON shop (name); CREATE TABLE mine (x)"),
        (instead("NOT NULL", ""), instead("PRIMARY KEY NOT NULL", "UNIQUE")),
    ],
    ids=["the same", "case", "spaces", "names", "check", "what is beside", "key"],
)
def test_what_means_the_same_is_no_difference(tmp_path: Path, berlin: str, lisbon: str) -> None:
    """A report of differences that are none is not read."""
    found = comparison(tmp_path, berlin, lisbon)

    assert not found.differences
    assert found.is_good


def test_a_collation_of_a_unique_column_is_named_with_both(tmp_path: Path) -> None:
    """'Ann' and 'ann' are two rows here and one there."""
    nocase = instead("name TEXT", "name TEXT COLLATE nocase UNIQUE")

    one = named(comparison(tmp_path, nocase, instead("TEXT", "TEXT UNIQUE")), "UNIQUE (name)")

    assert one.at == {"berlin": "NOCASE", "lisbon": "by bytes"}
    assert "two rows under the other" in one.text


def test_actions_of_a_reference_and_texts_of_a_trigger_are_compared(tmp_path: Path) -> None:
    """Two of one name may do different things."""
    cascade = instead("name TEXT", "name TEXT REFERENCES names ON DELETE CASCADE")
    other = instead("name TEXT", "name TEXT REFERENCES names ON DELETE SET NULL")

    other_trigger = TRIGGER.replace("SELECT", "SELECT 1; SELECT")

    found = comparison(tmp_path, f"{cascade}; {TRIGGER}", f"{other}; {other_trigger}")

    assert named(found, "FOREIGN KEY (name) REFERENCES names, actions").matters
    assert named(found, "trigger mine").at["berlin"].startswith("BEFORE INSERT, text ")


def test_everything_is_in_the_document(tmp_path: Path) -> None:
    """Names in quotes, expressions and tables without a rowid are read as SQLite reads them."""
    path = database(
        tmp_path / "a.db",
        """
        CREATE TABLE "my ""shop" (
          [key one] TEXT, `b` INTEGER DEFAULT (1 + (2)), -- COLLATE NOCASE, not this
          "c, d" TEXT COLLATE "rtrim" CHECK ("c, d" <> ')' COLLATE NOCASE),
          e TEXT GENERATED ALWAYS AS (upper("c, d")) STORED,
          PRIMARY KEY (`b`, [key one]),
          FOREIGN KEY (`b`, e) REFERENCES other (x, y) ON DELETE CASCADE,
          FOREIGN KEY ("c, d") REFERENCES third
        ) STRICT, WITHOUT ROWID;
        CREATE TRIGGER "before insert" UPDATE OF `b` ON "my ""shop" BEGIN SELECT 1; END;
        """,
    )

    (table,) = schema_in(path, "a", [Table('my "SHOP', ("b",), {})]).tables

    assert [(c.name, c.default, c.generated, c.collation) for c in table.columns] == [
        ("key one", None, None, None),
        ("b", "1 + (2)", None, None),
        ("c, d", None, None, "RTRIM"),
        ("e", None, '(upper("c, d"))', None),
    ]
    assert table.uniques == (SchemaUnique(("b", "key one"), ("", "")),)
    assert [(r.columns, r.table, r.parent, r.on_delete) for r in table.references] == [
        (("b", "e"), "other", ("x", "y"), "CASCADE"),
        (("c, d",), "third", (), "NO ACTION"),
    ]
    assert isinstance(table.references[0], SchemaReference)
    assert table.checks == ("(\"c, d\" <> ')' COLLATE NOCASE)",)
    assert table.triggers[0].event == "BEFORE UPDATE"
    assert table.options == ("STRICT", "WITHOUT ROWID")


@pytest.mark.parametrize(
    ("declared", "source"),
    [
        ("INTEGER PRIMARY KEY", IdSource.LARGEST),
        ("INTEGER PRIMARY KEY AUTOINCREMENT", IdSource.LARGEST_EVER),
        ("INT PRIMARY KEY", None),
        ("INTEGER UNIQUE", None),
    ],
)
def test_who_gives_ids_is_known(tmp_path: Path, declared: str, source: IdSource | None) -> None:
    """Only an INTEGER PRIMARY KEY is the rowid."""
    path = database(tmp_path / "a.db", f"CREATE TABLE shop (id {declared} /* AUTOINCREMENT */)")

    (table,) = schema_in(path, "a", [SHOP]).tables

    assert table.columns[0].id_source == source


def test_a_replica_in_use_has_the_same_document(tmp_path: Path) -> None:
    """The agent's own triggers are no difference, and nothing is changed by looking."""
    path = database(tmp_path / "a.db", f"{PLAIN}; {TRIGGER}")
    before = schema_in(path, "a", [SHOP])
    with closing(sqlite3.connect(path, isolation_level=None)) as client:
        install(client, 1, [SHOP])

    assert schema_in(path, "a", [SHOP]) == before


def test_a_wrong_path_is_said(tmp_path: Path) -> None:
    """And no file is made."""
    with pytest.raises(StateError, match="there is no database"):
        schema_in(tmp_path / "none.db", "a", [SHOP])
    assert not list(tmp_path.iterdir())


def collides(folder: Path, next_ids: list[str], prepare: list[str]) -> bool:
    """Whether rows get one id twice when both insert at once, again and again."""
    ddl = instead("INT PRIMARY KEY NOT NULL", "INTEGER PRIMARY KEY AUTOINCREMENT")
    paths = [database(folder / f"{n}.db", f"{ddl}; {prepare[n]}") for n in range(2)]
    clients = [sqlite3.connect(path, isolation_level=None) for path in paths]
    try:
        for _ in range(3):
            new = []
            for client, value in zip(clients, next_ids, strict=True):
                new.append(client.execute(f"INSERT INTO shop (id) VALUES ({value})").lastrowid)
            if new[0] == new[1]:
                return True
            for client, theirs in zip(clients, reversed(new), strict=True):
                client.execute("INSERT INTO shop (id) VALUES (?)", (theirs,))
    finally:
        for client in clients:
            client.close()
    return False


def test_the_printed_steps_keep_ids_apart_and_a_sequence_does_not(tmp_path: Path) -> None:
    """A row of a higher range raises the sequence of whoever applies it."""
    rowid = instead("INT PRIMARY KEY NOT NULL", "INTEGER PRIMARY KEY")
    (ids,) = comparison(tmp_path, rowid, rowid).ids
    sequences = [
        f"INSERT INTO sqlite_sequence (name, seq) VALUES ('shop', {one.low})" for one in ids.ranges
    ]
    (tmp_path / "s").mkdir()
    (tmp_path / "r").mkdir()

    assert [(one.replica, one.low) for one in ids.ranges] == [
        ("berlin", 10**12),
        ("lisbon", 2 * 10**12),
    ]
    assert collides(tmp_path / "s", ["NULL", "NULL"], sequences)
    assert not collides(tmp_path / "r", [ids.step(one) for one in ids.ranges], ["", ""])


@pytest.mark.parametrize(("rid", "fits"), [(2, True), (65_000, False)])
def test_ranges_fit_into_the_columns_type(tmp_path: Path, rid: int, fits: bool) -> None:  # noqa: FBT001
    """Beyond 32 bits each insert would be quarantined."""
    table = Table("shop", ("id",), {"id": T.INT32})
    path = database(tmp_path / "a.db", "CREATE TABLE shop (id INTEGER PRIMARY KEY)")

    (ids,) = compared([schema_in(path, "a", [table])], [table], {"a": 1, "b": rid}).ids

    assert bool(ids.ranges) == fits
    assert all(one.high < 2**31 for one in ids.ranges)
    assert ("too narrow" in ids.text) == (not fits)


@pytest.mark.parametrize(
    "berlin",
    [
        PLAIN,
        f"{PLAIN}; CREATE UNIQUE INDEX i ON shop (price)",
        instead("price NUMERIC", "price NUMERIC CHECK (price > 0)"),
        instead("price NUMERIC", "price NUMERIC REFERENCES prices (price)"),
        instead("price NUMERIC", "price NUMERIC NOT NULL"),
    ],
)
@pytest.mark.parametrize(
    "lisbon", [instead(", price NUMERIC", ""), instead("price NUMERIC", "price TEXT DEFAULT 'x'")]
)
def test_a_column_that_is_not_sent_may_be_missing_or_another(
    tmp_path: Path, berlin: str, lisbon: str
) -> None:
    """Whether it was dropped there, or is not there yet."""
    assert beside(tmp_path, lisbon, berlin).is_good


def test_a_column_that_is_not_sent_must_not_need_a_value(tmp_path: Path) -> None:
    """No row of another replica could be stored, whatever is sent of it."""
    (one,) = beside(tmp_path, instead("price NUMERIC", "price NUMERIC NOT NULL")).differences

    assert one.matters
    assert one.causes.startswith("it is NOT NULL without a default at lisbon and not sent there")


def test_who_inserts_without_a_column_is_told_where_it_is_needed(tmp_path: Path) -> None:
    """Such rows are refused there, if there are any."""
    needs = instead("price NUMERIC", "price NUMERIC NOT NULL")

    (one,) = beside(tmp_path, instead(", price NUMERIC", ""), needs).differences

    assert not one.matters
    assert "a row that is inserted at the former is refused there" in one.causes


@pytest.mark.parametrize(
    ("limit", "fitting", "others"),
    [
        ("character varying(3)", ["", "äöü", None], ["four", "äöüß"]),
        ("numeric(6,2)", ["9999.99", "-0.1", "7", None], ["10000", "0.001", "-10000.5"]),
        ("numeric(15,2)", ["9999999999999.99", "1234567890123.45"], ["1e13", "123456789012.345"]),
    ],
)
@pytest.mark.parametrize("kind", ["TEXT", "NUMERIC", ""])
def test_a_condition_refuses_what_the_limit_of_another_database_refuses(
    limit: str, fitting: list[str | None], others: list[str], kind: str
) -> None:
    """It is the remedy that a file is told, whichever affinity its column has."""
    with closing(sqlite3.connect(":memory:")) as client:
        client.execute(f"CREATE TABLE t (v {kind} CHECK ({condition_of('v', limit)}))")
        for value in fitting:
            client.execute("INSERT INTO t VALUES (?)", (value,))

        for value in others:
            with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
                client.execute("INSERT INTO t VALUES (?)", (value,))
