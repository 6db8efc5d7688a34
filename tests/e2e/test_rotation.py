"""Passwords and rights that are taken away and given while a hub and its agents work."""

import contextlib
import io
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from connectors.kafka.client_errors import ClientFault
from connectors.kafka.embedded.broker import HOST, Broker
from streaming.cli.exit_codes import ExitCode
from streaming.cli.main import main
from streaming.config.config import Config
from streaming.config.rights import HUB, Role, RoleOf, needed_rights
from streaming.core.access.rights import NeededRight, TopicRight
from tests.harness.closed_broker import (
    ADMIN,
    SECURE,
    BrokerFiles,
    changeable,
    closed_broker,
    grant,
    options,
    revoke,
    set_password,
    toml,
)
from tests.harness.hub_process import HubProcess, wait_until
from tests.harness.site import Site, site
from tests.harness.sqlite_agents import create, database, execute, rows
from tests.harness.tls_files import authority, certificate, expired, with_key

pytestmark = pytest.mark.more

USERS: Mapping[str, RoleOf | None] = {
    "hub": HUB,
    "a": RoleOf(Role.AGENT, "a"),
    "b": RoleOf(Role.AGENT, "b"),
    "standby": RoleOf(Role.STANDBY),
    "level": RoleOf(Role.LEVEL),
    "observer": RoleOf(Role.OBSERVER),
    "nobody": None,
}
"""Each with exactly the rights of its role, and with a configuration of its own."""


@dataclass(frozen=True, slots=True)
class ClosedSite:
    """A hub with two replicas on a closed broker, where each process is a user of its own."""

    at: Site
    bootstrap: str
    text: str
    authority: Path

    def file(self, user: str) -> Path:
        """The configuration of a user."""
        return self.at.folder / f"{user}.toml"

    def log_in(self, user: str, password: str) -> None:
        """Write a password into the configuration of a user."""
        tls = {
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.shown(user)),
        }
        self.file(user).write_text(self.text + toml(changeable(user, password) | tls))

    def shown(self, user: str) -> Path:
        """What a user shows to the broker."""
        return self.at.folder / f"{user}.pem"

    def certify(self, user: str, make: Callable[[Path, str, Path], Path] = certificate) -> None:
        """Give a user a new certificate, a valid one if nothing is said."""
        with_key(self.shown(user), make(self.at.folder, f"cert-{user}", self.authority))

    def rotate(self, user: str, password: str, is_told: Callable[[], bool]) -> None:
        """Change a password in Kafka, and where it is read once its user has told of it."""
        set_password(self.bootstrap, user, password)
        wait_until(is_told, lambda: f"the refused login of {user}")
        self.log_in(user, password)

    @contextmanager
    def without(self, user: str, right: TopicRight, topic: str) -> Iterator[NeededRight]:
        """Take a right away for as long as the block lasts."""
        one = NeededRight(f"{self.at.prefix}{topic}", right)
        revoke(self.bootstrap, user, one)
        yield one
        grant(self.bootstrap, user, [one])

    def written(self, name: str, key: str) -> None:
        """Insert a row at a replica."""
        execute(self.at, name, "INSERT INTO t VALUES (?, ?)", key, name)

    def arrives(self, name: str, key: str) -> None:
        """Wait until a replica has this row."""
        wait_until(lambda: key in rows(self.at, name), lambda: f"{key} at {name}: {self.logs()}")

    def status(self) -> str:
        """What `slackwater status` knows."""
        return str(self.at.slackwater("status"))

    def logs(self) -> str:
        """What the agents and the hub have written, for a test that fails."""
        return "\n".join(one.read_text() for one in self.at.folder.glob("*.log"))

    def is_level(self, user: str) -> bool:
        """What `slackwater level` says to a user."""
        return self._level(user)[0] == ExitCode.YES

    def level_text(self, user: str) -> str:
        """What it says in words."""
        return self._level(user)[1]

    def _level(self, user: str) -> tuple[int, str]:
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = main(["level", "--config", str(self.file(user))])
        return code, said.getvalue()


@dataclass(frozen=True, slots=True)
class Certified:
    """A broker that denies by default; each client logs in again every few seconds."""

    folder: Path
    files: BrokerFiles

    def start(self) -> Broker:
        """Start it, behind a stop too."""
        return closed_broker(self.folder / "broker", [], self.files)

    def stop(self) -> None:
        """Stop it."""
        running = Broker.running(self.folder / "broker")
        assert running is not None
        running.stop()


@pytest.fixture
def certified(tmp_path: Path) -> Iterator[Certified]:
    """It, at work."""
    ca = authority(tmp_path, "ca")
    own = with_key(tmp_path / "broker.pem", certificate(tmp_path, "broker", ca))
    found = Certified(tmp_path, BrokerFiles(own, ca))
    found.start()
    yield found
    found.stop()


