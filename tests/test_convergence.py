"""Whatever happens, in whatever order: all replicas come to the same rows, and nothing is lost.

Hypothesis tells stories in the language of the scenarios, so that a history that breaks a law is
a scenario already: it is printed as one.
"""

from hypothesis import event, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from checkpoints.faults import Point
from streaming.core.change import Change
from tests.laws import ALWAYS, AT_REST
from tests.model_hub import BEFORE_THE_COMMIT, PureHub
from tests.model_replica import Replica
from tests.scenario_language import Story, run

REPLICAS = ("r1", "r2", "r3")
KEYS = ("k1", "k2", "k3")

replicas = st.sampled_from(REPLICAS)
keys = st.sampled_from(KEYS)
few = st.integers(1, 3)
points = st.sampled_from([p for p in Point if p not in BEFORE_THE_COMMIT[1:]])


class Histories(RuleBasedStateMachine):
    """Replicas whose agents follow the contract, a hub that is killed, topics that repeat."""

    @initialize(numbered=st.booleans(), skews=st.permutations([0, 5, -5]))
    def begin(self, *, numbered: bool, skews: list[int]) -> None:
        """Three replicas are level; their clocks differ, and one of them may give opnos."""
        self.lines: list[str] = []
        self.story = Story(PureHub)
        self.written = 0
        self.say(f"given r1 r2 r3{'(numbered)' * numbered}")
        for replica, skew_s in zip(REPLICAS, skews, strict=True):
            self.replica(replica).skew_s = skew_s

    def say(self, line: str) -> None:
        """Add a sentence to the story."""
        self.lines.append(line)
        run(self.story, line)

    def replica(self, name: str) -> Replica:
        """The replica of this name."""
        return self.story.world.replicas[name]

    def name(self) -> str:
        """A name for the next write."""
        self.written += 1
        return f"w{self.written}"

    # -- local transactions -----------------------------------------------------------------

    @rule(replica=replicas, key=keys)
    def write(self, replica: str, key: str) -> None:
        """A replica writes a row."""
        if not self.replica(replica).is_locked(key):
            self.say(f"{replica} writes {key} = {self.name()}")

    @rule(replica=replicas, key=keys)
    def delete(self, replica: str, key: str) -> None:
        """A replica deletes a row."""
        if not self.replica(replica).is_locked(key) and key in self.story.world.rows_of(replica):
            self.say(f"{replica} deletes {key} as {self.name()}")

    @rule(replica=replicas, key=keys, label=st.sampled_from("TU"))
    def write_in_transaction(self, replica: str, key: str, label: str) -> None:
        """A replica writes a row in one of its open transactions, or opens one."""
        one = self.replica(replica)
        labels = [name for name in one.open if name.startswith(label)] or [
            f"{label}{self.written}{replica}"
        ]
        mine = one.open.get(labels[0])
        if not one.is_locked(key) or (mine and key in mine.rows):
            self.say(f"{replica} writes {key} = {self.name()} in {labels[0]}")

    @rule(replica=replicas, verb=st.sampled_from(["commits", "commits", "aborts"]))
    def end_transaction(self, replica: str, verb: str) -> None:
        """A replica ends its oldest open transaction."""
        for label in list(self.replica(replica).open)[:1]:
            self.say(f"{replica} {verb} {label}")

    # -- topics -----------------------------------------------------------------------------

    @rule(replica=replicas)
    def publish(self, replica: str) -> None:
        """An agent publishes all it has; before its hello under the session before."""
        self.say(f"{replica} publishes")

    @rule(replica=replicas, count=few)
    def publish_some(self, replica: str, count: int) -> None:
        """An agent publishes a part of what it has."""
        self.say(f"{replica} publishes the first {count}")

    @rule(replica=replicas, back=st.integers(1, 6))
    def repeat(self, replica: str, back: int) -> None:
        """The broker delivers one of the last records once more."""
        said = self.story.world.said[replica]
        if back <= len(said):
            self.lines.append(f"# the topic of {replica} repeats {said[-back]}")
            self.story.world.repeat(replica, len(said) - back)

    @rule(replica=replicas)
    def apply(self, replica: str) -> None:
        """A replica takes all that was sent to it."""
        self.say(f"{replica} applies")

    @rule(replica=replicas, count=few)
    def apply_some(self, replica: str, count: int) -> None:
        """A replica takes a part of what was sent to it."""
        self.say(f"{replica} applies the first {count}")

    # -- crashes ----------------------------------------------------------------------------

    @rule(replica=replicas, how=st.sampled_from(["", " with its database", "#"]), count=few)
    def crash(self, replica: str, how: str, count: int) -> None:
        """An agent dies: alone, with its database, or before it marked what it had published."""
        forgets = f" and forgets the last {count} it published"
        self.say(f"{replica} crashes{forgets if how == '#' else how}")

    @rule(replica=replicas)
    def hello(self, replica: str) -> None:
        """An agent starts a session."""
        self.say(f"{replica} says hello")

    @precondition(lambda self: self.story.world.hub.is_up())
    @rule(counts=st.one_of(st.none(), st.tuples(few, few, few)))
    def take(self, counts: tuple[int, int, int] | None) -> None:
        """The hub processes a micro-batch."""
        parts = [f"{n} of {r}" for n, r in zip(counts or (), REPLICAS, strict=bool(counts))]
        self.say(f"the hub takes {', '.join(parts) or 'all'}")
        self.check()

    @precondition(lambda self: self.story.world.hub.is_up())
    @rule(point=points)
    def take_and_die(self, point: Point) -> None:
        """The hub is killed in a micro-batch."""
        self.say(f"the hub takes all and is killed {point.replace('_', ' ')}")
        self.check()

    @precondition(lambda self: not self.story.world.hub.is_up())
    @rule()
    def restart(self) -> None:
        """The hub starts again."""
        self.say("the hub restarts")
        self.check()

    @rule()
    def turn(self) -> None:
        """Everybody does what can be done, once."""
        self.lines.append("# everybody does what can be done, once")
        self.story.world.turn()

    # -- laws -------------------------------------------------------------------------------

    def check(self) -> None:
        """What holds at any time."""
        for law in ALWAYS:
            law(self.story.world)

    def teardown(self) -> None:
        """When nobody writes any more, all comes to rest, level and complete."""
        if not hasattr(self, "story"):
            return
        note("\n".join(self.lines))
        for name in REPLICAS:
            for label in list(self.replica(name).open):
                self.say(f"{name} commits {label}")
        self.say("everything settles")
        for law in AT_REST:
            law(self.story.world)
        for kept in self.story.world.hub.quarantine():
            event(f"quarantine: {kept.reason}")
        event(f"conflicts: {len(self.story.world.hub.conflicts())}")


