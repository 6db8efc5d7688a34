"""A password comes from the environment or from a file, and is shown nowhere."""

import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from connectors.agent.attaching import ReplicaPlace
from connectors.agent.contract import StoreError
from connectors.agent.settings import AgentSettings, DatabaseAddress
from connectors.databases import DatabaseKind, kind_of
from connectors.postgres.run import open_store
from streaming.core.model.table import ColumnType, Table

KIND: DatabaseKind = kind_of("postgresql")
SECRET = "hunter2-of-nobody"
T = Table("t", ("id",), {"id": ColumnType.INT64})
B = ReplicaPlace("b", 2)


@pytest.fixture
def place(dsn: str) -> Iterator[str]:
    """The address of an attached database, whose server asks for a password."""
    known = conninfo_to_dict(dsn)
    name = known["dbname"]
    with psycopg.connect(dsn, autocommit=True) as client:
        client.execute("CREATE TABLE t (id bigint PRIMARY KEY)")
        client.execute("DROP ROLE IF EXISTS secretive")
        client.execute(f"CREATE ROLE secretive LOGIN SUPERUSER PASSWORD '{SECRET}'".encode())
        (file,) = client.execute("SHOW hba_file").fetchone() or ("",)
        before = Path(file).read_text()
        rule = f"host {name} secretive 127.0.0.1/32 scram-sha-256\n"
        Path(file).write_text(rule + before)
        client.execute("SELECT pg_reload_conf()")
        place = f"//postgres@{known['host']}:{known['port']}/{name}"
        KIND.attach(place, B, [T], rows_are_shared=True)
        yield place.replace("postgres@", "secretive@")
        KIND.uninstall(place, replica="b", discards_unpublished=True, load=None)
        Path(file).write_text(before)
        client.execute("SELECT pg_reload_conf()")


@pytest.mark.parametrize("way", ["PGPASSWORD", "PGPASSFILE", "PGSERVICEFILE"])
def test_each_way_lets_the_agent_in_on_both_its_connections(
    place: str, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One writes, and one reads the log; neither has it in its address."""
    monkeypatch.delenv("PGPASSWORD", raising=False)
    file = tmp_path / "secret"
    file.touch(mode=0o600)
    address = place
    match way:
        case "PGPASSWORD":
            monkeypatch.setenv(way, SECRET)
        case "PGPASSFILE":
            file.write_text(f"*:*:*:secretive:{SECRET}\n")
            monkeypatch.setenv(way, str(file))
        case _:
            file.write_text(f"[shop]\npassword={SECRET}\n")
            monkeypatch.setenv(way, str(file))
            address = f"{place}?service=shop"
    settings = AgentSettings(
        DatabaseAddress("postgresql", address), B.name, B.rid, "nowhere:1", "c", None, (T,)
    )

    with open_store(settings) as store:
        assert store.backlog() == 0

    assert SECRET not in settings.text()
    assert SECRET not in Path(f"/proc/{os.getpid()}/cmdline").read_text()


def test_a_login_that_fails_does_not_show_what_was_tried(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message goes into a log that others read."""
    monkeypatch.setenv("PGPASSWORD", f"not {SECRET}")

    with pytest.raises(StoreError, match="secretive") as caught:
        KIND.position_of(place)

    assert SECRET not in str(caught.value)
