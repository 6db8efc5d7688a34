"""`schema`: the schemas of all replicas side by side; exit 0 if no difference matters."""

from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from checkpoints.reading.reader import Reader
from streaming.cli.exit_codes import ExitCode, cannot_say
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, reader_if_any
from streaming.config.config import Config
from streaming.config.sources.load import load
from streaming.core.model.errors import ConfigError, StateError
from streaming.core.schema.compare import SchemaComparison
from streaming.core.schema.document import DatabaseSchema, schema_of
from streaming.core.text.wording import as_count
from streaming.facts.status.schemas import compared_schemas
from streaming.terminal.output import write_json, write_sentence

Files = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[FILE]...",
        help="Documents of `slackwater agent check --document`.",
        show_default=False,
    ),
]


@cannot_say()
def schema(
    files: Files = None, *, config: ConfigPath = DEFAULT_CONFIG, as_json: AsJson = False
) -> None:
    """Compare the schemas of all replicas with each other and with the configuration.

    They are those that the agents published; a FILE takes the place of its replica's.

    Names each difference and what it causes, and the ids that keep replicas apart. Exit 1 if one
    matters, or the schema of a replica is not known.
    """
    configured = load(config)
    names = [one.name for one in configured.replicas]
    schemas = _of_files(files or [], names)
    reader = _published(configured, is_needed=not schemas)
    found = compared_schemas(configured, reader, schemas)
    if as_json:
        write_json(_document(found))
    else:
        _show(found)
    if not found.is_good:
        raise typer.Exit(ExitCode.NO)


def _published(config: Config, *, is_needed: bool) -> Reader | None:
    """The state with what the agents published; beside files it may be out of reach."""
    try:
        return reader_if_any(config.hub.state)
    except StateError:
        if is_needed:
            raise
        return None


def _of_files(files: list[Path], known: Collection[str]) -> list[DatabaseSchema]:
    """The documents in files; ConfigError if two are of one replica, or one is of none."""
    found = dict[str, Path]()
    schemas = []
    for path in files:
        try:
            one = schema_of(path.read_bytes(), str(path))
        except OSError as error:
            raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
        if one.replica not in known:
            raise ConfigError(
                f"{path} is of {one.replica!r}, which is no replica of the configuration: write it"
                f" with `slackwater agent check --replica` and one of {', '.join(known)}"
            )
        if one.replica in found:
            raise ConfigError(
                f"{found[one.replica]} and {path} are both of replica {one.replica}: write each"
                " with `slackwater agent check --replica NAME`"
            )
        found[one.replica] = path
        schemas.append(one)
    return schemas


def _document(found: SchemaComparison) -> dict[str, Any]:
    ids = [
        {**asdict(one), "ranges": [{**asdict(r), "next": one.step(r)} for r in one.ranges]}
        for one in found.ids
    ]
    return {"is_good": found.is_good, **asdict(found), "ids": ids}


def _show(found: SchemaComparison) -> None:
    matter = [one for one in found.differences if one.matters]
    for number, one in enumerate(matter, 1):
        of = f" {number} of {len(matter)}" if len(matter) > 1 else ""
        write_sentence(f"difference{of}: {one.text}")
    for one in found.differences:
        if not one.matters:
            write_sentence(f"note: {one.text}")
    for ids in found.ids:
        write_sentence(f"ids: {ids.text}")
        for of_replica in ids.ranges:
            write_sentence(f"  {of_replica.replica}: {ids.step(of_replica)}")
    for name in found.unknown:
        write_sentence(
            f"unknown: the schema of {name}: write it with `slackwater agent check --replica {name}"
            " --database FILE --document FILE` and compare that file, or start its agent"
        )
    write_sentence(_conclusion(found, len(matter)))


def _conclusion(found: SchemaComparison, matter: int) -> str:
    of = f"{as_count(len(found.replicas), 'schema')} compared with the configuration"
    if matter:
        return f"{of}: {as_count(matter, 'difference')} to set right"
    if found.unknown:
        return f"{of}: nobody can say before the others are known"
    return f"{of}: no difference matters"