@pytest.fixture
def closed_site(certified: Certified, topic_prefix: str) -> Iterator[ClosedSite]:
    """A site on it, with an empty table in both databases."""
    folder, broker = certified.folder / "site", certified.start()
    bootstrap, secure = broker.bootstrap_servers, f"{HOST}:{broker.port_of(SECURE)}"
    with site(folder, bootstrap, topic_prefix, options=options(ADMIN)) as at:
        text = at.file.read_text().replace(bootstrap, secure)
        found = ClosedSite(at, bootstrap, text, certified.files.authority)
        config: Config = at.config()
        for user, role in USERS.items():
            set_password(bootstrap, user, f"first-of-{user}")
            found.certify(user)
            found.log_in(user, f"first-of-{user}")
            grant(bootstrap, user, needed_rights(config, role) if role else ())
        for name in "ab":
            create(at, name)
        yield found


@contextmanager
def agent(closed_site: ClosedSite, name: str) -> Iterator[Callable[[], str]]:
    """An agent at work; gives what it has logged. It ends in order with the block."""
    log = closed_site.at.folder / f"{name}.log"
    program = [sys.executable, "-m", "streaming.cli.main", "agent", "--replica", name]
    files = [
        "--config",
        str(closed_site.file(name)),
        "--database",
        f"{database(closed_site.at, name)}",
    ]
    with log.open("wb") as stream:
        process = subprocess.Popen([*program, *files], stderr=stream)
    try:
        yield log.read_text
    finally:
        process.terminate()
        assert process.wait(60) == 0, log.read_text()


def test_what_is_refused_for_a_while_stops_nobody_for_good(
    closed_site: ClosedSite, certified: Certified
) -> None:
    """What was changed in one place only: nothing is lost, and nobody has to restart anything."""
    at = closed_site.at
    with (
        HubProcess(closed_site.file("hub")) as hub,
        agent(closed_site, "a") as a,
        agent(closed_site, "b") as b,
    ):
        closed_site.written("a", "first")
        closed_site.arrives("b", "first")

        refused = f"{ClientFault.LOGIN} (as User:hub)"
        closed_site.rotate("hub", "second", lambda: refused in closed_site.status())
        closed_site.written("a", "hub-refused")
        closed_site.arrives("b", "hub-refused")

        closed_site.rotate("a", "second", lambda: f"{ClientFault.LOGIN} (as User:a" in a())
        closed_site.written("a", "agent-refused")
        closed_site.arrives("b", "agent-refused")
        for word in ("first-of-hub", "first-of-a", "second"):
            assert word not in closed_site.logs()

        with closed_site.without("a", TopicRight.WRITE, "changes.a") as right:
            closed_site.written("a", "not-publishing")
            wait_until(lambda: f"Kafka refuses User:a {right}" in a(), a)
        closed_site.arrives("b", "not-publishing")

        with closed_site.without("b", TopicRight.READ, "updates.b") as right:
            closed_site.written("a", "not-reading")
            wait_until(lambda: f"Kafka refuses User:b {right}" in b(), b)
        closed_site.arrives("b", "not-reading")

        with closed_site.without("hub", TopicRight.READ, "changes.a") as right:
            closed_site.written("a", "unreadable")
            hub.waits_for(lambda: f"User:hub {right}" in closed_site.status(), "a is unreadable")
        closed_site.arrives("b", "unreadable")

        with closed_site.without("hub", TopicRight.WRITE, "updates.b"):
            closed_site.written("a", "unwritable")
            hub.waits_for(lambda: "unwritable" in closed_site.status(), "b is unwritable")
        closed_site.arrives("b", "unwritable")

        for user in ("hub", "a"):
            closed_site.certify(user, expired)
        certified.stop()
        certified.start()
        closed_site.written("a", "expired")
        refused = f"{ClientFault.OWN_CERTIFICATE} (as User:"
        wait_until(lambda: f"{refused}a" in a(), a)
        hub.waits_for(lambda: f"{refused}hub)" in closed_site.status(), "its certificate")
        for user in ("hub", "a"):
            closed_site.certify(user)
        closed_site.arrives("b", "expired")

        wait_until(lambda: closed_site.is_level("level"), lambda: closed_site.level_text("level"))
        assert closed_site.is_level("observer"), closed_site.level_text("observer")
        assert "Kafka refuses User:nobody Describe on topic" in closed_site.level_text("nobody")
        with HubProcess(closed_site.file("standby"), "--standby") as standby:
            standby.waits_for(lambda: "stands by" in standby.output, "it stands by")
            hub.kill()
            closed_site.written("a", "taken-over")
            closed_site.arrives("b", "taken-over")
    assert rows(at, "a") == rows(at, "b")
