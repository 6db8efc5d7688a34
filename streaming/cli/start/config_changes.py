"""`config diff` and `apply`: what a file would change where a hub has run, and have it changed."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from checkpoints.config import apply_configuration, stored_versions
from checkpoints.reading.reader import open_state
from checkpoints.store import StateStore
from streaming.cli.exit_codes import ExitCode, cannot_say
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, now
from streaming.config.applied import not_applicable, read_stored
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
After = Annotated[
    int | None,
    typer.Option(
        "--after",
        metavar="VERSION",
        min=0,
        help="Apply it only if this version is the last one, which the difference is from.",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Apply it; without it nothing is changed.")]


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


def apply(
    file: NewConfig = DEFAULT_CONFIG,
    *,
    yes: Yes = False,
    after: After = None,
    as_json: AsJson = False,
) -> None:
    """Show what differs, as `config diff`; with --yes it holds from the next hub epoch on.

    A running hub takes it over between two batches, without a restart. What needs a restart is
    refused with exit 4, and so is what a hub would refuse; then nothing is applied.

    While the hub has not taken a version that was applied before, another one is applied only with
    --after, which names that version: a file that was made before it would undo it unseen.
    """
    with cannot_say():
        config = load(file)
        found = compared(config)
    restart = [one.path for one in not_applicable(found.differences)]
    is_refused = bool(found.refused or restart)
    version = None
    if yes and found.differences and not is_refused:
        with cannot_say():
            version = _apply(config, found.version, after)
    if as_json:
        write_json({**asdict(found), "restart": restart, "applied": version})
    else:
        write_compared(found, file)
        for path in restart:
            write_error(f"{path} needs a restart: start the hub with {file} instead")
        if version is not None:
            write_line(
                f"configuration {version} is applied: a running hub takes it with its next batch,"
                " and a hub that is started with this file begins with it"
            )
        elif found.differences and not is_refused:
            write_line("nothing is applied: --yes does it")
    if is_refused:
        raise typer.Exit(ExitCode.REFUSED)
    raise typer.Exit(ExitCode.NO if found.differences and not yes else ExitCode.YES)


def _apply(config: Config, compared_with: int, after: int | None) -> int:
    """Store the configuration; StateError if another one was stored since it was compared.

    `after`: the version that the operator has seen last; None: he does not say.
    """
    waits = open_state(config.hub.state).untaken_configuration() if after is None else None
    if waits is not None:
        raise StateError(
            f"nothing is applied: configuration {waits} was applied, and the hub has not taken it"
            " yet; a file that was made before would undo it. Apply this one once `slackwater"
            " status` shows no such version, or look at `slackwater config diff` and say"
            f" --after {waits}"
        )
    if after not in (None, compared_with):
        raise StateError(
            f"nothing is applied: configuration {compared_with} is the last one, and not {after};"
            " look at `slackwater config diff` again"
        )
    at_ms = round(now().timestamp() * 1_000)
    store = StateStore(config.hub.state)
    version = apply_configuration(store, config.document(), compared_with, at_ms)
    if version is None:
        raise StateError(
            f"nothing is applied: configuration {compared_with} was replaced while the file was"
            " compared with it; look at `slackwater config diff` again"
        )
    return version


def compared(config: Config) -> ComparedConfig:
    """The configuration beside the last that its state has; StateError if there is none."""
    stored = stored_versions(config.hub.state)
    if not stored:
        raise StateError(
            f"no hub has run with the state in {config.hub.state}: there is nothing to compare with"
        )
    history = config_history([one.document for one in stored])
    return ComparedConfig(
        stored[-1].version,
        differences(read_stored(stored[-1]), config),
        [
            *complaints(config.table_map().values(), config.functions.modules),
            *history_faults(config, history),
        ],
        [*history.warnings(config)],
    )


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
