"""The chart as a test renders it, and the objects in what it gives."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.test_setup import CHECKOUT

CHART = CHECKOUT / "deploy" / "helm" / "slackwater"
CONFIG = CHECKOUT / "deploy" / "hub.toml"
VALUES = {file.stem: file for file in sorted((Path(__file__).parent / "values").glob("*.yaml"))}
"""The files of values by name: plain, everything, existing, spark."""

Object = dict[str, Any]
Helm = Callable[..., "subprocess.CompletedProcess[str]"]
Render = Callable[..., list[Object]]


def of_kind(objects: list[Object], kind: str) -> list[Object]:
    """The objects of a kind."""
    return [each for each in objects if each["kind"] == kind]


def the(objects: list[Object], kind: str) -> Object:
    """The only object of a kind."""
    (found,) = of_kind(objects, kind)
    return found


def pod_of(objects: list[Object]) -> Object:
    """The pod that runs the hub."""
    pod: Object = the(objects, "Deployment")["spec"]["template"]
    return pod


def container_of(objects: list[Object]) -> Object:
    """The hub's container in it."""
    (container,) = pod_of(objects)["spec"]["containers"]
    return dict(container)
