"""`attach` and `detach`: make a database a replica, and an ordinary one again."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated

import typer

from connectors.agent.attaching import InstallPlan, ReplicaPlace
from connectors.agent.settings import DatabaseAddress
from connectors.databases import kind_of, parse_dsn
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, confirm
from streaming.cli.start.agent import Discard, Load, Replica, Shared
from streaming.cli.start.points import write_points
from streaming.config.config import Config
from streaming.config.sources.load import load
from streaming.core.model.errors import ConfigError, StateError
from streaming.core.model.table import Table
from streaming.core.text.wording import as_count
from streaming.terminal.output import write_json, write_line, write_sentence

Place = Annotated[
    DatabaseAddress,
    typer.Argument(
        metavar="DSN",
        parser=parse_dsn,
        help="The database: postgresql://USER@HOST:PORT/NAME, or a file of SQLite.",
    ),
]
Tables = Annotated[
    str | None,
    typer.Option(
        "--tables", metavar="A,B", help="Only these of the configured tables; the others later."
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do it without asking.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only print what it does, as SQL that anybody may run.")
]


def attach(
    database: Place,
    *,
    replica: Replica,
    tables: Tables = None,
    config: ConfigPath = DEFAULT_CONFIG,
    rows_are_shared: Shared = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Make a database a replica, for its agent to start; print first what that does.

    Who was interrupted, or lacks a right, runs it again: it goes on behind what is done.
    """
    configured = load(config)
    key = _key(configured, replica)
    chosen = _chosen(configured.tables_at(replica), tables)
    kind, place = kind_of(database.scheme), database.place
    plan = kind.attach_plan(place, key, chosen, rows_are_shared=rows_are_shared)
    done = list[str]()
    if _is_wanted(plan, f"Attach it as {replica}?", yes=yes, dry_run=dry_run, as_json=as_json):
        done = kind.attach(place, key, chosen, rows_are_shared=rows_are_shared)
    _write_end(plan, done, as_json=as_json)
    if not as_json and plan.steps and (done or not dry_run):
        write_line(f"{replica} is attached: start its agent")
    left = [name for name in configured.table_map() if name not in {one.name for one in chosen}]
    if not as_json and left:
        listed = ", ".join(left)
        write_sentence(f"not attached with these, without which its agent does not start: {listed}")


def detach(
    database: Place,
    *,
    replica: Replica,
    discard_unpublished: Discard = False,
    load_: Load = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Remove every trace of an agent from a database, and look that nothing is left.

    No agent may run on it.
    """
    kind, place = kind_of(database.scheme), database.place
    plan = kind.detach_plan(place, replica)
    done = list[str]()
    if _is_wanted(plan, f"Detach {replica}?", yes=yes, dry_run=dry_run, as_json=as_json):
        done = kind.uninstall(
            place, replica=replica, discards_unpublished=discard_unpublished, load=load_
        )
    _write_end(plan, done, as_json=as_json)
    if not as_json and not dry_run:
        for one in done:
            write_line(f"removed: {one}")
        removed = f"{as_count(len(done), 'object')} removed, and nothing is left" if done else None
        write_line(f"{replica}: {removed or 'the database holds nothing of an agent'}")


def _key(config: Config, replica: str) -> ReplicaPlace:
    """The replica, and its place among all; ConfigError: there is none of this name."""
    rid, rids = config.replica(replica).rid, sorted(one.rid for one in config.replicas)
    return ReplicaPlace(replica, rid, rids.index(rid) + 1, len(rids))


def _chosen(configured: Mapping[str, Table], names: str | None) -> list[Table]:
    """The tables of these names; ConfigError: one is not configured."""
    wanted = [*configured] if names is None else [one.strip() for one in names.split(",")]
    unknown = [one for one in wanted if one not in configured]
    if unknown:
        raise ConfigError(
            f"there is no table {unknown[0]!r} in the configuration: use some of"
            f" {', '.join(configured)}"
        )
    return [configured[one] for one in wanted]


def _is_wanted(
    plan: InstallPlan, question: str, *, yes: bool, dry_run: bool, as_json: bool
) -> bool:
    """Show the plan, and return whether it is to be carried out; StateError: it cannot be."""
    if as_json and not (yes or dry_run):
        raise ConfigError("give --yes or --dry-run with --json, which cannot ask")
    if not as_json:
        write_points(plan.points, "-- ")
        for step in plan.steps:
            write_sentence(f"-- {step.what}{': done' if step.is_done else ''}")
            for statement in step.statements:
                write_line(f"{statement};")
        for note in plan.notes:
            for line in note.splitlines():
                write_sentence(f"-- {line}")
    if plan.in_the_way:
        raise StateError("nothing is done: " + "; ".join(plan.in_the_way))
    if dry_run or all(step.is_done for step in plan.steps):
        return False
    if lacking := [step.to_do for step in plan.steps if step.to_do]:
        raise StateError("nothing is done: " + "; ".join(lacking))
    if not yes:
        confirm(question)
    return True


def _write_end(plan: InstallPlan, done: list[str], *, as_json: bool) -> None:
    if as_json:
        steps = [{"what": one.what, "statements": one.statements} for one in plan.steps]
        points = [asdict(one) for one in plan.points]
        write_json({"points": points, "steps": steps, "notes": plan.notes, "done": done})
