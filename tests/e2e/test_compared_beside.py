"""A hub compares the rows of its consumers by itself, in a process that ends with it."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connectors.kafka.embedded.broker import Broker
from tests.harness.hub_process import HubProcess, wait_until
from tests.harness.other_processes import processes_with
from tests.harness.served_hub import Port, free_port
from tests.harness.site import Site, site
from tests.harness.sqlite_agents import agents, create, database, execute, execute_uncaptured, rows


@pytest.fixture
def compared(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with two replicas, whose agreements have a section `compare`."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "ab") as made:
        text = made.file.read_text()
        for name in "ab":
            create(made, name)
            of = f'consumer = "{name}"\n'
            text = text.replace(of, f'{of}compare = {{ database = "{name}.db", every_s = 1 }}\n')
        made.file.write_text(text)
        yield made


def beside(at: Site) -> set[int]:
    """The process that compares beside the hub."""
    found = processes_with(f"streaming.compare.beside {at.file}")
    return {*found}


def comparison(at: Site, name: str) -> dict[str, Any]:
    """What `slackwater status` has of the last comparison of a consumer."""
    found = {one["name"]: one["comparison"] for one in at.slackwater("status")["agreements"]}
    return found[name] or {}


def test_rows_are_compared_without_a_further_command(compared: Site) -> None:
    """In `status` and in the metrics; what is changed behind an agent's back is found.

    A comparison that dies is started again, and one whose hub is killed ends.
    """
    port = Port(free_port())
    text = compared.file.read_text()
    compared.file.write_text(text.replace("port = 0", f"port = {port.number}"))
    with compared.hub() as hub, agents(compared, "ab"):
        hub.waits_for(lambda: len(beside(compared)) == 1, "it compares")
        execute(compared, "a", "INSERT INTO t VALUES ('k', 'v'), ('l', 'w')")
        hub.waits_for(lambda: len(rows(compared, "b")) == 2, "b has the rows")
        found = {"rows": 2, "differing": 0}
        hub.waits_for(
            lambda: all(found.items() <= comparison(compared, name).items() for name in "ab"),
            "all are compared, and equal",
        )
        hub.waits_for(lambda: port.value("slackwater_compared_rows", consumer="b") == 2, "so says")

        execute_uncaptured(compared, "b", "UPDATE t SET v = 'edited' WHERE k = 'k'")
        hub.waits_for(lambda: comparison(compared, "b")["differing"] == 1, "it is found")
        assert any(
            "b has other rows than the hub" in one["what"]
            for one in compared.slackwater("status")["problems"]
        )

        (process,) = beside(compared)
        hub.kill()
        wait_until(lambda: not beside(compared), lambda: f"{process} ends")


@pytest.mark.more
@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_a_signal_ends_both(compared: Site, number: signal.Signals) -> None:
    """Nobody has to end a second process, and no trace of it is left in the log."""
    with compared.hub() as hub:
        hub.waits_for(lambda: len(beside(compared)) == 1, "it compares")
        assert Path(f"/proc/{next(iter(beside(compared)))}").exists()

        hub.signal_group(number)

        output = hub.ends_with(0)
    assert beside(compared) == set()
    assert "Traceback" not in output
    assert "the comparison beside the hub ended" not in output


@pytest.mark.more
def test_a_database_that_is_away_is_named_and_holds_up_nothing(compared: Site) -> None:
    """The hub goes on, and the other consumer is compared."""
    database(compared, "a").unlink()
    with compared.hub() as hub, agents(compared, "b"):
        hub.waits_for(lambda: len(beside(compared)) == 1, "it compares")
        hub.waits_for(lambda: bool(comparison(compared, "b")), "b is compared")
        hub.waits_for(lambda: "not compared, until the next round: a: " in hub.output, "a is named")

        assert comparison(compared, "a") == {}
        hub.waits_for(
            lambda: any(
                one["what"].startswith("a: not compared: ")
                for one in compared.slackwater("status")["problems"]
            ),
            "status says so",
        )


@pytest.mark.more
def test_a_standby_compares_nothing(compared: Site) -> None:
    """Two that compare would cost the databases twice as much."""
    with compared.hub() as active:
        active.waits_for(lambda: len(beside(compared)) == 1, "it compares")
        with compared.hub("--standby") as standby:
            standby.waits_for(lambda: "stands by" in standby.output, "it stands by")
            before = beside(compared)
            assert len(before) == 1

            active.kill()

            _takes_over(compared, standby, before)


def _takes_over(at: Site, standby: HubProcess, before: set[int]) -> None:
    standby.waits_for(lambda: len(beside(at) - before) == 1, "it compares in its place")
    wait_until(lambda: not beside(at) & before, lambda: "the one before ends")
