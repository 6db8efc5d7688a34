"""The PostgreSQL servers of a demonstration: in its folder, on loopback, ended with it.

A server refuses to run as root, and is then run by the user `postgres`. Whoever is on the machine
reaches its port, and its superuser may run programs, so it has a password.
"""

import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from connectors.agent.attaching import ReplicaPlace
from connectors.databases import kind_of, parse_dsn
from streaming.core.model.errors import ConfigError
from streaming.core.model.table import Table
from streaming.demo.databases.programs import program
from streaming.demo.folder import REPLICAS, DemoFolder, place_of
from streaming.demo.monitor import DemoError, PartMonitor, tail
from streaming.demo.parts import ProcessPart
from streaming.http.server import free_port

SERVERS = ("berlin", "lisbon")
"""The replicas that are servers."""
USER = "postgres"
"""Who runs a server of root's, and the superuser in it."""
START_S = 120.0
HOST = "127.0.0.1"

SETTINGS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "wal_level": "logical",
    "shared_buffers": "16MB",
}

CREATE = (
    """CREATE TABLE account (
  id bigint PRIMARY KEY,
  owner text NOT NULL,
  balance numeric NOT NULL,
  active boolean NOT NULL,
  opened timestamptz NOT NULL,
  note text
)""",
    """CREATE TABLE stock (
  warehouse text,
  item integer,
  quantity bigint NOT NULL,
  weight double precision,
  label bytea,
  counted timestamptz,
  PRIMARY KEY (warehouse, item)
)""",
)
"""The user's tables, as each server has them."""


def make_servers(folder: DemoFolder) -> None:
    """Make the data of each server, and their one password."""
    password = secrets.token_urlsafe(24)
    folder.passwords.touch(mode=0o600)
    folder.passwords.write_text(f"{HOST}:*:*:{USER}:{password}\n", encoding="utf-8")
    for name in folder.servers:
        _make(folder.server(name), password)


def start_servers(folder: DemoFolder, monitor: PartMonitor, ends: ExitStack) -> None:
    """Start each on a free port, and wait until it serves; `ends`: ends them."""
    if not folder.servers:
        return
    os.environ["PGPASSFILE"] = str(folder.passwords.absolute())  # noqa: TID251  # for its parts too
    parts = [_start(folder, name, monitor, ends) for name in folder.servers]
    for name, part in zip(folder.servers, parts, strict=True):
        monitor.wait(
            lambda: _serves(folder, name),  # noqa: B023  # it is called in this round alone
            START_S,
            lambda: f"{part.name} does not serve; {part.log} ends with:\n{tail(part.log)}",  # noqa: B023
        )


def attach_servers(folder: DemoFolder, tables: Mapping[str, Table]) -> None:
    """Make the user's tables and attach each database, as `slackwater attach` does.

    From then on the log is kept for the verdict.
    """
    if not folder.servers:
        return
    from connectors.postgres.connection import connected  # noqa: PLC0415  # it needs the driver
    from streaming.demo.databases import second_reader  # noqa: PLC0415  # as above

    for place, name in enumerate(folder.servers, 1):
        address = place_of(folder, name)
        with connected(address) as session:
            for statement in CREATE:
                session.execute(statement.encode())
        key = ReplicaPlace(name, REPLICAS[name], place, len(REPLICAS))
        database = parse_dsn(address)
        kind = kind_of(database.scheme)
        kind.attach(database.place, key, tuple(tables.values()), rows_are_shared=False)
        with connected(address) as session:
            second_reader.keep(session)


def _make(place: Path, password: str) -> None:
    """The data of a server, by the user who runs it."""
    owner = _own(place)
    given = place / "password"
    given.touch(mode=0o600)
    given.write_text(password, encoding="utf-8")
    if owner is not None:
        shutil.chown(given, owner)
    command = [str(program("initdb")), "-D", str(place / "data"), "-U", USER, "-A", "scram-sha-256"]
    command += ["--pwfile", str(given), "--encoding=UTF8", "--no-locale", "--no-sync"]
    done = subprocess.run(
        command,
        cwd=place,
        capture_output=True,
        encoding="utf-8",
        check=False,
        start_new_session=True,
        user=owner,
        group=owner,
        extra_groups=None if owner is None else (),
    )
    given.unlink()
    if done.returncode:
        raise DemoError(f"initdb ended with exit code {done.returncode}: {done.stderr.strip()}")


def _own(place: Path) -> str | None:
    """Let the user who runs the server have its folder; None: it is the one who asks.

    ConfigError: that user cannot enter a folder above it.
    """
    if os.geteuid() != 0:
        return None
    for folder in (place.parent.parent, place.parent):
        folder.chmod(folder.stat().st_mode | 0o011)
    try:
        for one in (place, *place.rglob("*")):
            shutil.chown(one, USER, USER)
    except LookupError as error:
        raise ConfigError(
            f"root cannot run a PostgreSQL server, and there is no user {USER}: make one, or run"
            " the demonstration as an ordinary user"
        ) from error
    can = subprocess.run(
        ["/usr/bin/test", "-x", place], check=False, user=USER, group=USER, extra_groups=()
    )
    if can.returncode:
        raise ConfigError(
            f"root cannot run a PostgreSQL server, and the user {USER}, who runs it, cannot enter"
            f" {place}: name a folder with --keep that everybody may enter, or run the"
            " demonstration as an ordinary user"
        )
    return USER


def _start(folder: DemoFolder, name: str, monitor: PartMonitor, ends: ExitStack) -> ProcessPart:
    place, port = folder.server(name).absolute(), free_port(HOST, 0)
    owner = _own(place)
    settings = [f"{key}={value}" for key, value in {**SETTINGS, "port": str(port)}.items()]
    command = [str(program("postgres")), "-D", str(place / "data")]
    command += [part for setting in settings for part in ("-c", setting)]
    part = ProcessPart.start(
        f"the PostgreSQL server of {name}",
        command,
        folder.log(f"postgres-{name}"),
        monitor,
        os.environ,  # noqa: TID251  # what it has is inherited
        user=owner,
        within=place,
        ends_by=signal.SIGINT,  # it waits for no client
    )
    ends.callback(part.end)
    address = f"postgresql://{USER}@{HOST}:{port}/{USER}"
    folder.address(name).write_text(address, encoding="utf-8")
    return part


def _serves(folder: DemoFolder, name: str) -> bool:
    import psycopg  # noqa: PLC0415  # who shows no PostgreSQL needs no driver

    try:
        psycopg.connect(place_of(folder, name), connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True
