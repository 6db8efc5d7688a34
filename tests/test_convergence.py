"""Whatever happens, in whatever order: all replicas come to the same rows, and nothing is lost."""

from collections.abc import Callable, Sequence

from hypothesis import event, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.laws import ALWAYS, AT_REST, check_transactions_are_whole
from tests.model import World
from tests.storyteller import GOOD, REORDERS, REUSES, Step, Storyteller, steps


class Histories(RuleBasedStateMachine):
    """A story is told step by step; its laws are checked on the way and at its end."""

    laws: Sequence[Callable[[World], None]] = AT_REST
    teller: Storyteller

    @initialize(skews=st.permutations([0, 5, -5]), numbered=st.booleans())
    def begin(self, skews: list[int], *, numbered: bool) -> None:
        """Three replicas are level."""
        self.teller = Storyteller()
        self.teller.begin(skews, numbered=numbered)

    def go_on(self, step: Step) -> None:
        """Tell one step; what always holds must hold behind it."""
        epoch = self.teller.world.hub.hub_epoch()
        self.teller.go_on(step)
        if self.teller.world.hub.hub_epoch() > epoch:
            for law in ALWAYS:
                law(self.teller.world)

    def teardown(self) -> None:
        """Nobody writes any more: all comes to rest, level and complete."""
        self.teller.end()
        note("\n".join(self.teller.lines))
        for law in self.laws:
            law(self.teller.world)
        for conflict in self.teller.world.hub.conflicts()[:1]:
            event("conflicts", bool(conflict))


class GoodAgents(Histories):
    """Agents follow the contract; they, the hub and topics stop, die and repeat at any place."""

    laws = (*AT_REST, check_transactions_are_whole)

    @rule(step=steps(GOOD))
    def step(self, step: Step) -> None:
        """Something happens."""
        self.go_on(step)


class ReorderingAgents(Histories):
    """Agents publish out of order: what comes late is kept aside, and all converge."""

    @rule(step=steps(REORDERS))
    def step(self, step: Step) -> None:
        """Something happens."""
        self.go_on(step)


class ForgetfulAgents(Histories):
    """Agents give a CSN twice: the second change is kept aside, and all converge."""

    @rule(step=steps(REUSES))
    def step(self, step: Step) -> None:
        """Something happens."""
        self.go_on(step)


FIXED = settings(max_examples=300, stateful_step_count=50, derandomize=True, deadline=None)

TestGoodAgents = GoodAgents.TestCase
TestGoodAgents.settings = FIXED
TestReorderingAgents = ReorderingAgents.TestCase
TestReorderingAgents.settings = FIXED
TestForgetfulAgents = ForgetfulAgents.TestCase
TestForgetfulAgents.settings = FIXED
