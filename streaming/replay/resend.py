"""What an agreement was sent once, made again from the changelog: the same records, the same ids.

A consumer that has a batch skips it, and one of another session drops it.
"""

from collections.abc import Iterator
from typing import NamedTuple

from checkpoints.commit.epochs import checkpoint_of
from checkpoints.commit.recorded import BatchMark, commit_of
from checkpoints.store import StateStore
from streaming.hub.batch.publishing import chunks_of, logged
from streaming.replay.configured import ConfigsThen


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
            outgoing = logged(store, settings, commit.state, agreement)
            for chunk in chunks_of(outgoing, settings, commit.state, agreement):
                items, value = len(chunk.rows), outgoing.value(chunk)
                yield SentRecord(commit.state.to_send[agreement].to, chunk.header.id, items, value)
