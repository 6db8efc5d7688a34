"""Who is compared: the hub, a replica by its name, or a database by its DSN."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from checkpoints.reading.reader import open_state
from connectors.agent.contract import StoreError
from connectors.agent.settings import DatabaseAddress
from connectors.databases import kind_of, parse_dsn
from streaming.compare.repair import RepairSide
from streaming.config.config import Config
from streaming.config.sent_columns import as_sent
from streaming.core.compare.difference import DifferenceKind
from streaming.core.compare.side import OpenTable
from streaming.core.model.column_filter import ColumnFilter
from streaming.core.model.errors import ConfigError, QuestionError, StateError
from streaming.core.model.row_filter import RowFilter
from streaming.core.model.table import Table

HUB = "hub"
"""What names the hub's rows."""


@dataclass(frozen=True, slots=True)
class ComparedSide:
    """A side with its tables; `replica`: its name in the configuration, None: it is none.

    `address`: of its database; None: it is the hub. `rows`, `columns`: which rows of a table it is
    shown, and which columns. `keeps_deleted`: rows that others delete stay there.
    """

    name: str
    replica: str | None
    tables: frozenset[str]
    address: DatabaseAddress | None = None
    rows: Mapping[str, RowFilter] = field(default_factory=dict)
    columns: Mapping[str, ColumnFilter] = field(default_factory=dict)
    keeps_deleted: bool = False


def side_named(config: Config, text: str, databases: Mapping[str, str]) -> ComparedSide:
    """The side that an argument names; `databases`: replica -> its DSN.

    QuestionError: the replica has no DSN here, or the database is of another replica.
    """
    everything = frozenset(config.table_map())
    if text == HUB:
        return ComparedSide(HUB, None, everything)
    known = {one.name: one for one in config.replicas}
    if text not in known:
        return _of_database(config, parse_dsn(text), text)
    if text not in databases:
        raise QuestionError(
            f"where is the database of {text}? Say --database {text}=DSN, such as a file of SQLite"
        )
    found = _of_database(config, parse_dsn(databases[text]), text)
    if found.replica not in (None, text):
        raise QuestionError(
            f"{databases[text]} is the database of {found.replica}, not of {text}: correct"
            " --database"
        )
    return _of_replica(config, text, found.address)


def _of_database(config: Config, address: DatabaseAddress, text: str) -> ComparedSide:
    """The side of a database, which knows itself whose it is; of none it has every table.

    Who may only read the tables need not be allowed to read that.
    """
    try:
        rid, _ = kind_of(address.scheme).position_of(address.place)
    except (StateError, StoreError):
        rid = 0
    name = next((one.name for one in config.replicas if one.rid == rid), None)
    if name is None:
        return ComparedSide(text, None, frozenset(config.table_map()), address)
    return _of_replica(config, name, address)


def tables_of(config: Config, replica: str) -> frozenset[str]:
    """The tables that a replica is sent; without an agreement those that it may write."""
    own = [one for one in config.agreements if one.consumer == replica]
    return config.tables_of(own[0]) if own else config.writes_of(config.replica(replica))


def _of_replica(config: Config, name: str, address: DatabaseAddress | None) -> ComparedSide:
    own = [one for one in config.agreements if one.consumer == name]
    rows = config.row_filters(own[0]) if own else {}
    columns, keeps = config.columns_at(name), bool(own) and not own[0].sends_deletes
    return ComparedSide(name, name, tables_of(config, name), address, rows, columns, keeps)


def tables_between(config: Config, one: ComparedSide, other: ComparedSide) -> dict[str, Table]:
    """Table name -> table, with the columns that both sides have; see `check_filters`."""
    columns = {**one.columns, **other.columns}
    return {name: as_sent(table, columns.get(name)) for name, table in config.table_map().items()}


@dataclass(frozen=True, slots=True)
class ComparedPair:
    """Two sides with the tables that are compared, in the columns that both databases have.

    `lacking`: table -> the columns that are not compared, because a database lacks them.
    """

    first: ComparedSide
    second: ComparedSide
    tables: tuple[Table, ...]
    lacking: Mapping[str, frozenset[str]]

    @property
    def ignored(self) -> DifferenceKind | None:
        """The rows that do not differ: those that an archive alone has."""
        if self.second.keeps_deleted:
            return DifferenceKind.ONLY_SECOND
        return DifferenceKind.ONLY_FIRST if self.first.keeps_deleted else None

    @property
    def archive(self) -> str | None:
        """The name of the side that is an archive."""
        return next((one.name for one in (self.first, self.second) if one.keeps_deleted), None)

    @property
    def lacking_names(self) -> tuple[str, ...]:
        """Those columns, each as table.column."""
        found = [(table.name, self.lacking.get(table.name, ())) for table in self.tables]
        return tuple(f"{name}.{column}" for name, columns in found for column in sorted(columns))


