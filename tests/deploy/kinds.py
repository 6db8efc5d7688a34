"""Kubernetes objects against the schemas of their kinds, strictly: an unknown field is an error."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
from kubeflow_spark_api.models.spark_v1beta2_spark_application import SparkV1beta2SparkApplication

KUBERNETES = ("1.27", "1.32", "1.37")
"""The versions whose schemas each object must fit: the oldest that the chart takes, and newer."""

_SCHEMAS = Path(__file__).parent / "schemas"
_MONITORING = "monitoring.coreos.com/v1"
_VALUE = "actual_instance"
"""The field in which these models wrap a quantity, or an integer or string."""
_SPARK = "sparkoperator.k8s.io/v1beta2"


def validate(document: dict[str, Any]) -> None:
    """Raise ValidationError, or SchemaNotFoundError: a kind without a schema is no success."""
    match document["apiVersion"], document["kind"]:
        case (group, kind) if group == _MONITORING:
            jsonschema.validate(document, _stored(kind.lower()))
        case (group, "SparkApplication") if group == _SPARK:
            jsonschema.validate(document, _spark_application())
        case _:
            for version in KUBERNETES:
                kubernetes_validate.validate(document, version, strict=True)


def compose_schema() -> dict[str, Any]:
    """The schema of a compose file, by the specification."""
    return _stored("compose")


@cache
def _stored(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((_SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))
    return found


@cache
def _spark_application() -> dict[str, Any]:
    """The schema of the operator's own Python models, made strict."""
    return dict(_strict(SparkV1beta2SparkApplication.model_json_schema(by_alias=True)))


def _strict(node: Any) -> Any:  # noqa: ANN401  # any JSON
    """A schema that refuses unknown fields; a model of one value of several types is that value."""
    if isinstance(node, list):
        return [_strict(each) for each in node]
    if not isinstance(node, dict):
        return node
    if _VALUE in node.get("properties", {}):
        return {"type": ["string", "number"]}
    new = {name: _strict(each) for name, each in node.items()}
    if isinstance(new.get("properties"), dict) and new.get("type") == "object":
        new.setdefault("additionalProperties", False)
    return new
