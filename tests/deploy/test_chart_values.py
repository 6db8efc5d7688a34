"""Claims about the chart's values and its package: what is refused, and what comes along."""

import re
import shutil
from pathlib import Path

import pytest
import yaml

from streaming.cli.commands import COMMANDS
from streaming.facts.versions import versions
from tests.deploy.chart import CHART, Helm
from tests.test_setup import CHECKOUT

IN_BUCKET = '[hub]\nstate = "s3://lake/hub"\n'
REFUSED = {
    "no configuration": ([], "no configuration: give --set-file config=hub.toml"),
    "a misspelt value": (["--set", "persistance.size=1Gi"], "persistance"),
    "an unknown mode": (["--set", "mode=daemon"], "mode"),
    "a password in a variable": (
        ["--set", "extraEnv[0].name=SLACKWATER_KAFKA__OPTIONS__SASL__PASSWORD"],
        "extraEnv",
    ),
    "a standby without a shared volume": (
        ["--set", "standby.enabled=true,existingConfigMap=c"],
        "several pods share the state: persistence.accessModes must be",
    ),
    "a standby without a volume": (
        ["--set", "standby.enabled=true,persistence.enabled=false,existingConfigMap=c"],
        "several pods share the state: persistence.enabled must be true",
    ),
    "a state that ends with its pod": (
        ["--set-string", "config=[hub]\nstate = '/data/state'\n"],
        "hub.state is on no volume",
    ),
    "a standby on a bucket": (
        ["--set", "standby.enabled=true", "--set-string", f"config={IN_BUCKET}"],
        "a bucket has no lock that two pods share",
    ),
    "a port that everybody in the cluster reads": (
        ["--set", "existingConfigMap=c"],
        "existingSecret must hold SLACKWATER_HTTP__TOKEN",
    ),
    "a standby of the operator": (
        [
            "--set",
            "standby.enabled=true,mode=sparkapplication,existingConfigMap=c",
            "--set",
            "persistence.existingClaim=c",
        ],
        "the Spark operator starts one driver",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_values_that_cannot_work_are_refused_with_the_reason(helm: Helm, case: str) -> None:
    """Before anything is installed, and not by a pod that never starts."""
    arguments, reason = REFUSED[case]

    done = helm("template", "site", CHART, *arguments)

    assert done.returncode != 0
    assert reason in done.stderr


@pytest.mark.parametrize("mode", ["deployment", "sparkapplication"])
def test_a_state_in_a_bucket_is_left_there_and_needs_no_volume(helm: Helm, mode: str) -> None:
    """A variable that overrides it would keep the state on a disk, and nobody would know."""
    settings = f"mode={mode},existingSecret=s"
    done = helm("template", "site", CHART, "--set", settings, "--set-string", f"config={IN_BUCKET}")

    assert done.returncode == 0, done.stderr
    assert "PersistentVolumeClaim" not in done.stdout
    assert "SLACKWATER_HUB__STATE" not in done.stdout


def test_every_value_has_a_default_and_stands_in_the_schema() -> None:
    """The schema refuses what it does not know, so what it lacks could not be set at all."""
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = yaml.safe_load((CHART / "values.schema.json").read_text())

    assert schema["properties"].keys() - {"global"} == values.keys()
    for name, value in values.items():
        inner = schema["properties"][name].get("properties")
        if inner is not None and name != "probes":
            assert inner.keys() == value.keys(), name


def test_the_chart_is_of_this_version() -> None:
    """Its default image is the one of its release, with the Spark that the hub brings."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())

    assert chart["appVersion"] == chart["version"] == versions().slackwater
    assert values["spark"]["version"] == versions().spark


def test_a_packaged_chart_brings_its_files(helm: Helm, tmp_path: Path) -> None:
    """Links lead out of the chart's folder; an archive of it must not."""
    done = helm("package", CHART, "--destination", tmp_path)
    assert done.returncode == 0, done.stderr
    (archive,) = tmp_path.glob("*.tgz")
    shutil.unpack_archive(archive, tmp_path / "out")

    found = {file.name for file in (tmp_path / "out").rglob("files/dashboards/*.json")}

    assert found == {file.name for file in (CHECKOUT / "deploy" / "grafana").glob("*.json")}
    assert not any(file.is_symlink() for file in (tmp_path / "out").rglob("*"))


def test_the_notes_name_commands_that_exist() -> None:
    """They are what an operator reads first after an installation."""
    notes = (CHART / "templates" / "NOTES.txt").read_text()
    commands = {one.name for one in COMMANDS}

    assert set(re.findall(r"-- slackwater (\w+)", notes)) <= commands
