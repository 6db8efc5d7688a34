"""Tools for the tests of `deploy/`; without one a test skips, and fails in `make check-deploy`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from deploy import tools
from tests.deploy.chart import CHART, CONFIG, VALUES, Helm, Object, Render
from tests.test_setup import CHECKOUT, NOT_COPIED


def missing(tool: str) -> None:
    """End the test: a check that did not run is no success where the tools were installed."""
    text = f"{tool} is missing: make deploy-tools"
    if os.environ.get("SLACKWATER_DEPLOY_TOOLS") == "required":
        pytest.fail(text)
    pytest.skip(text)


@pytest.fixture
def helm(tmp_path: Path) -> Helm:
    """The command helm, which reads and writes nothing of the user's."""
    if not tools.helm().exists():
        missing("helm")
    homes = {f"HELM_{name}_HOME": str(tmp_path / "helm") for name in ("CACHE", "CONFIG", "DATA")}

    def run(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
        command = [tools.helm(), *arguments]
        return subprocess.run(command, env=homes, capture_output=True, text=True, check=False)

    return run


@pytest.fixture
def render(helm: Helm) -> Render:
    """The objects of the chart, by a file of values and with the sample as configuration."""

    def objects(values: str = "plain", *arguments: str) -> list[Object]:
        file = VALUES[values]
        configured = "existingConfigMap" in file.read_text()
        config = [] if configured else ["--set-file", f"config={CONFIG}"]
        place = ["site", CHART, "--namespace", "replication", "--values", file]
        done = helm("template", *place, *config, *arguments)
        assert done.returncode == 0, done.stderr
        return [each for each in yaml.safe_load_all(done.stdout) if each]

    return objects


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a release, built from a copy of the checkout."""
    folder = tmp_path_factory.mktemp("release")
    copy = folder / "checkout"
    shutil.copytree(CHECKOUT, copy, ignore=NOT_COPIED, symlinks=True)
    subprocess.run([sys.executable, copy / "deploy" / "dist.py", folder / "dist"], check=True)
    return folder / "dist"
