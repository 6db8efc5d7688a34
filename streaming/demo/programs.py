"""The programs of a demonstration, started as a user would start them.

On a closed broker each has a login of its own; the hub's is the demonstration's own too.
"""

import os
import subprocess
import sys

from streaming.config.rights import HUB, Role, RoleOf, user_of
from streaming.config.sources.secret_files import FOLDER_VARIABLE
from streaming.demo.folder import DemoFolder
from streaming.demo.monitor import DemoError, PartMonitor
from streaming.demo.parts import ProcessPart


def start_hub(folder: DemoFolder, monitor: PartMonitor) -> ProcessPart:
    """Start the hub."""
    command, log = _slackwater("run", folder), folder.log("hub")
    return ProcessPart.start("the hub", command, log, monitor, _environment(folder, user_of(HUB)))


def start_agent(folder: DemoFolder, replica: str, monitor: PartMonitor) -> ProcessPart:
    """Start a replica's agent."""
    command = _slackwater("agent", folder, "--replica", replica)
    command += ["--database", str(folder.database(replica))]
    log = folder.log(f"agent-{replica}")
    environment = _environment(folder, user_of(RoleOf(Role.AGENT, replica)))
    return ProcessPart.start(f"the agent of {replica}", command, log, monitor, environment)


def retire(folder: DemoFolder, replica: str) -> None:
    """Take a replica out for good, and keep what the command says; DemoError if it fails."""
    command = _slackwater("retire", folder, replica, "--yes", "--json")
    done = subprocess.run(
        command,
        env=_environment(folder, user_of(HUB)),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        raise DemoError(f"slackwater retire {replica} failed: {done.stderr}")
    folder.retirement.write_text(done.stdout, encoding="utf-8")


def _environment(folder: DemoFolder, user: str) -> dict[str, str]:
    """The environment of a program, which logs in as this user where the broker asks for it."""
    login = folder.login(user)
    own = {FOLDER_VARIABLE: str(login)} if login.exists() else {}
    return {**os.environ, **own}  # noqa: TID251  # what it has else is inherited


def _slackwater(command: str, folder: DemoFolder, *arguments: str) -> list[str]:
    program = [sys.executable, "-m", "streaming.cli.main"]
    return [*program, command, "--config", str(folder.config), *arguments]
