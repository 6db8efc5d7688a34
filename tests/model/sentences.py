"""The state of a story, and how a function is registered as a sentence of the language."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from streaming.core.records.record import Abort, Applied, Commit, Hello, Record, Refused
from streaming.core.state.topology import Topology
from tests.model.backend import Backend
from tests.model.replica import Line, Replica
from tests.model.world import World

Make = Callable[[Topology], Backend]
"""Makes a hub of this topology; called once per story."""


class StoryError(AssertionError):
    """A sentence cannot be read, or what it claims does not hold."""


@dataclass(slots=True)
class Story:
    """A world, and what the sentences so far have given names to.

    `primaries`: label of a transaction -> its prim_csn. `risen`: by how much the hub's last
    micro-batch raised the hub epoch. `counted`: replica -> how many records of its updates topic
    were counted.
    """

    make: Make
    world: World = field(init=False)
    primaries: dict[str, str] = field(default_factory=dict)
    risen: int = 0
    counted: dict[str, int] = field(default_factory=dict)

    def replica(self, name: str) -> Replica:
        """The replica of this name."""
        if name not in self.world.replicas:
            raise StoryError(f"there is no replica {name}")
        return self.world.replicas[name]

    def record(self, replica: str, thing: str) -> Record:
        """Return the record that `w1`, `the commit of T` or `its hello` names."""
        kinds = {"its hello": Hello, "its applied": Applied, "its refused": Refused}
        if thing in kinds:
            received = [r for _, r in self.world.received[replica] if isinstance(r, kinds[thing])]
            return received[-1]
        if match := re.fullmatch(r"the (commit|abort) of (\S+)", thing):
            primary = self.primaries[match[2]]
            return Commit(primary) if match[1] == "commit" else Abort(primary)
        return self.world.names[thing].change

    def lines(self, replica: str, things: str) -> list[Line]:
        """Return the lines of a replica's journal that these names refer to, in their order."""
        wanted = [self.record(replica, thing) for thing in things.split(", ")]
        journal = self.replica(replica).journal
        return [next(line for line in journal if line.record == one) for one in wanted]


Step = Callable[..., None]
STEPS: list[tuple[re.Pattern[str], Step]] = []


def sentence(template: str) -> Callable[[Step], Step]:
    """Let a function be called by sentences like this; {x} is a word, {x*} the rest of the line."""
    pattern = re.sub(r"\{(\w+)\*\}", r"(?P<\1>.+)", template)
    pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>\\S+)", pattern)

    def add(step: Step) -> Step:
        STEPS.append((re.compile(pattern), step))
        return step

    return add


def claim(story: Story, seen: object, expected: object) -> None:
    """Fail with what is seen, unless it is what is expected."""
    if seen != expected:
        raise StoryError(f"it is {seen!r}; quarantine: {_quarantine(story)}")


def _quarantine(story: Story) -> list[str]:
    return [f"{kept.rid}@{kept.offset} {kept.reason}" for kept in story.world.hub.quarantine()]
