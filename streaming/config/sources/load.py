"""Reads the configuration: one TOML file, which secret files and the environment override."""

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from connectors.trusted_file import check_trusted
from streaming.config.config import ENV_DELIMITER, ENV_PREFIX, Config
from streaming.config.errors import explain
from streaming.config.options import flat
from streaming.config.packet_folders import from_folder
from streaming.config.parts import problems
from streaming.config.sections import HttpConfig
from streaming.config.sources.secret_files import secret_files
from streaming.config.text_numbers import text_numbers
from streaming.core.access.port_access import FILES
from streaming.core.access.root import BucketRoot, StateRoot, is_address
from streaming.core.access.secret_names import without_login
from streaming.core.model.errors import ConfigError
from streaming.core.text.edited_text import edited_text

_AGREEMENT = re.compile(r"agreements\[(\d+)\]")

STATE_FOLDER_VARIABLE = "SLACKWATER_STATE_FOLDER"


NO_KAFKA = {"bootstrap_servers": "no-kafka:0"}
"""The section [kafka] of whom Kafka does not reach, and who never asks it."""


def load(path: Path, *, needs_kafka: bool = True) -> Config:
    """Read the file, secret files, environment; ConfigError names each field that cannot be used.

    `hub.state` becomes absolute: a relative one starts at the file's folder, or at the one that
    SLACKWATER_STATE_FOLDER names. Other paths become absolute too, and start at the file's folder.
    `needs_kafka` False: the section [kafka] may be missing.
    """
    data = _read(path)
    if not needs_kafka:
        data.setdefault("kafka", NO_KAFKA)
    variables = [*_ours(os.environ), *_ours(secret_files())]
    texts = [*text_numbers(Config, data)]
    try:
        config = _with_environment(data) if variables else Config(**data)
    except ValidationError as error:
        lines = explain(error, variables)
        if not _names_parts(variables):  # the file is what was validated
            lines = list(dict.fromkeys([*lines, *problems(data)]))
        raise _unusable(path, _named([*texts, *lines], data)) from None
    if texts:
        raise _unusable(path, _named(texts, data))
    config = _compared(from_folder(config, path.resolve().parent), path.resolve().parent)
    hub = config.hub.model_copy(update={"state": _reachable(config, path)})
    return config.model_copy(update={"hub": hub, "http": _from_folder(config.http, path)})


def _unusable(path: Path, lines: Iterable[str]) -> ConfigError:
    return ConfigError("\n".join(f"{path}: {line}" for line in lines))


def _named(lines: Iterable[str], data: Mapping[str, Any]) -> Iterator[str]:
    """The lines, those on an agreement with its name before its place in the file."""
    given = data.get("agreements")
    agreements = given if isinstance(given, list) else []
    names = [one.get("name") if isinstance(one, dict) else None for one in agreements]
    for line in lines:
        place = _AGREEMENT.match(line)
        index = int(place[1]) if place else len(names)
        name = names[index] if index < len(names) else None
        yield f"agreement {name}: {line}" if isinstance(name, str) else line