class BrokenHistories(Histories):
    """The same with agents that break the contract: their harm is bounded, and all converge."""

    @rule(replica=replicas, place=st.integers(1, 3))
    def publish_out_of_order(self, replica: str, place: int) -> None:
        """An agent publishes a change before the lines that stand before it in its journal."""
        lines = self.replica(replica).unpublished()
        if place < len(lines) and isinstance(lines[place].record, Change):
            self.lines.append(f"# {replica} publishes {lines[place].record} alone")
            self.story.world.publish(replica, [lines[place]])

    @rule(replica=replicas, key=keys, back=st.integers(1, 4))
    def reuse(self, replica: str, key: str, back: int) -> None:
        """A generator gives a CSN for the second time."""
        one = self.replica(replica)
        mine = [n for n, w in self.story.world.names.items() if w in one.writes]
        if back <= len(mine) and not one.is_locked(key):
            self.say(f"{replica} writes {key} = {self.name()} with the CSN of {mine[-back]}")

    @rule(replica=replicas)
    def publish_under_old_session(self, replica: str) -> None:
        """An old agent still runs, and publishes what the new one will publish again."""
        lines = self.replica(replica).unpublished()
        if lines:
            self.lines.append(f"# {replica} publishes {lines[0].record} under its old session")
            self.story.world.say(replica, f"{replica}-0", lines[0].record)


FIXED = settings(max_examples=300, stateful_step_count=40, derandomize=True, deadline=None)

TestHistories = Histories.TestCase
TestHistories.settings = FIXED
TestBrokenHistories = BrokenHistories.TestCase
TestBrokenHistories.settings = FIXED
