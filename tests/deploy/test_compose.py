"""Claims about deploy/compose.yaml: it fits the specification, and its parts fit each other."""

import copy
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from connectors.sqlite.check import check_database
from deploy.compose.schema import create
from streaming.cli.commands import COMMANDS
from streaming.config.access import access_faults
from streaming.config.sources.load import load
from streaming.facts.versions import versions
from tests.deploy.kinds import compose_schema
from tests.test_setup import CHECKOUT

FILE = CHECKOUT / "deploy" / "compose.yaml"
CONFIG = CHECKOUT / "deploy" / "compose" / "hub.toml"
AGENTS = ("berlin", "lisbon", "oslo")


@pytest.fixture
def compose() -> dict[str, Any]:
    """The file, with its anchors resolved."""
    found: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return found


def test_the_file_fits_the_specification(compose: dict[str, Any]) -> None:
    """A service's field that is misspelt ends the start of the whole site."""
    jsonschema.validate(compose, compose_schema())


def test_the_specification_refuses_what_is_misspelt(compose: dict[str, Any]) -> None:
    """A check that accepts everything would be no check."""
    wrong = copy.deepcopy(compose)
    wrong["services"]["hub"]["helthcheck"] = {"disable": True}

    with pytest.raises(jsonschema.ValidationError, match="helthcheck"):
        jsonschema.validate(wrong, compose_schema())


def test_every_part_of_a_site_is_there(compose: dict[str, Any]) -> None:
    """Broker, hub, standby, three replicas with their databases, Prometheus and Grafana."""
    assert compose["services"].keys() == {
        *("kafka", "hub", "standby", "databases", *AGENTS, "prometheus", "grafana")
    }


def test_no_image_is_a_moving_target(compose: dict[str, Any]) -> None:
    """`latest` is another program tomorrow; the hub's image is the one of this version."""
    images = {one["image"] for one in compose["services"].values()}

    assert f"slackwater:{versions().slackwater}" in images
    assert all(":" in image and not image.endswith(":latest") for image in images)


def test_what_a_service_needs_exists(compose: dict[str, Any]) -> None:
    """Volumes are declared, mounted files are in the checkout, and services wait for real ones."""
    services = compose["services"]
    for service in services.values():
        assert set(service.get("depends_on", ())) <= services.keys()
        for mount in service.get("volumes", ()):
            source = mount.split(":")[0]
            if source.startswith("."):
                assert (FILE.parent / source).exists(), source
            else:
                assert source in compose["volumes"]


def test_a_port_is_open_on_loopback_alone(compose: dict[str, Any]) -> None:
    """A first try must not show a site's rows to its network."""
    ports = [port for one in compose["services"].values() for port in one.get("ports", ())]

    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_commands_and_configuration_are_the_hubs_own(compose: dict[str, Any]) -> None:
    """Each agent serves a replica that the configuration names, with the broker of this file."""
    config = load(CONFIG)
    known = {one.name for one in COMMANDS}
    commands = {name: one.get("command", []) for name, one in compose["services"].items()}

    assert {replica.name for replica in config.replicas} == set(AGENTS)
    assert config.kafka.bootstrap_servers == "kafka:9092"
    assert {commands["hub"][0], commands["standby"][0]} <= known
    for name in AGENTS:
        assert commands[name][:3] == ["agent", "--replica", name]


def test_an_agent_accepts_the_databases_that_are_created(tmp_path: Path) -> None:
    """Otherwise the agents of a first try end, one after the other, for ever."""
    file = tmp_path / "berlin.db"
    create(file)
    create(file)  # a site that is started again keeps its files

    found = check_database(file, tuple(load(CONFIG).table_map().values()), rows_are_shared=False)

    assert found.is_good
    assert (found.warnings, found.not_configured) == ((), ())


def test_prometheus_asks_every_hub_and_agent(compose: dict[str, Any]) -> None:
    """The standby becomes the hub, so its numbers must be there from then on."""
    file = CHECKOUT / "deploy" / "prometheus" / "prometheus.yml"
    (job,) = yaml.safe_load(file.read_text(encoding="utf-8"))["scrape_configs"]
    secret = Path(job["authorization"]["credentials_file"])
    asked = {target for each in job["static_configs"] for target in each["targets"]}
    agents = {
        f"{name}:{command[command.index('--metrics-port') + 1]}"
        for name, service in compose["services"].items()
        if "--metrics-port" in (command := service.get("command") or [])
    }

    assert len(agents) == 3
    assert asked == {"hub:9470", "standby:9470", *agents}
    assert {one.partition(":")[0] for one in asked} <= compose["services"].keys()
    assert secret.parent == Path("/run/secrets")
    assert secret.name in compose["services"]["prometheus"]["secrets"]


def test_every_port_that_is_reached_from_outside_asks_for_the_token(
    compose: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hub and agents do not start otherwise, and the names are those that Prometheus asks for."""
    for name in ("hub", "standby", *AGENTS):
        service = compose["services"][name]
        (secret,) = service["secrets"]
        (tmp_path / secret["target"]).write_text("a-token-of-16-characters")
        assert secret["source"] in compose["secrets"]
        assert service["environment"]["SLACKWATER_SECRETS"] == "/run/secrets"
    for variable, value in compose["services"]["hub"]["environment"].items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("SLACKWATER_SECRETS", str(tmp_path))

    http = load(CONFIG).http

    assert list(access_faults(http)) == []
    assert http.access.is_asked
    assert set(http.names) == {"hub", "standby"}
