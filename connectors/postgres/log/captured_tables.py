"""Whether the log still has what a table needs: it is published, whole, and of the form it had.

PostgreSQL tells nobody that a table left the publication, that a column has another type (its
values are rewritten without a message), or that a column that is new has a default.
"""
# ruff: noqa: S608 made of constants

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import orjson

from connectors.agent.contract import StoreLostError
from connectors.postgres.check.table_faults import ACTING_TRIGGERS, acting_fault
from connectors.postgres.log.pgoutput import Relation
from connectors.postgres.names import PUBLICATION
from connectors.postgres.sql import Session
from streaming.core.model.errors import ConfigError, StateError
from streaming.core.model.table import Table
from streaming.core.model.values import json_text

FULL = "f"
"""The replica identity with which the log has the row before."""

ColumnForms = Mapping[str, str]
"""Column -> its type: the oid, and the modifier where another one may rewrite values."""

ColumnPlaces = Mapping[str, int]
"""Column -> its number in the table; one that is dropped and made again has another."""

_QUERY = f"""SELECT c.oid::bigint, c.relname, c.relreplident::text,
  (SELECT r.oid::bigint FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid
    WHERE r.prrelid = c.oid AND p.pubname = %s),
  (SELECT json_object_agg(a.attname,
      json_build_array(a.atttypid::bigint, a.atttypmod, a.attnum, a.attgenerated <> ''))
    FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
  {ACTING_TRIGGERS}
FROM pg_class c WHERE c.oid = ANY(%s)"""

_OPERATIONS = """SELECT pubinsert AND pubupdate AND pubdelete AND pubtruncate FROM pg_publication
WHERE pubname = %s"""

_LIMITS = """SELECT r.prrelid::regclass::text FROM pg_publication_rel r
JOIN pg_publication p ON p.oid = r.prpubid
WHERE p.pubname = %s AND (r.prattrs IS NOT NULL OR r.prqual IS NOT NULL)"""

_REWRITING = {1042, 1082, 1083, 1114, 1184, 1186, 1266, 1560, 1700}
"""oids of built-in types whose modifier changes values: bpchar, the times, bit, numeric."""

_VARCHAR = 1043
"""The oid of varchar, whose values lose spaces at their end when it becomes shorter."""

_LISTS_SINCE = 150000
"""The version from which a publication can have lists of columns and filters of rows."""


@dataclass(frozen=True, slots=True)
class CapturedTable:
    """A table as the log has it; `entry`: the oid of its row in the publication, if it is there.

    `acting`: triggers that would fire on what the agent applies. `generated`: columns that nobody
    writes.
    """

    oid: int
    relation: str
    identity: str
    entry: int | None
    columns: ColumnForms
    places: ColumnPlaces
    acting: tuple[str, ...] = ()
    generated: frozenset[str] = frozenset()

    def unreplicated(self, table: Table) -> list[str]:
        """Its columns that hold a value of their own and are not replicated, as table.column."""
        others = self.columns.keys() - table.columns.keys() - self.generated
        return [f"{table.name}.{one}" for one in sorted(others, key=self.places.__getitem__)]

    def known_as(self, table: Table) -> "TableForm":
        """What the agent stores of it."""
        forms = {one: self.columns[one] for one in table.columns}
        places = {one: self.places[one] for one in table.columns}
        return TableForm(self.entry or 0, forms, places)


@dataclass(frozen=True, slots=True)
class TableForm:
    """A table as the agent read it last; `columns`, `places`: of those that were replicated.

    `entry`: of a table that was made again, or left the publication for a time, it is another.
    """

    entry: int
    columns: ColumnForms
    places: ColumnPlaces


GONE = 0
"""The place of a column that is not there any more: one that is back has another."""


def with_gone(
    before: Mapping[str, TableForm], now: Mapping[str, TableForm]
) -> dict[str, TableForm]:
    """The tables as they are stored: with the columns that they had and have no more."""
    found = dict(now)
    for name in now.keys() & before.keys():
        then, one = before[name], now[name]
        gone = {c: form for c, form in then.columns.items() if c not in one.columns}
        if gone and then.entry == one.entry:
            places = {**dict.fromkeys(gone, GONE), **one.places}
            found[name] = TableForm(one.entry, {**gone, **one.columns}, places)
    return found