def options_in(path: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Those of [spark] and of [kafka.options] in a file that may be wrong otherwise.

    Without the address of the brokers, which is no option; ConfigError if it cannot be read.
    """
    data = _read(path)
    kafka = data.get("kafka")
    options = kafka.get("options") if isinstance(kafka, dict) else None
    others = {n: v for n, v in _texts(options).items() if n != "bootstrap.servers"}
    return _texts(data.get("spark")), others


def _texts(options: object) -> dict[str, str]:
    """The options that are text; none if these are no table."""
    found = options if isinstance(options, dict) else {}
    return {name: value for name, value in found.items() if isinstance(value, str)}


def _from_folder(http: HttpConfig, path: Path) -> HttpConfig:
    """The section with the paths of its files from the folder of the configuration on."""
    folder = path.resolve().parent
    files = {name: getattr(http, name) for name in FILES}
    return http.model_copy(
        update={name: file and folder / file.expanduser() for name, file in files.items()}
    )


def _compared(config: Config, folder: Path) -> Config:
    """The configuration with the files that are compared from this folder on."""
    agreements = tuple(
        one
        if one.compare is None
        else one.model_copy(update={"compare": one.compare.from_folder(folder)})
        for one in config.agreements
    )
    return config.model_copy(update={"agreements": agreements})


def _state_folder() -> Path:
    """The folder of a relative state, if the environment names one."""
    named = os.environ.get(STATE_FOLDER_VARIABLE, "")
    if is_address(named):
        raise ConfigError(
            f"{STATE_FOLDER_VARIABLE}={without_login(named)}: give the path of a folder; a"
            " bucket is named in hub.state, with its prefix"
        )
    return Path(named).expanduser()


def _reachable(config: Config, path: Path) -> StateRoot:
    """Where the state is, for whoever opens it: absolute, or with the access to its bucket."""
    state = config.hub.state
    if isinstance(state, BucketRoot):
        return replace(state, access=config.s3.access)
    return path.resolve().parent / _state_folder() / state.expanduser()


def _ours(variables: Iterable[str]) -> list[str]:
    """Those that override a field, in upper case; one of an unknown section is refused.

    A misspelt variable would be ignored in silence; the user would believe it is in force.
    """
    names = [name.upper() for name in variables if name.upper().startswith(ENV_PREFIX)]
    sections = {f"{ENV_PREFIX}{name}".upper() for name in Config.model_fields}
    ours = [n for n in names if n in sections or ENV_DELIMITER in n.removeprefix(ENV_PREFIX)]
    for name in ours:
        if ENV_PREFIX + name.removeprefix(ENV_PREFIX).split(ENV_DELIMITER)[0] not in sections:
            raise ConfigError(
                f"variable {name}: the configuration has no such section:"
                f" use {ENV_PREFIX}<section>{ENV_DELIMITER}<field> with a section of"
                f" {', '.join(Config.model_fields)}"
            )
    return ours


def _names_parts(variables: Iterable[str]) -> bool:
    """Return whether one of them overrides what the parts of a configuration refer to."""
    parts = ("HUB", "REPLICAS", "TABLES", "AGREEMENTS")
    return any(name.removeprefix(ENV_PREFIX).split(ENV_DELIMITER)[0] in parts for name in variables)


def _with_environment(data: dict[str, Any]) -> Config:
    """The configuration with the environment's values over the file's.

    The library for it takes long to import, so it is imported only when something is overridden.
    """
    from pydantic_settings import SettingsError  # noqa: PLC0415

    from streaming.config.sources.environment import FileAndEnvironment  # noqa: PLC0415

    try:
        merged = FileAndEnvironment(**data)
    except SettingsError as error:
        raise ConfigError(f"the environment ({ENV_PREFIX}...): {error}: give JSON") from None
    return Config(**{name: getattr(merged, name) for name in Config.model_fields})


def _hint(error: tomllib.TOMLDecodeError, text: str) -> str:
    """What the line with the error lacks most often; without its value, which may be a secret."""
    found = re.search(r"at line (\d+)", str(error))
    line = text.splitlines()[int(found[1]) - 1] if found else ""
    bare = re.match(r"""\s*([^=]+?)\s*=\s*(?!true\b|false\b)[^\s"'\[{]""", line)
    return f': write text in quotes, as {bare[1]} = "..."' if bare else ""


def _read(path: Path) -> dict[str, Any]:
    text = ""
    try:
        check_trusted(path)
        text = edited_text(path.read_bytes(), str(path))
        data = tomllib.loads(text)
    except FileNotFoundError:
        raise ConfigError(
            f"there is no configuration at {path}: name one with --config or"
            f" {ENV_PREFIX}CONFIG (`slackwater config sample` prints one)"
        ) from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not TOML: {error}{_hint(error, text)}") from None
    if isinstance(kafka := data.get("kafka"), dict) and "options" in kafka:
        kafka["options"] = flat(kafka["options"])
    if "spark" in data:
        data["spark"] = flat(data["spark"])
    return data
