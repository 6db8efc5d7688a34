"""`config diff`: what a file would change of the configuration that a hub has run with."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from checkpoints.config import stored_versions
from streaming.cli.exit_codes import ExitCode, cannot_say
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson
from streaming.config.config import ENV_PREFIX, Config
from streaming.config.difference import ConfigDifference, differences
from streaming.config.functions import complaints
from streaming.config.history import config_history, history_faults
from streaming.config.sources.load import load
from streaming.core.model.errors import StateError
from streaming.core.model.values import json_text
from streaming.core.text.wording import as_count
from streaming.terminal.output import write_error, write_json, write_line

NewConfig = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", envvar=f"{ENV_PREFIX}CONFIG", help="The configuration that is to hold."
    ),
]


@dataclass(frozen=True, slots=True)
class ComparedConfig:
    """A file beside the version that is in force: what differs, is refused, or few expect."""

    version: int
    differences: Sequence[ConfigDifference]
    refused: Sequence[str]
    warnings: Sequence[str]

    @property
    def exit_code(self) -> ExitCode:
        """What is said by `config diff`."""
        if self.refused:
            return ExitCode.REFUSED
        return ExitCode.NO if self.differences else ExitCode.YES


def diff(file: NewConfig = DEFAULT_CONFIG, *, as_json: AsJson = False) -> None:
    """Exit 0 if a hub has run with this configuration last; otherwise show what differs.

    Each difference says from when on it would hold, and what it would cause. Exit 1: there are
    some. Exit 4: a hub would refuse the file, with the reasons.
    """
    with cannot_say():
        found = compared(load(file))
    if as_json:
        write_json(asdict(found))
    else:
        write_compared(found, file)
    raise typer.Exit(found.exit_code)


def compared(config: Config) -> ComparedConfig:
    """The configuration beside the last that its state has; StateError if there is none."""
    stored = stored_versions(config.hub.state)
    if not stored:
        raise StateError(
            f"no hub has run with the state in {config.hub.state}: there is nothing to compare with"
        )
    version, document = [*stored.items()][-1]
    history = config_history(stored.values())
    return ComparedConfig(
        version,
        differences(_in_force(version, document), config),
        [
            *complaints(config.table_map().values(), config.functions.modules),
            *history_faults(config, history),
        ],
        [*history.warnings(config)],
    )


def _in_force(version: int, document: str) -> Config:
    try:
        return Config.from_document(document)
    except ValidationError as error:
        raise StateError(
            f"configuration {version} in the state was written by another version of slackwater,"
            f" and this one cannot read it: {error.errors()[0]['msg']}"
        ) from None


def write_compared(found: ComparedConfig, file: Path) -> None:
    """A line for each difference, and how many there are; the rest goes to standard error."""
    for one in found.differences:
        write_line(line_of(one))
    for warning in found.warnings:
        write_error(f"warning: {warning}")
    for why in found.refused:
        write_error(f"{file}: {why}")
    if found.differences:
        count = as_count(len(found.differences), "difference")
        write_line(f"{count} from configuration {found.version}, with which the hub has run last")
    else:
        write_line(f"{file} is configuration {found.version}, with which the hub has run last")


def line_of(one: ConfigDifference) -> str:
    """A difference: its kind, path, values, from when on it holds, and what it causes."""
    values = [_shown(value) for value in (one.before, one.after) if value is not None]
    causes = f"; {one.causes}" if one.causes else ""
    return f"{one.kind} {one.path}: {' → '.join(values)} (holds from: {one.holds}){causes}"


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json_text(value)
