"""Claims about `doctor`: each line is in order, or says what to do."""

import shutil
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from connectors.kafka.embedded.broker import Broker
from connectors.kafka.topics import Topics, ensure_topics
from streaming.config.sources.load import load
from streaming.core.access.rights import TopicRight
from tests.checkpoints.written_state import WrittenState, agreement, replica, ruv
from tests.harness.recorded_hub import served
from tests.harness.rights import deny_write
from tests.streaming.cli.conftest import CONFIG, Answer, Slackwater

RECORD_BYTES = 1_000_000


def lines(answer: Answer) -> dict[str, tuple[bool, str]]:
    """Subject -> whether it is in order, and the text."""
    return {one["subject"]: (one["is_ok"], one["text"]) for one in answer.facts}


@pytest.fixture
def on_broker(config_file: Path, broker: Broker, topic_prefix: str) -> str:
    """The configuration names a real broker and topics of its own: their prefix."""
    named = f'name = "centre"\ntopic_prefix = "{topic_prefix}"'
    at_broker = CONFIG.replace("localhost:9092", broker.bootstrap_servers)
    config_file.write_text(at_broker.replace('name = "centre"', named, 1))
    return topic_prefix


def test_before_the_first_start_everything_is_in_order(
    slackwater: Slackwater, on_broker: str
) -> None:
    """Whoever sets a hub up asks before starting it."""
    answer = slackwater("doctor", "--json")
    shown = slackwater("doctor")

    found = lines(answer)
    assert answer.code == 0, found
    assert shown.code == 0
    assert found["state"][1].endswith("no hub has run there yet")
    assert found["versions"][1].startswith("slackwater ")
    assert "a hub creates it" in found[f"topic {on_broker}changes.a"][1]
    assert all(line.startswith("ok  ") for line in shown.out.splitlines() if line[:1] != " ")


def test_topics_as_the_hub_makes_them_are_right(
    slackwater: Slackwater, on_broker: str, broker: Broker
) -> None:
    """What the hub made itself must pass."""
    names = [f"{on_broker}{kind}" for kind in ("changes.a", "changes.b", "updates.to-a")]
    ensure_topics(broker.bootstrap_servers, {}, names, RECORD_BYTES, changes=names[:2])

    found = lines(slackwater("doctor", "--json"))

    assert all(found[f"topic {one}"] == (True, "its settings are right") for one in names)


def test_a_topic_that_deletes_unread_records_is_named(
    slackwater: Slackwater, on_broker: str, broker: Broker
) -> None:
    """That is how input is lost, and Kafka's default keeps records for a week."""
    name = f"{on_broker}changes.a"
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    configs = {"retention.ms": "7200000", "max.message.bytes": "2000000"}
    configs |= {"compression.type": "uncompressed"}
    admin.create_topics({name: {"num_partitions": 1, "configs": configs}}, wait_for_metadata=True)
    admin.close()

    answer = slackwater("doctor", "--json")

    assert answer.code == 1
    is_ok, text = lines(answer)[f"topic {name}"]
    assert not is_ok
    assert "deletes records after 2 hours, also unread ones: kafka-configs --alter" in text


def test_a_changes_topic_that_keeps_records_compressed_is_named(
    slackwater: Slackwater, on_broker: str, broker: Broker
) -> None:
    """One that was created by hand takes records that Java cannot hold."""
    name = f"{on_broker}changes.a"
    ensure_topics(broker.bootstrap_servers, {}, [name], RECORD_BYTES)

    is_ok, text = lines(slackwater("doctor", "--json"))[f"topic {name}"]

    assert not is_ok
    assert text.endswith(f"--entity-name {name} --add-config compression.type=uncompressed")


def test_rights_come_from_the_broker(on_broker: str, broker: Broker) -> None:
    """Where no rule is about a topic everything is allowed; the bits are Kafka's."""
    name = f"{on_broker}changes.a"
    ensure_topics(broker.bootstrap_servers, {}, [name], RECORD_BYTES)

    with Topics(broker.bootstrap_servers, {}) as topics:
        assert topics.allowed([name, f"{name}.absent"]) == {name: frozenset(TopicRight)}


