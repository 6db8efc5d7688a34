"""Claims about the systemd units, by systemd's own checker: no machine is booted."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from streaming.cli.commands import COMMANDS
from tests.deploy.conftest import missing
from tests.test_setup import CHECKOUT

UNITS = sorted((CHECKOUT / "deploy" / "systemd").glob("*.service"))
EXPOSURE_MAX = 2.0
"""Of 10, by `systemd-analyze security`: "OK", as little as a service with a network can have."""


def analyze(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    """The answer of systemd-analyze."""
    if shutil.which("systemd-analyze") is None:
        missing("systemd-analyze")
    return subprocess.run(
        ["systemd-analyze", *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("unit", UNITS, ids=lambda file: file.stem)
def test_systemd_understands_every_line(unit: Path, tmp_path: Path) -> None:
    """What systemd does not understand it ignores, and says so only in its log."""
    here = tmp_path / unit.name  # with a command that exists on this machine
    here.write_text(
        unit.read_text().replace("/opt/slackwater/bin", str(Path(sys.executable).parent))
    )

    done = analyze("verify", "--man=no", here)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_checker_finds_a_mistake(tmp_path: Path) -> None:
    """A check that accepts everything would be no check."""
    unit = tmp_path / "slackwater-hub.service"
    unit.write_text(UNITS[0].read_text().replace("Restart=always", "Restrat=always"))

    assert "Restrat" in analyze("verify", "--man=no", unit).stderr


@pytest.mark.parametrize("unit", UNITS, ids=lambda file: file.stem)
def test_a_unit_may_do_little_besides_its_work(unit: Path) -> None:
    """What a fault in a library could reach is what the unit leaves open."""
    done = analyze("security", "--offline=true", "--no-pager", unit)

    found = re.search(r"exposure level for \S+: ([\d.]+)", done.stdout)
    assert found, done.stdout + done.stderr
    assert float(found[1]) <= EXPOSURE_MAX


def test_a_hub_and_its_standby_differ_in_their_port_alone() -> None:
    """The standby becomes the hub, so what holds for one must hold for the other."""
    hub, standby = (
        {
            line
            for line in (CHECKOUT / "deploy" / "systemd" / f"slackwater-{name}.service")
            .read_text()
            .splitlines()
            if not line.startswith(("#", "Description=", "Environment=SLACKWATER_HTTP__PORT="))
        }
        for name in ("hub", "standby")
    )

    assert hub == standby


@pytest.mark.parametrize("unit", UNITS, ids=lambda file: file.stem)
def test_a_unit_starts_a_command_of_slackwater(unit: Path) -> None:
    """And SIGTERM reaches the hub alone, which then ends its JVM behind its batch."""
    lines = dict(
        line.split("=", 1) for line in unit.read_text().splitlines() if re.match(r"\w+=", line)
    )
    program, command, *_ = lines["ExecStart"].split()
    known = {one.name for one in COMMANDS}

    assert program == "/opt/slackwater/bin/slackwater"
    assert command in known
    assert lines["Restart"] == "always"
    assert lines.get("KillMode") == ("mixed" if command == "run" else None)
