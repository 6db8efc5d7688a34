"""`backup` and `restore`: copies of the hub's state."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from streaming.cli.appends import appends
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, now, opened
from streaming.config.config import Config
from streaming.config.sources.load import load
from streaming.core.access.root import StateRoot, parse_root
from streaming.core.access.secret_names import without_login
from streaming.core.model.command import CommandName
from streaming.core.text.wording import as_count
from streaming.terminal.output import write_json, write_line

Place = Annotated[
    str,
    typer.Argument(
        metavar="FOLDER",
        help="Of the copy, or s3://bucket/prefix with the access of [s3]; nothing else may be"
        " in it.",
    ),
]
Lose = Annotated[
    bool,
    typer.Option(
        "--lose", help="Give up what the backup had not read and the changes topics no longer hold."
    ),
]


def _root(place: str, config: Config) -> StateRoot:
    """Where a copy is to be, or is."""
    try:
        root = parse_root(place)
    except ValueError as error:
        raise typer.BadParameter(f"{without_login(place)}: {error}") from None
    return root.absolute() if isinstance(root, Path) else replace(root, access=config.s3.access)


def backup(folder: Place, *, config: ConfigPath = DEFAULT_CONFIG, as_json: AsJson = False) -> None:
    """Copy the state as its last commit left it; the hub may go on working."""
    from checkpoints.maintenance.backup import back_up  # noqa: PLC0415 - deltalake takes its time
    from checkpoints.maintenance.leases import leased  # noqa: PLC0415

    configured, reader = opened(config)
    with leased(reader.root, "backup"):
        made = back_up(reader.root, _root(folder, configured), int(now().timestamp() * 1_000))
    if as_json:
        write_json({"folder": folder, "hub": configured.hub.name, **asdict(made)})
        return
    rows = as_count(sum(made.rows.values()), "row")
    write_line(f"backup of hub epoch {made.hub_epoch} in {folder}: {rows} of all tables")
    write_line(
        "the topics must keep what comes from now on for as long as you would restore it:"
        " `slackwater restore` reads them again from here"
    )


@appends(CommandName.RECOVER_HUB)
def restore(
    folder: Place,
    *,
    config: ConfigPath = DEFAULT_CONFIG,
    lose: Lose = False,
    as_json: AsJson = False,
) -> None:
    """Make the hub's state of a backup; the hub must not run, and its state be away.

    The hub's next start goes on from it as the next generation, if anything was sent behind the
    backup: it reads the topics again from where the backup was, and every replica gets a full copy.
    """
    from checkpoints.commit.lock import only_hub  # noqa: PLC0415
    from checkpoints.maintenance import backup as copies  # noqa: PLC0415 - as above
    from checkpoints.reading.reader import open_state  # noqa: PLC0415
    from streaming.cli.command import append_command  # noqa: PLC0415

    configured = load(config)
    root = configured.hub.state
    with only_hub(root):
        made = copies.restore(_root(folder, configured), root)
        order = "lose" if lose else None
        append_command(open_state(root), CommandName.RECOVER_HUB, order)
    if as_json:
        write_json({"state": str(root), **asdict(made)})
        return
    write_line(f"the state in {root} is the one of hub epoch {made.hub_epoch}")
    write_line(
        "start the hub: if anything was sent behind that, it goes on as the next generation, and"
        " every replica gets a full copy; `slackwater resync` shows how far they are"
    )
