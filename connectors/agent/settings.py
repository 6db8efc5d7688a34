"""An agent's settings: one JSON document, so that no secret is on a command line."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

from connectors import wire
from connectors.log_format import LogFormat
from streaming.core.access.port_access import EVERYBODY, FILES, LOOPBACK, PortAccess
from streaming.core.model.csn import MAX_SKEW_S
from streaming.core.model.errors import ConfigError, WireError
from streaming.core.model.table import ColumnType, Table
from streaming.core.model.values import json_text
from streaming.core.records.record import RECORD_BYTES


class DatabaseAddress(NamedTuple):
    """Where a database is: the scheme of its DSN, and what stands behind it."""

    scheme: str
    place: str

    def __str__(self) -> str:
        return f"{self.scheme}:{self.place}"

    @property
    def shown(self) -> str:
        """The path of a file, or the whole address of a server, for people."""
        return str(self) if self.place.startswith("//") else self.place


@dataclass(frozen=True, slots=True)
class PacketSettings:
    """How a replica that Kafka does not reach exchanges packets with the hub.

    `folder`: where packets are written and looked for. `every_s`: how often what is new is
    exported. `outbox`: the file of its outbox; None: in the folder. `again`: what the hub is not
    known to have is exported again at the start, because a packet was lost.
    """

    folder: str
    every_s: float = 10.0
    outbox: str | None = None
    again: bool = False

    def existing_folder(self) -> Path:
        """The folder; ConfigError if there is none."""
        folder = Path(self.folder)
        if not folder.is_dir():
            raise ConfigError(f"{folder} is no folder for packets: create it, or name another")
        return folder

    def outbox_file(self, replica: str) -> Path:
        """Where the outbox is."""
        return Path(self.outbox or Path(self.folder) / f"{replica}.outbox")


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """One replica: its database, its two topics, how to reach Kafka, and its tables.

    `updates_topic` None: no agreement sends to it. `options` are plain Kafka client names.
    `rows_are_shared`: rows that were there before are the same at every replica; `takes_snapshot`:
    all rows are published, whoever wrote them. `skew_s`: how far a CSN may be ahead of its record's
    time before the hub refuses it. `journal_rows`: how many published rows the journal keeps.
    `log_format`, `log_level`: of its log, on standard error. `metrics_port`: where its metrics are
    served at `metrics_host`, to whom `metrics_access` admits; 0: nowhere. `load`: the import path
    of a function that registers on a connection what the database's schema needs. `packets`: its
    topics are packets in a folder, and Kafka is not asked; None: they are in Kafka. `agreement`:
    what sends to it; None: nothing does, or nobody says.
    """

    database: DatabaseAddress
    replica: str
    rid: int
    bootstrap_servers: str
    changes_topic: str
    updates_topic: str | None
    tables: tuple[Table, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    record_bytes: int = RECORD_BYTES
    rows_are_shared: bool = False
    takes_snapshot: bool = False
    skew_s: int = MAX_SKEW_S
    journal_rows: int = 1_000
    log_format: LogFormat = LogFormat.AUTO
    log_level: str = "info"
    metrics_port: int = 0
    metrics_host: str = LOOPBACK
    metrics_access: PortAccess = EVERYBODY
    load: str | None = None
    packets: PacketSettings | None = None
    agreement: str | None = None

    def text(self) -> str:
        """The settings as the document that `parse` reads."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        tables = [
            {"name": table.name, "key": table.key, "columns": dict(table.columns)}
            for table in self.tables
        ]
        values |= {"database": str(self.database), "tables": tables}
        values |= {"options": dict(self.options), "metrics_access": self._access()}
        values |= {"packets": None if self.packets is None else asdict(self.packets)}
        return json_text(values)

    def _access(self) -> dict[str, Any]:
        """What is set of who may read its metrics; nothing where there are none."""
        access = self.metrics_access if self.metrics_port else PortAccess()
        texts = {"token": access.token, **{name: getattr(access, name) for name in FILES}}
        found = {name: str(value) for name, value in texts.items() if value is not None}
        return {**found, "names": access.names} if access.names else found


def parse(text: str) -> AgentSettings:
    """Settings from their document; ConfigError names the mistake, without showing a value."""
    try:
        values: dict[str, Any] = wire.loads(text)
        tables = tuple(_table(table) for table in values.pop("tables"))
        log_format = LogFormat(values.pop("log_format", LogFormat.AUTO))
        database = _address(values.pop("database"))
        values["metrics_access"] = _access(values.pop("metrics_access", {}))
        packets = values.pop("packets", None)
        values["packets"] = None if packets is None else PacketSettings(**packets)
        return AgentSettings(database=database, tables=tables, log_format=log_format, **values)
    except WireError as error:
        raise ConfigError(f"the agent's settings are {error}") from error
    except KeyError as error:
        raise ConfigError(f"the agent's settings lack {error}: add it") from error
    except (AttributeError, TypeError, ValueError) as error:
        raise ConfigError(f"the agent's settings are not of the right form: {error}") from error


def _access(values: Mapping[str, Any]) -> PortAccess:
    files = {name: Path(values[name]) for name in FILES if name in values}
    return PortAccess(values.get("token"), **files, names=tuple(values.get("names", ())))


def _address(text: str) -> DatabaseAddress:
    """A DSN, or a place alone: whoever starts a connector's own program need not name its kind."""
    scheme, colon, place = text.partition(":")
    return (
        DatabaseAddress(scheme, place) if colon and scheme.isalpha() else DatabaseAddress("", text)
    )


def _table(values: Mapping[str, Any]) -> Table:
    columns = {name: ColumnType(kind) for name, kind in values["columns"].items()}
    key = tuple(values["key"])
    unknown = [name for name in key if name not in columns]
    if unknown or not key:
        raise ValueError(f"table {values['name']}: its key must be some of its columns")
    return Table(values["name"], key, columns)
