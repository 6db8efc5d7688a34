"""Claims about `services up --secure`: who is let in, and may do no more than is listed."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from connectors.kafka.embedded.broker import HOST, OPEN, Broker, BrokerError
from connectors.kafka.embedded.closed_broker import ADMINISTRATOR, LISTENERS
from connectors.kafka.topics import Topics
from streaming.cli.main import main
from streaming.config.closed_services import admit, secrets_of, start_broker, users_of
from streaming.config.sources.load import load
from streaming.core.access.rights import NeededRight, TopicRight
from streaming.core.model.errors import SourceError
from tests.harness.intruder import HIDDEN, REFUSED, Intruder
from tests.harness.tls_files import authority, certificate
from tests.streaming.cli.conftest import CONFIG, Slackwater

pytestmark = pytest.mark.kafka

EXTRANEOUS = "stranger"
"""Who has a login and no right."""
MEMBERS = ("hub", "standby", "a", "b", "level", "observer")
TOPICS = tuple(
    f"slackwater.{one}" for one in ("changes.a", "changes.b", "updates.to-a", "updates.to-b")
)
CONNECT_MS = 2_000
IMPLYING = {TopicRight.READ, TopicRight.WRITE}
"""Of these Kafka concludes DESCRIBE."""


@dataclass(frozen=True, slots=True)
class ClosedSite:
    """A configuration and the folder of its closed broker."""

    config: Path
    folder: Path

    def up(self, *more: str) -> int:
        """The command."""
        arguments = ("--folder", str(self.folder), "--config", str(self.config), *more)
        return main(("services", "up", "--secure", *arguments))

    @property
    def broker(self) -> Broker:
        """The broker that runs."""
        found = Broker.running(self.folder)
        assert found is not None
        return found

    @property
    def bootstrap(self) -> str:
        """Its address."""
        return self.broker.bootstrap_servers

    def options(self, user: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
        """[kafka.options] as a program of this user loads them."""
        monkeypatch.setenv("SLACKWATER_SECRETS", str(secrets_of(self.folder, user)))
        found = load(self.config).kafka
        assert found.bootstrap_servers == self.bootstrap
        monkeypatch.delenv("SLACKWATER_SECRETS")
        return dict(found.options)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClosedSite]:
    """A closed broker with the topics of its hub, made by the commands, and a stranger beside."""
    folder = tmp_path_factory.mktemp("closed")
    found = ClosedSite(folder / "hub.toml", folder / "services")
    found.config.write_text(CONFIG, encoding="utf-8")
    try:
        assert found.up() == 0
        listed = users_of(load(found.config))
        admit(found.folder, found.broker, {**listed, EXTRANEOUS: ()})
        with pytest.MonkeyPatch.context() as patch:
            options = found.options("hub", patch)
        with Topics(found.bootstrap, options) as topics:
            topics.ensure(TOPICS, 20_000, TOPICS[:2])
        yield found
    finally:
        if broker := Broker.running(found.folder):
            broker.kill()


@pytest.mark.parametrize("user", [*MEMBERS, EXTRANEOUS])
def test_a_user_may_do_what_is_listed_and_nothing_else(
    site: ClosedSite, user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each right on each topic is tried as each user: those of the list work, all others do not.

    A right that is listed and refused stops a replica; one that is not listed and works is a leak.
    """
    listed = set(users_of(load(site.config)).get(user, ()))
    implied = {
        NeededRight(one.topic, TopicRight.DESCRIBE) for one in listed if one.right in IMPLYING
    }

    with Intruder(site.bootstrap, site.options(user, monkeypatch)) as intruder:
        assert intruder.may(TOPICS) == listed | implied
        seen, others = intruder.seen()

    assert seen == {one.topic for one in listed}
    assert others == 0