def form_of(type_oid: int, modifier: int) -> str:
    """The form of a column."""
    has_modifier = type_oid in _REWRITING or type_oid == _VARCHAR
    return f"{type_oid}:{modifier}" if has_modifier else str(type_oid)


def is_rewritten(then: str, now: str) -> bool:
    """Return whether values of a column may have changed when it came from one form to another."""
    if then == now:
        return False
    (oid, _, before), (oid_now, _, after) = then.partition(":"), now.partition(":")
    if not oid == oid_now == str(_VARCHAR):
        return True
    return int(after) >= 0 and not 0 <= int(before) <= int(after)


def forms_of(relation: Relation) -> ColumnForms:
    """The forms of the columns of which the log has values."""
    return {one.name: form_of(one.type_oid, one.modifier) for one in relation.columns}


class OtherFormError(StateError):
    """The log has rows of a table in a form that it had neither when it was read last, nor now."""

    def __init__(self, text: str, table: str, logged: ColumnForms) -> None:
        """`logged`: the form of these rows."""
        super().__init__(text)
        self.table, self.logged = table, logged


def changed_columns(then: ColumnForms, logged: ColumnForms) -> list[str]:
    """The columns that the log does not have, or in another form, but for a longer or shorter one.

    A varchar may have become longer since; whether it became shorter is asked of the table.
    """
    return sorted(
        column
        for column, form in then.items()
        if (found := logged.get(column)) is None
        or (is_rewritten(form, found) and is_rewritten(found, form))
    )


def read_captured(session: Session, oids: Iterable[int]) -> dict[int, CapturedTable]:
    """The tables of these oids that are there; StateError: the publication lacks operations."""
    (is_whole,) = session.execute(_OPERATIONS, (PUBLICATION,)).fetchone() or (True,)
    limited = None
    if session.info.server_version >= _LISTS_SINCE:
        limited = session.execute(_LIMITS, (PUBLICATION,)).fetchone()
    if not is_whole or limited:
        what = (
            f"a list of columns or a filter for {limited[0]}" if limited else "not all operations"
        )
        raise StateError(
            f"publication {PUBLICATION} has {what}, so the log lacks changes: drop it and make it"
            " again as it was, then start the agent again, which tells the rows of all tables"
        )
    rows = session.execute(_QUERY, (PUBLICATION, list(oids))).fetchall()
    return {
        oid: CapturedTable(
            oid,
            name,
            identity,
            entry,
            {column: form_of(*form[:2]) for column, form in (columns or {}).items()},
            {column: form[2] for column, form in (columns or {}).items()},
            tuple(acting),
            frozenset(column for column, form in (columns or {}).items() if form[3]),
        )
        for oid, name, identity, entry, columns, acting in rows
    }


def check_captured(
    table: Table, relation: str, then: TableForm | None, found: CapturedTable | None
) -> None:
    """Raise if the log does not have all changes of a table as the agent reads them.

    `relation`, `then`: the table when the agent started; None: it starts. StateError: start it
    again when that is done which the text says. ConfigError: the configuration must follow.
    StoreLostError: the agent opens the database anew, and goes on without these columns.
    """
    name = table.name
    if found is None or found.entry is None:
        raise StateError(
            f"table {name} is not in publication {PUBLICATION}: it was dropped and made again, or"
            f" taken out. ALTER TABLE {name} REPLICA IDENTITY FULL; ALTER PUBLICATION"
            f" {PUBLICATION} ADD TABLE {name}; then start the agent again, which tells its rows"
        )
    if found.relation != relation:
        raise ConfigError(
            f"table {name} is named {found.relation} now: name it back, or configure the new name"
        )
    gone = [column for column in table.columns if column not in found.columns]
    if set(gone) & {*table.key}:
        raise ConfigError(
            f"table {name} has no column {', '.join(gone)} any more: it was dropped or renamed,"
            " and the rows of other replicas are found by it; name it back"
        )
    if gone:
        raise StoreLostError(
            f"table {name} has no column {', '.join(gone)} any more: it was dropped or renamed;"
            " take it out of the configuration, or name it there as it is now"
        )
    if then is not None:
        _check_same(table, then, found)
    if found.identity != FULL:
        raise StateError(
            f"the log no longer has the rows of table {name} as they were before a change: ALTER"
            f" TABLE {name} REPLICA IDENTITY FULL; then start the agent again"
        )
    if found.acting:
        fault = acting_fault(name, found.acting[0])
        raise StateError(f"table {name} {fault}; then start the agent again")


