"""The pins of a state: which hub epochs an operator keeps readable, and at what cost."""

from collections.abc import Sequence

from checkpoints.commit.recorded import BatchMark, batch_marks, mark_at
from checkpoints.maintenance import pins as recorded
from checkpoints.reading.as_of import commit_behind, travel_to
from checkpoints.store import StateStore
from streaming.config.config import Config
from streaming.core.model.errors import QuestionError
from streaming.core.replay.pins import Pin
from streaming.core.replay.span import Moment
from streaming.facts.history.past_rows import past


def pins_there(config: Config) -> dict[str, Pin]:
    """Name -> pin; StateError without a state."""
    with past(config) as store:
        return recorded.pins(store)


def pin_of(config: Config, name: str, moment: Moment | None) -> Pin:
    """The pin of this name at a moment; QuestionError if that is gone or the name is taken."""
    with past(config) as store:
        known = recorded.pins(store).get(name)
        if known is not None:
            raise QuestionError(
                f"{name} pins hub epoch {known.hub_epoch} already: choose another name, or run"
                f" `slackwater unpin {name}` first"
            )
        marks = batch_marks(store)
        epoch = travel_to(store, marks, moment)
        mark = mark_at(marks, epoch)
        return Pin(name, epoch, mark.at_ms if mark else 0)


def listed_pins(config: Config) -> list[tuple[Pin, int | None]]:
    """Each pin by hub epoch, with the bytes that it keeps.

    None: that version of `rows` was gone before it was pinned, and the changelog tells its rows.
    """
    with past(config) as store:
        marks = batch_marks(store)
        found = sorted(recorded.pins(store).values(), key=lambda one: (one.hub_epoch, one.name))
        return [(pin, _held(store, marks, pin)) for pin in found]


def _held(store: StateStore, marks: Sequence[BatchMark], pin: Pin) -> int | None:
    commit = commit_behind(store, marks, pin.hub_epoch)
    return None if commit is None else recorded.bytes_held(store.root, commit)
