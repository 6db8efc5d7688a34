"""What an agreement was sent once, made again from the changelog: the same records, the same ids.

A consumer that has a batch skips it, and one of another session drops it.
"""

from collections.abc import Iterator
from typing import NamedTuple

from checkpoints.commit.epochs import Checkpoint, checkpoint_of
from checkpoints.commit.recorded import BatchMark, commit_of
from checkpoints.store import StateStore
from streaming.hub.batch.publishing import logged
from streaming.hub.batch.settings import BatchSettings
from streaming.replay.configured import ConfigsThen
from streaming.stages import publish as publish_stage


class SentRecord(NamedTuple):
    """A record of an updates topic; `items`: how many rows it has."""

    hub_epoch: int
    id: str
    items: int
    value: bytes


class NotLogged(NamedTuple):
    """A hub epoch in which a resync sent ranges of rows, which stand in no log."""

    hub_epoch: int


def sent_again(
    store: StateStore, configs: ConfigsThen, marks: list[BatchMark], agreement: str
) -> Iterator[SentRecord | NotLogged]:
    """Every record that these batches sent to an agreement, in order."""
    for mark in marks:
        row = commit_of(store, mark.batch)
        commit = checkpoint_of(row) if row else None
        if commit is None or agreement not in commit.state.to_send:
            continue
        if commit.state.to_send[agreement].ranges:
            yield NotLogged(commit.state.hub_epoch)
        else:
            settings = configs.at(commit.config_version).settings
            yield from _records(store, settings, commit, agreement)


def _records(
    store: StateStore, settings: BatchSettings, commit: Checkpoint, name: str
) -> Iterator[SentRecord]:
    state, topology = commit.state, settings.topology
    one, to_send = state.agreements[name], state.to_send[name]
    subscription, floors = topology.subscriptions[name], state.replicas[one.consumer].floors
    outgoing = logged(store, topology.tables, to_send, subscription, floors)
    chunks = publish_stage.chunks(
        outgoing, one, to_send, subscription, state.generation, settings.chunks, floors
    )
    for chunk in chunks:
        items = len(chunk.rows)
        yield SentRecord(to_send.to, chunk.header.id, items, outgoing.value(chunk))
