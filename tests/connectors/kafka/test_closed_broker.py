"""The closed broker starts without a secret on a command line."""

from pathlib import Path

import pytest

from connectors.kafka.embedded.broker import BrokerError
from connectors.kafka.embedded.closed_broker import certificate_files, start_closed

PROGRAM = """#!/bin/sh
echo "$@" >> {log}
while [ $# -gt 0 ]; do
  case "$1" in
    -keystore) touch "$2" ;;
    @*) cat "${{1#@}}" >> {read} ;;
  esac
  shift
done
"""
"""Writes down how it was called and what it was given as a file."""


def test_no_secret_is_on_a_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every user of the machine reads those of keytool, of the formatting and of the broker."""
    called, read = tmp_path / "called", tmp_path / "read"
    java = tmp_path / "home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(PROGRAM.format(log=called, read=read))
    java.chmod(0o700)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    folder = tmp_path / "broker"
    folder.mkdir()

    with pytest.raises(BrokerError, match="ended while it started"):
        start_closed(folder, "of-the-administrator")

    lines = called.read_text().splitlines()
    assert [one for one in ("keytool", "StorageTool", "kafka.Kafka") if one in str(lines)] == [
        *("keytool", "StorageTool", "kafka.Kafka")
    ]
    own = certificate_files(folder).password.read_text()
    assert own in (folder / "server.properties").read_text()
    assert not [line for line in lines if "of-the-administrator" in line or own in line]
    assert "of-the-administrator" in read.read_text()
    assert not list(folder.glob("*.new"))
