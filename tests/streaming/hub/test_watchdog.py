"""When a hub counts as hanging, and when it only has nothing to do."""

from dataclasses import dataclass, field

from streaming.hub.batch.phases import BatchPhase, BatchPhases, RunningBatch
from streaming.hub.observe.watchdog import Watchdog, python_stacks

LIMIT_S = 60.0


@dataclass
class Scene:
    """A hub of which time and input are set by hand."""

    now_s: float = 1_000.0
    waiting: int = 0
    is_away: bool = False
    phases: BatchPhases = field(default_factory=BatchPhases)

    def __post_init__(self) -> None:
        """Watch it."""
        self.watchdog = Watchdog(
            self.phases,
            LIMIT_S,
            0.1,
            waiting=lambda: self.waiting,
            is_away=lambda: self.is_away,
            dump_java=lambda: None,
            kill_java=lambda: None,
            clock_s=lambda: self.now_s,
        )

    def after(self, seconds: float) -> str | None:
        """What the watchdog finds so much later."""
        self.now_s += seconds
        return self.watchdog.finding()


def test_a_batch_that_does_not_end_is_named_with_its_phase() -> None:
    """Who is called at night learns at once where to look."""
    scene = Scene()
    began_s, phase_began_s = scene.now_s, scene.now_s + 10
    scene.phases.running = RunningBatch(17, BatchPhase.PUBLISH, began_s, phase_began_s, 0)

    assert scene.after(LIMIT_S - 1) is None
    assert scene.after(1) == (
        "batch 17 is under way for 60 seconds, in its phase publish for 50 seconds"
    )


def test_a_batch_that_waits_for_kafka_does_not_hang() -> None:
    """A restart would wait likewise; from the moment Kafka answers the batch has its time."""
    scene = Scene(is_away=True)
    scene.phases.running = RunningBatch(17, BatchPhase.READ, scene.now_s, scene.now_s, 0)

    assert all(scene.after(LIMIT_S * 10) is None for _ in range(10))

    scene.is_away = False
    assert scene.after(LIMIT_S - 1) is None
    assert str(scene.after(1)).startswith("batch 17 is under way for")


def test_idle_is_not_hanging() -> None:
    """A hub may have nothing to do for a year."""
    scene = Scene()

    assert all(scene.after(LIMIT_S * 10) is None for _ in range(10))


def test_records_that_nobody_reads_are_noticed() -> None:
    """A thread of Spark's that died starts no batch that could take too long."""
    scene = Scene()
    scene.after(5)
    scene.waiting = 3

    assert scene.after(1) is None
    assert scene.after(LIMIT_S) is None
    assert scene.after(1) == "no batch has begun for 61 seconds, though 3 records can be read"


def test_a_hub_that_is_behind_and_works_is_left_alone() -> None:
    """With a backlog of days something always waits."""
    scene = Scene(waiting=1_000_000)

    for _ in range(10):
        assert scene.after(LIMIT_S - 1) is None
        scene.phases.ended_s = scene.now_s + 0.5

    assert scene.after(2) is None


def test_input_that_cannot_be_seen_is_no_input() -> None:
    """While Kafka does not answer, nobody knows what waits, and a restart would not help."""
    scene = Scene(waiting=3)
    scene.after(1)
    scene.waiting = 0
    scene.after(LIMIT_S)
    scene.waiting = 3

    assert scene.after(1) is None


def test_the_stacks_name_each_thread() -> None:
    """One of them is the one that hangs."""
    stacks = python_stacks()

    assert "thread MainThread:\n" in stacks
    assert "test_the_stacks_name_each_thread" in stacks
