"""Claims about the Helm chart, by what it renders: no cluster is needed to see a wrong object."""

import re
from pathlib import Path

import pytest
import yaml

from streaming.cli.commands import COMMANDS
from streaming.config.sources.load import load
from tests.deploy.chart import (
    CHART,
    CONFIG,
    VALUES,
    Helm,
    Render,
    container_of,
    of_kind,
    pod_of,
    the,
)
from tests.deploy.kinds import validate
from tests.test_setup import CHECKOUT

SAMPLE = ("--set-file", f"config={CONFIG}")


@pytest.mark.parametrize("values", VALUES)
def test_every_object_fits_the_schema_of_its_kind(render: Render, values: str) -> None:
    """A field that is misspelt is dropped by a cluster in silence."""
    for document in render(values):
        validate(document)


@pytest.mark.parametrize("values", VALUES)
def test_helm_has_no_complaint_about_the_chart(helm: Helm, values: str) -> None:
    """`helm lint` knows what is no error and still wrong."""
    done = helm("lint", "--strict", CHART, "--values", VALUES[values], *SAMPLE)

    assert done.returncode == 0, done.stdout


def test_the_schemas_refuse_what_is_misspelt(render: Render) -> None:
    """A check that accepts everything would be no check; one per source of schemas."""
    objects = render("spark")
    the(objects, "Service")["spec"]["sellector"] = {}
    the(objects, "ServiceMonitor")["spec"]["endpoints"][0]["intervall"] = "5s"
    the(objects, "SparkApplication")["spec"]["executor"]["instancez"] = 2

    for kind in ("Service", "ServiceMonitor", "SparkApplication"):
        with pytest.raises(Exception, match=r"sellector|intervall|instancez"):
            validate(the(objects, kind))


def test_one_hub_is_never_two(render: Render) -> None:
    """A rolling update would start the second before the first has ended."""
    deployment = the(render(), "Deployment")["spec"]

    assert (deployment["replicas"], deployment["strategy"]) == (1, {"type": "Recreate"})


