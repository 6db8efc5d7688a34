"""The programs of a demonstration, started as a user would start them."""

import subprocess
import sys

from streaming.demo.folder import DemoFolder
from streaming.demo.monitor import DemoError, PartMonitor
from streaming.demo.parts import ProcessPart


def start_hub(folder: DemoFolder, monitor: PartMonitor) -> ProcessPart:
    """Start the hub."""
    return ProcessPart.start("the hub", _slackwater("run", folder), folder.log("hub"), monitor)


def start_agent(folder: DemoFolder, replica: str, monitor: PartMonitor) -> ProcessPart:
    """Start a replica's agent."""
    command = _slackwater("agent", folder, "--replica", replica)
    command += ["--database", str(folder.database(replica))]
    log = folder.log(f"agent-{replica}")
    return ProcessPart.start(f"the agent of {replica}", command, log, monitor)


def retire(folder: DemoFolder, replica: str) -> None:
    """Take a replica out for good, and keep what the command says; DemoError if it fails."""
    command = _slackwater("retire", folder, replica, "--yes", "--json")
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        raise DemoError(f"slackwater retire {replica} failed: {done.stderr}")
    folder.retirement.write_text(done.stdout, encoding="utf-8")


def _slackwater(command: str, folder: DemoFolder, *arguments: str) -> list[str]:
    program = [sys.executable, "-m", "streaming.cli.main"]
    return [*program, command, "--config", str(folder.config), *arguments]