def _check_same(table: Table, then: TableForm, found: CapturedTable) -> None:
    """StateError: rows were changed without a word in the log."""
    if then.entry != found.entry:
        raise StateError(
            f"table {table.name} was out of publication {PUBLICATION} for a time, and the log has"
            " no word of what was written then: start the agent again, which tells the rows of the"
            " table"
        )
    other = [c for c in table.columns if is_rewritten(then.columns[c], found.columns[c])]
    if other:
        raise StateError(
            f"column {', '.join(other)} of table {table.name} has another type now, so its values"
            " may have been rewritten without a word in the log: if the configuration has another"
            " type for it, correct that; then start the agent again, which tells the rows of the"
            " table"
        )
    again = [one for one in table.columns if then.places[one] != found.places[one]]
    if again:
        raise StateError(
            f"column {', '.join(again)} of table {table.name} was dropped and made again, and the"
            " log has no word of what is in it now: start the agent again, which tells the rows of"
            " the table"
        )


def to_tell(
    known: Mapping[str, TableForm], tables: Mapping[str, TableForm]
) -> Iterator[tuple[str, str]]:
    """The tables whose rows must be told again, and why: what the log has not of them."""
    for name, now in tables.items():
        before = known.get(name)
        if before is None:
            yield name, "it was not replicated"
        elif before.entry != now.entry:
            yield name, "it was made again, or out of the publication for a time"
        else:
            names = [column for column in now.columns if column not in before.columns]
            if names:
                yield name, f"column {', '.join(names)} was not replicated"
            other = [
                c
                for c, form in now.columns.items()
                if is_rewritten(before.columns.get(c, form), form)
            ]
            if other and not names:
                yield name, f"column {', '.join(other)} had another type"
            places = [
                c
                for c, place in now.places.items()
                if place != GONE and before.places.get(c, place) != place
            ]
            if places and not (names or other):
                yield name, f"column {', '.join(places)} was dropped and made again"


def read_known(session: Session) -> dict[str, TableForm]:
    """The tables as they were stored, by their names; empty: nothing was read yet."""
    rows = session.execute('SELECT "table", oid, columns FROM slackwater.captured').fetchall()
    return {name: _known(entry, orjson.loads(columns)) for name, entry, columns in rows}


def _known(entry: int, columns: Mapping[str, tuple[str, int]]) -> TableForm:
    forms = {name: form for name, (form, _) in columns.items()}
    return TableForm(entry, forms, {name: place for name, (_, place) in columns.items()})


def read_logged(session: Session) -> dict[str, list[ColumnForms]]:
    """Table -> the other forms of which the log may have rows."""
    found = dict[str, list[ColumnForms]]()
    for name, columns in session.execute('SELECT "table", columns FROM slackwater.logged'):
        found.setdefault(name, []).append(orjson.loads(columns))
    return found


def note_logged(session: Session, table: str, columns: ColumnForms, *, is_told: bool) -> None:
    """Note that the log may have rows in this form; unless `is_told`, they must be told again."""
    session.execute(
        'INSERT INTO slackwater.logged ("table", columns, is_told) VALUES (%s, %s, %s)'
        ' ON CONFLICT ("table", columns) DO UPDATE SET is_told = EXCLUDED.is_told',
        (table, json_text(dict(sorted(columns.items()))), is_told),
    )


def note_told(session: Session, table: str, then: TableForm | None) -> None:
    """Note that the rows of a table are told again; `then`: as it was, which the log may have."""
    if then is not None:
        there = {c: form for c, form in then.columns.items() if then.places[c] != GONE}
        note_logged(session, table, there, is_told=True)
    session.execute('UPDATE slackwater.logged SET is_told = true WHERE "table" = %s', (table,))


def untold(session: Session) -> list[str]:
    """The tables whose rows must be told again, for what the log has is not what they were."""
    query = 'SELECT DISTINCT "table" FROM slackwater.logged WHERE NOT is_told ORDER BY 1'
    return [row[0] for row in session.execute(query)]


def write_known(session: Session, tables: Mapping[str, TableForm]) -> None:
    """Store these tables, and no others."""
    session.execute("DELETE FROM slackwater.captured")
    for name, one in tables.items():
        session.execute(
            'INSERT INTO slackwater.captured ("table", oid, columns) VALUES (%s, %s, %s)',
            (name, one.entry, json_text({c: [f, one.places[c]] for c, f in one.columns.items()})),
        )