def test_a_hub_and_its_standby_are_replaced_one_by_one_and_on_two_nodes(render: Render) -> None:
    """Otherwise an update, or one node, takes both."""
    objects = render(
        "plain", "--set", "standby.enabled=true,persistence.accessModes={ReadWriteMany}"
    )
    deployment = the(objects, "Deployment")["spec"]
    rules = pod_of(objects)["spec"]["affinity"]["podAntiAffinity"]

    assert deployment["replicas"] == 2
    assert container_of(objects)["args"] == ["run", "--standby"]
    assert deployment["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
    (rule,) = rules["preferredDuringSchedulingIgnoredDuringExecution"]
    assert rule["podAffinityTerm"]["topologyKey"] == "kubernetes.io/hostname"
    assert the(objects, "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1


def test_the_hub_runs_as_nobody_and_writes_its_state_alone(render: Render) -> None:
    """What `restricted` of Kubernetes' pod security standards asks for, and a read-only image."""
    objects = render()
    pod, container = pod_of(objects)["spec"], container_of(objects)

    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    writable = {m["mountPath"] for m in container["volumeMounts"] if not m.get("readOnly")}
    assert writable == {"/var/lib/slackwater", "/tmp"}


def test_a_probe_asks_the_port_that_the_hub_listens_at(render: Render) -> None:
    """A probe of another port would restart a healthy hub for ever."""
    container = container_of(render("plain", "--set", "http.port=9999"))
    environment = {entry["name"]: entry["value"] for entry in container["env"]}

    assert environment["SLACKWATER_HTTP__PORT"] == "9999"
    assert container["ports"] == [{"name": "http", "containerPort": 9999}]
    assert container["livenessProbe"]["httpGet"] == {"path": "/livez", "port": "http"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}


@pytest.mark.parametrize("values", VALUES)
def test_the_hub_understands_what_it_is_given(
    render: Render, values: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Command, configuration and variables are the hub's own, or it ends at its start."""
    objects = render(values)
    hub = (
        the(objects, "SparkApplication")["spec"]["driver"]
        if of_kind(objects, "SparkApplication")
        else container_of(objects)
    )
    command = hub.get("args") or the(objects, "SparkApplication")["spec"]["arguments"]
    config = tmp_path / "hub.toml"
    maps = [m for m in of_kind(objects, "ConfigMap") if "hub.toml" in m["data"]]
    config.write_text(maps[0]["data"]["hub.toml"] if maps else CONFIG.read_text())
    for entry in hub["env"]:
        value = str(tmp_path) if entry["name"] == "SLACKWATER_SECRETS" else entry["value"]
        monkeypatch.setenv(entry["name"], value)

    loaded = load(config)

    assert command[0] in {one.name for one in COMMANDS}
    assert loaded.hub.state == Path("/var/lib/slackwater/state")
    assert loaded.http.host == "0.0.0.0"
    assert loaded.http.names[0] == the(objects, "Service")["metadata"]["name"]


def test_a_secret_is_a_file_and_never_a_variable(render: Render) -> None:
    """Variables are seen by whoever may describe a pod, and end in logs."""
    objects = render("everything")
    container, volumes = container_of(objects), pod_of(objects)["spec"]["volumes"]

    assert "valueFrom" not in str(container["env"])
    (secret,) = (v["secret"] for v in volumes if v["name"] == "secrets")
    assert secret == {"secretName": "kafka-credentials", "defaultMode": 0o440}
    (mount,) = (m for m in container["volumeMounts"] if m["name"] == "secrets")
    assert mount["readOnly"]
    assert {"name": "SLACKWATER_SECRETS", "value": mount["mountPath"]} in container["env"]


def test_services_policies_and_monitors_select_the_hub(render: Render) -> None:
    """A selector that matches nothing is an object that does nothing, and nobody says so."""
    objects = render("everything")
    labels = pod_of(objects)["metadata"]["labels"].items()
    service = the(objects, "Service")

    assert service["spec"]["selector"].items() <= labels
    assert the(objects, "Deployment")["spec"]["selector"]["matchLabels"].items() <= labels
    for kind in ("PodDisruptionBudget", "NetworkPolicy"):
        spec = the(objects, kind)["spec"]
        chosen = spec.get("selector") or spec["podSelector"]
        assert chosen["matchLabels"].items() <= labels
    monitor = the(objects, "ServiceMonitor")["spec"]
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    (endpoint,) = monitor["endpoints"]
    assert endpoint["port"] == service["spec"]["ports"][0]["name"]
    credentials = {"name": "kafka-credentials", "key": "SLACKWATER_HTTP__TOKEN"}
    assert endpoint["authorization"] == {"credentials": credentials}


def test_the_job_of_the_monitor_is_the_one_that_the_alerts_expect(render: Render) -> None:
    """An alert that matches no job never fires, and nobody misses it."""
    objects = render("everything")
    labels = the(objects, "Service")["metadata"]["labels"]
    alerts = str(the(objects, "PrometheusRule")["spec"])

    job = labels[the(objects, "ServiceMonitor")["spec"]["jobLabel"]]

    jobs = re.findall(r'job=~"([^"]+)"', alerts)
    assert jobs
    assert all(re.fullmatch(expected, job) for expected in jobs)


def test_a_changed_configuration_replaces_the_pod(render: Render, tmp_path: Path) -> None:
    """A hub reads its file when it starts; a ConfigMap alone changes nothing."""
    other = tmp_path / "other.toml"
    other.write_text(CONFIG.read_text() + "\n# another\n")

    before = pod_of(render())["metadata"]["annotations"]
    after = pod_of(render("plain", "--set-file", f"config={other}"))["metadata"]["annotations"]

    assert before["checksum/config"] != after["checksum/config"]


def test_every_dashboard_and_rule_of_the_project_is_in_the_chart(render: Render) -> None:
    """They exist once, beside the chart; links bring them in."""
    objects = render("everything")
    boards = {file.name for file in (CHECKOUT / "deploy" / "grafana").glob("*.json")}
    rules = [
        yaml.safe_load(file.read_text())
        for file in sorted((CHECKOUT / "deploy" / "prometheus").glob("alerts*.yaml"))
    ]

    maps = [m["data"] for m in of_kind(objects, "ConfigMap") if "hub.toml" not in m["data"]]

    assert {name for data in maps for name in data} == boards
    assert [rule["spec"] for rule in of_kind(objects, "PrometheusRule")] == rules
