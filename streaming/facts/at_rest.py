"""The last commit with what a running hub has read since, which needs no commit."""

from dataclasses import replace

from checkpoints.commit.last_poll import read_poll
from checkpoints.reading.reader import Reader


def as_read(reader: Reader) -> Reader:
    """The reader with the positions and the times of what its hub has read behind its commit.

    That is heartbeats that say nothing new, so all else is as committed. They are of one commit:
    behind another one the next poll says what is read.
    """
    commit, poll = reader.commit, read_poll(reader.root)
    if commit is None or poll is None or poll.at_rest.batch != reader.batch:
        return reader
    found, known = poll.at_rest, commit.state.replicas
    newer = {
        rid: replace(known[rid], seen_ms=seen_ms)
        for rid, seen_ms in found.seen_ms.items()
        if rid in known
    }
    state = replace(commit.state, replicas={**known, **newer})
    offsets = {**commit.offsets, **found.offsets}
    return replace(reader, commit=replace(commit, state=state, offsets=offsets))