def in_common(
    config: Config, first: ComparedSide, second: ComparedSide, tables: Iterable[Table]
) -> ComparedPair:
    """Both sides without the columns that the database of one of them lacks; see `_lacking`."""
    wanted = tuple(tables)
    lacking = _lacking(config, first, second)
    first, second = (_without(side, wanted, lacking) for side in (first, second))
    sent = tuple(as_sent(table, first.columns.get(table.name)) for table in wanted)
    return ComparedPair(first, second, sent, lacking)


def _lacking(config: Config, *sides: ComparedSide) -> dict[str, frozenset[str]]:
    """Table -> the columns that the database of a side lacks, as its agent said last.

    Without a state nobody knows of any.
    """
    try:
        commit = open_state(config.hub.state).commit
    except StateError:
        return {}
    lacking = commit.state.lacking if commit else {}
    named = {
        name
        for side in sides
        if side.replica is not None
        for name in lacking.get(config.replica(side.replica).rid, ())
    }
    found = {
        name: frozenset(one for one in table.columns if f"{name}.{one}" in named)
        for name, table in config.table_map().items()
    }
    return {name: columns for name, columns in found.items() if columns}


def _without(
    side: ComparedSide, tables: Iterable[Table], lacking: Mapping[str, frozenset[str]]
) -> ComparedSide:
    cut = {
        table.name: replace(
            side.columns.get(table.name, ColumnFilter(frozenset())),
            columns=frozenset(table.columns) - lacking[table.name],
        )
        for table in tables
        if table.name in lacking
    }
    return replace(side, columns={**side.columns, **cut})


def check_filters(one: ComparedSide, other: ComparedSide, tables: Iterable[str]) -> None:
    """QuestionError: two databases are shown different parts of one of these tables."""
    if one.address is None or other.address is None:
        return
    if one.keeps_deleted and other.keeps_deleted:
        raise QuestionError(
            f"{one.name} and {other.name} both keep what others delete: compare each of them with"
            " the hub"
        )
    for table in tables:
        for what, mine, theirs in (
            ("rows", one.rows, other.rows),
            ("columns", one.columns, other.columns),
        ):
            if mine.get(table) != theirs.get(table):
                raise QuestionError(
                    f"{one.name} and {other.name} are shown different {what} of table {table}:"
                    " compare each of them with the hub"
                )


def databases_named(texts: list[str]) -> dict[str, str]:
    """Replica -> its DSN, of options NAME=DSN; ConfigError: one has no name."""
    found = dict[str, str]()
    for text in texts:
        name, sign, dsn = text.partition("=")
        if not (name and sign and dsn):
            raise ConfigError(f"--database {text}: say NAME=DSN, with the name of a replica")
        found[name] = dsn
    return found


def repair_side(config: Config, side: ComparedSide) -> RepairSide:
    """The side as it can be repaired."""
    if side.replica is None:
        return RepairSide(side.name, None, is_hub=side.address is None)
    replica = config.replica(side.replica)
    own = [one for one in config.agreements if one.consumer == side.replica]
    receives = config.tables_of(own[0]) if own else frozenset[str]()
    writes = config.writes_of(replica)
    return RepairSide(side.name, replica.rid, receives=receives, writes=writes)


@contextmanager
def opened_side(
    config: Config, side: ComparedSide, load: str | None, other: ComparedSide
) -> Iterator[OpenTable]:
    """What opens the tables of a side; StateError: it cannot be read.

    `other`: the other side; of the hub only what that is shown is compared.
    """
    if side.address is None:
        from streaming.compare import hub_rows  # noqa: PLC0415  # it imports Spark

        with hub_rows.compared(config, other.rows, other.columns) as tables:
            yield tables
        return
    with kind_of(side.address.scheme).compared(side.address.place, load) as tables:
        yield tables