@pytest.mark.parametrize("user", [*MEMBERS, EXTRANEOUS])
def test_what_only_an_administrator_does_is_refused(
    site: ClosedSite, user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a replica nor the hub deletes or alters a topic, takes a right, joins or transacts.

    It is tried on a topic of theirs.
    """
    topic = TOPICS[1 if user == "b" else 0]

    with Intruder(site.bootstrap, site.options(user, monkeypatch)) as intruder:
        answers = intruder.answers(topic)

    expected = {REFUSED, HIDDEN} if user == EXTRANEOUS else {REFUSED}
    assert set(answers.values()) == expected, answers


def test_the_administrator_may_do_what_was_refused(
    site: ClosedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the refusals above could come from a request that nobody could make."""
    with Intruder(site.bootstrap, site.options(ADMINISTRATOR, monkeypatch)) as administrator:
        assert administrator.may(TOPICS) == {
            NeededRight(topic, right) for topic in TOPICS for right in TopicRight
        }


def test_the_rules_are_exactly_those_that_acls_prints(
    site: ClosedSite, slackwater: Slackwater, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an auditor compares: no rule of the broker is missing on the list, and none is more."""
    listed = slackwater("acls", "--config", str(site.config), "--json").facts

    with Intruder(site.bootstrap, site.options(ADMINISTRATOR, monkeypatch)) as administrator:
        found = administrator.rules()

    operation = {right.operation: right.name for right in TopicRight}
    assert sorted(found) == sorted(
        (f"User:{one['user']}", operation[one["right"]], "TOPIC", one["topic"], "LITERAL")
        for one in listed
    )


def test_a_wrong_login_certificate_or_protocol_is_refused(
    site: ClosedSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a guessed password, nor plain text, nor a broker that somebody else set up."""
    right = site.options("hub", monkeypatch)
    foreign = authority(tmp_path, "foreign")
    wrong = {
        "login": {**right, "sasl.password": site.options("a", monkeypatch)["sasl.password"]},
        "certificate": {**right, "ssl.truststore.location": str(foreign)},
        "speaks TLS and the other does not": {"security.protocol": "PLAINTEXT"},
    }

    for words, options in wrong.items():
        with pytest.raises(SourceError, match=words):
            Topics(site.bootstrap, options, CONNECT_MS)


def test_a_certificate_of_another_authority_is_refused(site: ClosedSite, tmp_path: Path) -> None:
    """The broker's own port, where it may do everything, takes nobody who calls himself it."""
    port = site.broker.port_of(LISTENERS[1])
    foreign = certificate(tmp_path, "broker", authority(tmp_path, "foreign"))
    own = tmp_path / "own.pem"
    own.write_text(foreign.read_text() + foreign.with_suffix(".key").read_text())
    options = {
        "security.protocol": "SSL",
        "ssl.truststore.location": str(site.folder / "ca.pem"),
        "ssl.keystore.location": str(own),
    }

    with pytest.raises(SourceError, match="the broker does not accept this client's certificate"):
        Topics(f"{HOST}:{port}", options, CONNECT_MS)


def test_only_this_user_reads_logins_and_keys(site: ClosedSite) -> None:
    """Whoever reads them is the hub, or everybody."""
    private = [file for file in (site.folder / "secrets").rglob("*") if file.is_file()]
    private += [
        site.folder / name for name in ("broker.p12", "broker.password", "server.properties")
    ]

    assert {file.stat().st_mode & 0o777 for file in private} == {0o600}
    folders = [site.folder, *(file.parent for file in private)]
    assert {folder.stat().st_mode & 0o777 for folder in folders} == {0o700}


def test_again_it_has_the_same_users_and_those_that_are_new(
    site: ClosedSite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A replica is added by adding it to the file; nobody else's password changes.

    A replica that is taken out has no right left.
    """
    text = site.config.read_text(encoding="utf-8")
    before = {user: site.options(user, monkeypatch) for user in MEMBERS}
    more = text.replace('name = "b"', 'name = "c"').replace('consumer = "b"', 'consumer = "c"')
    site.config.write_text(more, encoding="utf-8")
    capsys.readouterr()

    assert site.up() == 0

    out, err = capsys.readouterr()
    assert not err
    assert str(secrets_of(site.folder, "c")) in out
    assert f"SLACKWATER_SECRETS={secrets_of(site.folder, 'hub')} slackwater run" in out
    assert {user: site.options(user, monkeypatch) for user in MEMBERS} == before
    with Intruder(site.bootstrap, site.options("c", monkeypatch)) as new:
        assert {one.right for one in new.may([TOPICS[3]])} == {TopicRight.READ, TopicRight.DESCRIBE}
    with Intruder(site.bootstrap, before["b"]) as old:
        assert old.may(TOPICS) == set()
    site.config.write_text(text, encoding="utf-8")
    assert site.up("--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["bootstrap_servers"] == site.bootstrap
    assert found["secrets"]["b"] == str(secrets_of(site.folder, "b"))


def test_an_open_brokers_folder_is_not_closed_and_the_reverse(
    site: ClosedSite, tmp_path: Path
) -> None:
    """Its rules would be missing, or everybody be let in, without a word."""
    with pytest.raises(BrokerError, match="start it with --secure"):
        Broker.start(site.folder)

    (tmp_path / "server.properties").write_text(
        f"listeners={OPEN[0]}://{HOST}:1,CONTROLLER://{HOST}:2"
    )
    with pytest.raises(BrokerError, match="leave --secure out"):
        start_broker(tmp_path)
    assert not (tmp_path / "secrets").exists()


def test_a_broker_without_its_administrator_is_not_started(
    site: ClosedSite, tmp_path: Path
) -> None:
    """A new password would be refused, and the message speak of kafka.options."""
    settings = site.folder / "server.properties"
    (tmp_path / settings.name).write_text(settings.read_text())

    with pytest.raises(BrokerError, match="no other administrator"):
        start_broker(tmp_path)


def test_a_replica_with_the_name_of_another_user_is_named(
    slackwater: Slackwater, config_file: Path
) -> None:
    """It would have the other's rights, of the administrator all."""
    text = config_file.read_text(encoding="utf-8")
    config_file.write_text(text.replace('"a"', '"admin"'), encoding="utf-8")

    answer = slackwater("services", "up", "--secure", "--folder", str(config_file.parent / "none"))

    assert answer.code == 2
    assert "replica 'admin' has the name of another user" in answer.err
    assert not (config_file.parent / "none").exists()