def test_a_right_that_is_lacking_is_named(
    slackwater: Slackwater, on_broker: str, broker: Broker
) -> None:
    """Else the hub finds out when it has something to send."""
    name = f"{on_broker}updates.to-a"
    ensure_topics(broker.bootstrap_servers, {}, [name], RECORD_BYTES)
    deny_write(broker.bootstrap_servers, name)

    answer = slackwater("doctor", "--json")

    assert answer.code == 1
    is_ok, text = lines(answer)["rights"]
    assert not is_ok
    assert text.startswith(f"Kafka refuses User:ANONYMOUS Write on topic {name} (")
    assert "`slackwater acls`" in text
    asked_as = slackwater("doctor", "--role", "agent:a", "--json")
    assert lines(asked_as)["rights"] == (True, "User:ANONYMOUS has all that role agent:a needs")


def test_a_broker_that_does_not_answer_is_one_line(
    slackwater: Slackwater, config_file: Path
) -> None:
    """The other lines are there all the same."""
    config_file.write_text(CONFIG.replace("localhost:9092", "127.0.0.1:1"))

    answer = slackwater("doctor", "--json")

    is_ok, text = lines(answer)["broker"]
    assert answer.code == 1
    assert not is_ok
    assert "check that it runs, kafka.bootstrap_servers" in text
    assert lines(answer)["java"][0]


def test_a_wrong_configuration_ends_it(slackwater: Slackwater, config_file: Path) -> None:
    """Nothing else can be asked without it."""
    config_file.write_text("[hub]\nstate = 1\n")

    answer = slackwater("doctor")

    assert answer.code == 1
    assert "no  configuration: " in answer.out


def test_a_clock_that_is_ahead_is_named(
    slackwater: Slackwater, state: WrittenState, config_file: Path
) -> None:
    """Its changes are quarantined when it is a day ahead."""
    config_file.write_text(CONFIG.replace("localhost:9092", "127.0.0.1:1"))
    in_future_ms = round(time.time() * 1000) + 3_600_000
    known = ruv(r1=3, r2=2)
    now_ms = in_future_ms - 3_600_000
    replicas = [replica(1, seen_ms=in_future_ms), replica(2, seen_ms=now_ms)]
    state.commit(9, 5, known, replicas, [agreement("to-a", 1, 5, known)])

    is_ok, text = lines(slackwater("doctor", "--json"))["clocks"]

    assert not is_ok
    assert "a is 3" in text
    assert "correct the clocks" in text
    assert "b is" not in text


def test_a_full_disk_is_named(
    slackwater: Slackwater, config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hub on a full disk ends; the operator wants to know before."""
    config_file.write_text(CONFIG.replace("localhost:9092", "127.0.0.1:1"))
    full = type(shutil.disk_usage("/"))(1000, 950, 50)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)

    is_ok, text = lines(slackwater("doctor", "--json"))["disk"]

    assert not is_ok
    assert text.startswith("50 bytes of 1000 bytes are free: make room")


def at_port(config_file: Path, port: int) -> None:
    """The configuration names this port."""
    nowhere = CONFIG.replace("localhost:9092", "127.0.0.1:1")
    config_file.write_text(f"{nowhere}[http]\nport = {port}\n", encoding="utf-8")


@pytest.mark.usefixtures("state")
def test_the_port_says_whose_hub_answers(
    slackwater: Slackwater, config_file: Path, tmp_path: Path
) -> None:
    """A second hub on the machine cannot start at the port of the first one."""
    elsewhere = tmp_path / "elsewhere"
    WrittenState(elsewhere / "state").create()
    other = elsewhere / "hub.toml"
    other.write_text(CONFIG.replace('name = "centre"', 'name = "north"'), encoding="utf-8")
    found = list[tuple[bool, str]]()
    for config in (load(config_file), load(other)):
        with served(config) as port:
            at_port(config_file, port)
            found.append(lines(slackwater("doctor", "--json"))["port"])

    (mine_is_ok, mine), (others_is_ok, others) = found
    assert mine_is_ok
    assert mine.endswith("is the port of this hub, which runs")
    assert not others_is_ok
    assert f"the port of another hub, north with its state in {elsewhere / 'state'}" in others
    assert others.endswith("give this one another http.port")


def hang_up(server: socket.socket) -> None:
    """End each connection at once, until the server is closed."""
    with suppress(OSError):
        while True:
            server.accept()[0].close()


def test_a_port_at_which_no_hub_answers_is_named(slackwater: Slackwater, config_file: Path) -> None:
    """A hub could not start there either."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        at_port(config_file, int(other.getsockname()[1]))
        threading.Thread(target=hang_up, args=(other,), daemon=True).start()
        is_ok, text = lines(slackwater("doctor", "--json"))["port"]

    assert not is_ok
    assert "is in use, and no hub answers there" in text
