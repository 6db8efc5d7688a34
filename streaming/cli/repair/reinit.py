"""`reinit`: empty a replica's database, so that it gets everything from the hub anew."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module

from checkpoints.reading.reader import Reader, open_state
from connectors.agent.found import KnownOwn
from connectors.databases import kind_of
from connectors.kafka.client_errors import OnlyFaults
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, ReplicaName, now
from streaming.cli.start.agent import Database, Load, absolute
from streaming.config.config import Config
from streaming.config.sources.load import load
from streaming.core.model.column_filter import ColumnFilter
from streaming.core.model.errors import StateError
from streaming.core.text.wording import as_count
from streaming.terminal.output import write_error, write_json, write_line, write_sentence


def reinit(
    replica: ReplicaName,
    *,
    database: Database,
    config: ConfigPath = DEFAULT_CONFIG,
    load_: Load = None,
    as_json: AsJson = False,
) -> None:
    """Empty the database of a replica whose agent is stopped; started, it gets everything anew.

    The rows that the hub does not have so are written to a file first.
    """
    configured = load(config)
    agent_settings = import_module("streaming.config.agent").agent_settings
    settings = replace(agent_settings(configured, replica, absolute(database)), load=load_)
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    for handler in logging.getLogger().handlers:
        handler.addFilter(OnlyFaults())
    reader = _state_of(configured)
    images = (
        {}
        if reader is None
        else import_module("streaming.facts.history.images").hub_images(
            reader, configured.table_map()
        )
    )
    # without the key of hashes nobody can tell what was sent masked, so all of it is saved
    known = {} if any(configured.masking_faults()) else configured.columns_at(replica)
    kind = kind_of(database.scheme)
    path = kind.saved_at(settings.database.place, f"reinit-{now():%Y%m%dT%H%M%S%fZ}")
    saved = kind.reinit(
        settings,
        _known(reader, settings.rid),
        lambda table, key, image: _as_sent(known, table, images.get((table, key))) == image,
        path,
    )
    if as_json:
        write_json({"replica": replica, "saved": saved, "file": str(path) if saved else None})
        return
    if saved:
        rows = as_count(saved, "row")
        write_sentence(
            f"{rows} that the hub does not have so: saved in {path}, and no longer in the database"
        )
    else:
        write_line("the hub has every row of it, so none is saved")
    write_line(f"{replica} is emptied: start its agent, and it gets everything from the hub")


def _as_sent(filters: Mapping[str, ColumnFilter], table: str, image: str | None) -> str | None:
    """A row of the hub as the replica has it."""
    return filters[table].shown(image) if table in filters else image


def _state_of(config: Config) -> Reader | None:
    """The hub's state if it is on this machine."""
    try:
        return open_state(config.hub.state)
    except StateError as error:
        write_error(f"every row is saved, because none can be compared with the hub's: {error}")
        return None


def _known(reader: Reader | None, rid: int) -> KnownOwn:
    """What the hub knows of the replica's own changes, which its topic may hold no more."""
    if reader is None or reader.commit is None:
        return KnownOwn()
    state = reader.commit.state
    known = state.replicas.get(rid)
    opno = 0 if known is None else max([known.opno, *known.opno_above])
    return KnownOwn(state.largest.get(rid, ""), opno)
