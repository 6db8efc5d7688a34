"""The folder of a demonstration: configuration, state, databases and logs."""

import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from streaming.config.closed_services import secrets_of
from streaming.config.config import Config
from streaming.config.sources.load import load
from streaming.core.model.errors import ConfigError

REPLICAS = {"berlin": 1, "lisbon": 2, "oslo": 3}
"""Name -> rid."""

CREATE = (
    """CREATE TABLE account (
  id INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  balance TEXT NOT NULL,
  active INTEGER NOT NULL,
  opened TEXT NOT NULL,
  note TEXT
)""",
    """CREATE TABLE stock (
  warehouse TEXT,
  item INTEGER,
  quantity INTEGER NOT NULL,
  weight REAL,
  label BLOB,
  counted TEXT,
  PRIMARY KEY (warehouse, item)
) WITHOUT ROWID""",
)
"""The user's tables, as each database has them."""

_CONFIG = """\
# The hub of a demonstration. Look at it with: slackwater status --config THIS_FILE

[hub]
state = "state"

[kafka]
bootstrap_servers = "{bootstrap_servers}"

[http]
port = {http_port}

[limits]
# the verdict compares all that was ever written; leave this out for a production hub
journal_rows = 1000000000

[[tables]]
name = "account"
key = ["id"]

[tables.columns]
id = "int64"
owner = "text"
balance = "decimal"
active = "bool"
opened = "timestamp"
note = "text"

[[tables]]
name = "stock"
key = ["warehouse", "item"]

[tables.columns]
warehouse = "text"
item = "int32"
quantity = "int64"
weight = "float64"
label = "bytes"
counted = "timestamp"

[spark]
"spark.driver.memory" = "1g"
# for a run of a minute: quick compilation; leave this out for a production hub
"spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""

_REPLICA = """
[[replicas]]
name = "{name}"
rid = {rid}

[[agreements]]
name = "{name}"
consumer = "{name}"
"""

_COMPARE = """
[agreements.compare]
database = "{database}"
every_s = 5
"""

_BY_PACKETS = """\
packets = "packets/hub"
packet_every_s = 1
"""


@dataclass(frozen=True, slots=True)
class DemoFolder:
    """The places in a demonstration's folder."""

    root: Path

    @property
    def config(self) -> Path:
        """The hub's configuration."""
        return self.root / "hub.toml"

    @property
    def broker(self) -> Path:
        """The broker's data."""
        return self.root / "broker"

    def login(self, user: str) -> Path:
        """The secret files of a user, if the broker is a closed one."""
        return secrets_of(self.broker, user)

    @property
    def timing(self) -> Path:
        """The times that the latencies need besides the journals'."""
        return self.root / "timing.json"

    @property
    def retirement(self) -> Path:
        """What `slackwater retire` said of the replica that died, if one did."""
        return self.root / "retirement.json"

    @property
    def lost_packet(self) -> Path:
        """What is known of the packet that was lost, if one was, and of what was done about it."""
        return self.root / "lost_packet.json"

    @property
    def hub_packets(self) -> Path:
        """Where the hub puts packets for a replica that Kafka does not reach, and finds its own."""
        return self.root / "packets" / "hub"

    def packets(self, replica: str) -> Path:
        """The same at the replica."""
        return self.root / "packets" / replica

    def database(self, replica: str) -> Path:
        """A replica's SQLite file."""
        return self.root / "replicas" / f"{replica}.db"

    def server(self, replica: str) -> Path:
        """The folder of a replica's PostgreSQL server, if it has one."""
        return self.root / "replicas" / f"{replica}.postgres"

    def address(self, replica: str) -> Path:
        """Where that server is: its address is another one at each start."""
        return self.server(replica) / "address"

    @property
    def servers(self) -> tuple[str, ...]:
        """The replicas that are PostgreSQL servers."""
        return tuple(name for name in REPLICAS if self.server(name).exists())

    @property
    def passwords(self) -> Path:
        """The password file of the PostgreSQL servers."""
        return self.root / "replicas" / "pgpass"

    def backup(self, replica: str) -> Path:
        """A backup of a replica's file."""
        return self.root / "replicas" / f"{replica}.backup.db"

    def lost(self, replica: str) -> Path:
        """The file that a replica had before it was restored from its backup."""
        return self.root / "replicas" / f"{replica}.lost.db"

    def back_up(self, replica: str) -> None:
        """Make a backup of a database that is in use."""
        files = self.database(replica), self.backup(replica)
        with closing(sqlite3.connect(files[0])) as source, closing(sqlite3.connect(files[1])) as to:
            source.backup(to)

    def put_back(self, replica: str) -> None:
        """Put the backup in the place of a database that nobody has open."""
        for end in ("", "-wal", "-shm"):
            file = Path(f"{self.database(replica)}{end}")
            if file.exists():
                file.rename(f"{self.lost(replica)}{end}")
        shutil.copy(self.backup(replica), self.database(replica))

    def log(self, part: str) -> Path:
        """A part's log."""
        return self.root / "logs" / f"{part}.log"

    def make(self, servers: Sequence[str] = ()) -> None:
        """Make the folder and the databases; ConfigError if the folder is not empty.

        `servers`: the replicas that are PostgreSQL servers, of which the folders are made.
        """
        if self.root.exists() and (not self.root.is_dir() or any(self.root.iterdir())):
            raise ConfigError(
                f"{self.root} is not empty: a demonstration starts from nothing, name a new folder"
                " (--check verifies the existing one)"
            )
        for folder in (self.root / "replicas", self.root / "logs"):
            folder.mkdir(parents=True)
        for replica in servers:
            self.server(replica).mkdir()
        for replica in REPLICAS.keys() - set(servers):
            with closing(sqlite3.connect(self.database(replica))) as connection:
                for statement in CREATE:
                    connection.execute(statement)

    def configure(
        self, bootstrap_servers: str, http_port: int, by_packets: str | None = None
    ) -> Config:
        """Write the configuration, which the hub and the agents read.

        `by_packets`: the replica that Kafka does not reach, of which the folders are made.
        """
        text = _CONFIG.format(bootstrap_servers=bootstrap_servers, http_port=http_port)
        for name, rid in REPLICAS.items():
            text += _REPLICA.format(name=name, rid=rid)
            text += _BY_PACKETS if name == by_packets else ""
            text += _COMPARE.format(database=self._from_configuration(name))
        if by_packets is not None:
            for folder in (self.hub_packets, self.packets(by_packets)):
                folder.mkdir(parents=True)
        self.config.write_text(text, encoding="utf-8")
        return load(self.config)

    def _from_configuration(self, replica: str) -> str:
        """Where a database is, for the configuration: a server has to run already."""
        if replica in self.servers:
            return self.address(replica).read_text(encoding="utf-8")
        return str(self.database(replica).relative_to(self.root))


def place_of(folder: DemoFolder, replica: str) -> str:
    """What `--database` of a replica's agent names: a file, or the address of a server."""
    address = folder.address(replica)
    if address.exists():
        return address.read_text(encoding="utf-8")
    return str(folder.database(replica))
