"""The matrix as it stood: the state as of a moment, and no later."""

from dataclasses import replace

from checkpoints.commit.recorded import batch_marks
from checkpoints.reading.as_of import commit_behind, epoch_as_of
from checkpoints.reading.reader import Reader
from checkpoints.store import StateStore
from streaming.core.model.errors import QuestionError
from streaming.core.replay.span import Moment


def reader_as_of(reader: Reader, moment: Moment) -> Reader:
    """The state as of the last batch of a moment; QuestionError if there was none yet."""
    store = StateStore(reader.root)
    marks = batch_marks(store)
    commit = commit_behind(store, marks, epoch_as_of(store, marks, moment))
    if commit is None:
        raise QuestionError(f"no batch was committed at {moment.text}: name a later moment")
    return replace(reader, commit=commit)
