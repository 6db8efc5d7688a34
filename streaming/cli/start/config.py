"""`config`: validate the configuration, and list what can be configured."""

import ast
import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from checkpoints.config import documents
from connectors.database_kinds import KINDS
from connectors.databases import kind_of
from connectors.jars import JarsError
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath
from streaming.cli.start.config_changes import apply, diff
from streaming.config import functions
from streaming.config.access import access_faults
from streaming.config.config import Config
from streaming.config.errors import section
from streaming.config.history import config_history, history_faults
from streaming.config.holding import HOLDS, HoldsFrom
from streaming.config.packet_folders import packet_faults
from streaming.config.sources.load import load, options_in
from streaming.core.access.root import BucketRoot
from streaming.core.model.errors import ConfigError, StateError
from streaming.core.text.wording import as_count
from streaming.replay.sql.tables import HUB_NAMES
from streaming.terminal.output import write_error, write_json, write_line, write_table

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The configuration.")
app.command()(diff)
app.command()(apply)

_OF_HUB = (
    "in `slackwater sql` the hub has a table of this name, which cannot be read together with this"
    " one; give the table another name"
)


@dataclass(frozen=True, slots=True)
class FieldDoc:
    """The description of a field of the configuration; `default` None: it is required.

    `holds`: from when on a change of it holds.
    """

    path: str
    type: str
    default: str | None
    meaning: str
    holds: HoldsFrom


@app.command()
def check(*, config: ConfigPath = DEFAULT_CONFIG, as_json: AsJson = False) -> None:
    """Exit 0 when the configuration is valid; otherwise list the mistakes, field by field.

    Warnings go to standard error: options that nobody knows, and what the state has and the file
    lacks.
    """
    try:
        valid = load(config)
    except ConfigError:
        for complaint in _complaints_of_options(*options_in(config)):
            write_error(f"warning: {complaint}")
        raise
    warnings = [
        *_name_warnings(list(valid.table_map())),
        *_complaints_of_options(valid.spark, valid.kafka.options),
    ]
    try:
        history = config_history(documents(valid.hub.state))
    except StateError as error:  # where a configuration is checked, its state may be out of reach
        history = config_history([])
        warnings.append(f"it is not compared with what a hub has: {error}")
    faults = [
        *functions.complaints(valid.table_map().values(), valid.functions.modules),
        *history_faults(valid, history),
        *valid.masking_faults(),
        *access_faults(valid.http),
        *packet_faults(valid),
    ]
    if faults:
        raise ConfigError("\n".join(f"{config}: {fault}" for fault in faults))
    for warning in (*warnings, *history.warnings(valid)):
        write_error(f"warning: {warning}")
    if as_json:
        write_json(json.loads(valid.document()))
        return
    counts = (
        as_count(len(valid.replicas), "replica"),
        as_count(len(valid.tables), "table"),
        as_count(len(valid.agreements), "agreement"),
    )
    write_line(f"{config} is valid: {', '.join(counts)}")


def _name_warnings(names: Sequence[str]) -> Iterator[str]:
    """A sentence for each table that should be named otherwise; a hub starts nevertheless."""
    found = [warning for scheme in KINDS for warning in kind_of(scheme).name_warnings(names)]
    found += [(place, _OF_HUB) for place, name in enumerate(names) if name.lower() in HUB_NAMES]
    for place, why in sorted(found):
        yield f"tables[{place}].name = {names[place]!r}: {why}"


def _complaints_of_options(spark: Mapping[str, str], kafka: Mapping[str, str]) -> Iterator[str]:
    """What Spark and Kafka's clients would ignore or refuse, one sentence each."""
    from streaming.jvm.option_names import kafka_complaints, spark_complaints  # noqa: PLC0415

    try:
        yield from spark_complaints(spark)
        yield from kafka_complaints(kafka)
    except JarsError as error:
        yield f"the options of [spark] and [kafka.options] are not checked: {error}"


@app.command()
def sample() -> None:
    """Print a configuration that explains itself, to begin with."""
    text = files("streaming.config").joinpath("sample.toml").read_text(encoding="utf-8")
    write_line(text.rstrip())


@app.command()
def schema(*, as_json: AsJson = False) -> None:
    """Show every field with its type, its default and its meaning."""
    found = list(fields())
    if as_json:
        write_json([asdict(field) for field in found])
        return
    rows = (
        (f.path, f.type, "required" if f.default is None else f.default, f.holds, f.meaning)
        for f in found
    )
    write_table(("field", "type", "default", "holds from", "meaning"), rows)


def fields() -> Iterator[FieldDoc]:
    """Every field, section by section; `[]` marks a section that is a list."""
    for name, info in Config.model_fields.items():
        inner = section(Config, name)
        if inner is None:
            yield _field(name, info, meanings(Config)[name])
            continue
        listed = "[]" if get_origin(info.annotation) is tuple else ""
        yield from _fields_of(inner, f"{name}{listed}")


def _fields_of(model: type[BaseModel], path: str) -> Iterator[FieldDoc]:
    """The fields of a section, then those of the sections in it."""
    told = meanings(model)
    for name, info in model.model_fields.items():
        yield _field(f"{path}.{name}", info, told[name])
    for name in model.model_fields:
        inner = section(model, name)
        if inner is not None:
            yield from _fields_of(inner, f"{path}.{name}")


def meanings(model: type) -> dict[str, str]:
    """The docstrings under the fields of a section or the members of an enum, from its source."""
    body = ast.parse(inspect.getsource(model)).body[0]
    assert isinstance(body, ast.ClassDef)  # noqa: S101  # the source of a class is one
    found = {}
    for field, text in pairwise(body.body):
        match field, text:
            case (
                ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(value=str(doc))),
            ):
                found[name] = " ".join(doc.split())
            case _:
                pass
    return found


def _field(path: str, info: FieldInfo, meaning: str) -> FieldDoc:
    return FieldDoc(path, _type_text(info.annotation), _default_text(info), meaning, HOLDS[path])


def _default_text(info: FieldInfo) -> str | None:
    default = info.default
    if default is PydanticUndefined:
        return None
    return "none" if default is None else json.dumps(_json_value(default))


def _json_value(value: object) -> object:
    match value:
        case Path():
            return str(value)
        case BaseModel():
            return value.model_dump(mode="json")
        case _:
            return value


def _type_text(kind: Any) -> str:  # noqa: ANN401  # annotations have no common type
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _type_text(inner[0])
    if origin is tuple:
        return f"list of {_type_text(inner[0])}"
    if origin is dict:
        return f"table of {_type_text(inner[1])}"
    if origin in (Union, UnionType):
        return " or ".join(_type_text(one) for one in inner if one is not type(None))
    if origin is Literal:
        return " or ".join(json.dumps(one) for one in inner)
    if issubclass(kind, BaseModel):
        return "a section"
    if issubclass(kind, Enum):
        return "one of " + ", ".join(member.value for member in kind)
    return {
        str: "text",
        int: "integer",
        float: "number",
        Path: "path",
        BucketRoot: "s3://bucket/prefix",
    }[kind]
