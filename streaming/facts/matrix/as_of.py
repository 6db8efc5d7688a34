"""The matrix as it stood: the state as of a moment, and no later."""

from dataclasses import replace

from checkpoints.commit.epochs import checkpoint_of
from checkpoints.commit.recorded import batch_marks, commit_of, judged_in, mark_at
from checkpoints.reading.reader import Reader
from checkpoints.store import StateStore
from streaming.core.model.errors import QuestionError
from streaming.core.replay.span import Moment, epoch_at


def reader_as_of(reader: Reader, moment: Moment) -> Reader:
    """The state as of the last batch of a moment; QuestionError if there was none yet."""
    store = StateStore(reader.root)
    marks = batch_marks(store)
    epoch = epoch_at(marks, moment, lambda csn: judged_in(store, csn))
    mark = mark_at(marks, epoch)
    row = None if mark is None else commit_of(store, mark.batch)
    if row is None:
        raise QuestionError(f"no batch was committed at {moment.text}: name a later moment")
    return replace(reader, commit=checkpoint_of(row))
