"""Generates the schemas of this folder from the Go modules that define them: `make schemas`.

The modules' own types are the source, so nothing of them is copied by hand. A CRD's schema is
made strict: a field that it does not know is an error, as a typing error in a chart is.
"""

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
CONTROLLER_GEN = "sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0"
PROMETHEUS_OPERATOR = "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring"
PROMETHEUS_OPERATOR_VERSION = "v0.95.1"
COMPOSE, COMPOSE_VERSION = "github.com/compose-spec/compose-go/v2", "v2.16.2"
KINDS = {"ServiceMonitor", "PrometheusRule"}

_MAIN = f"""\
package main

import (
	"fmt"

	"{COMPOSE}/schema"
	_ "{PROMETHEUS_OPERATOR}/v1"
)

func main() {{ fmt.Print(schema.Schema) }}
"""


def generate() -> None:
    """Write compose.json, and a file for each kind of the Prometheus operator."""
    with tempfile.TemporaryDirectory() as name:
        module = Path(name)
        (module / "main.go").write_text(_MAIN)
        go(module, "mod", "init", "schemas")
        go(module, "get", f"{PROMETHEUS_OPERATOR}@{PROMETHEUS_OPERATOR_VERSION}")
        go(module, "get", f"{COMPOSE}@{COMPOSE_VERSION}")
        go(module, "mod", "tidy")
        write("compose", json.loads(go(module, "run", ".")))
        types, output = f"paths={PROMETHEUS_OPERATOR}/v1", f"output:crd:dir={module / 'crds'}"
        go(module, "run", CONTROLLER_GEN, "crd:maxDescLen=0", types, output)
        for file in (module / "crds").glob("*.yaml"):
            definition = yaml.safe_load(file.read_text())["spec"]
            if definition["names"]["kind"] in KINDS:
                (version,) = definition["versions"]
                schema = strict(version["schema"]["openAPIV3Schema"])
                schema["properties"]["metadata"] = {"type": "object"}
                write(definition["names"]["singular"], schema)


def strict(node: Any) -> Any:  # noqa: ANN401  # any JSON
    """A CRD's schema as JSON Schema, in which fields that are not defined are refused."""
    if isinstance(node, list):
        return [strict(each) for each in node]
    if not isinstance(node, dict):
        return node
    new = {name: strict(each) for name, each in node.items()}
    if new.pop("x-kubernetes-int-or-string", None):
        new.pop("anyOf", None)
        new["type"] = ["integer", "string"]
    if isinstance(new.get("pattern"), str):  # Python takes a flag at the start alone
        new["pattern"] = new["pattern"].replace("^(?i)", "(?i)^")
    if isinstance(new.get("properties"), dict) and new.get("type") == "object":
        new.setdefault("additionalProperties", False)
    return new


def go(folder: Path, *arguments: str) -> str:
    """The output of a go command in the folder."""
    return subprocess.run(
        ["go", *arguments], cwd=folder, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def write(name: str, schema: dict[str, Any]) -> None:
    """Write a schema with its names in order, so that a new version shows as a small difference."""
    text = json.dumps(schema, indent=1, sort_keys=True)
    (HERE / f"{name}.json").write_text(text + "\n")


if __name__ == "__main__":
    generate()
