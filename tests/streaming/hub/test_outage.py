"""Which failures are of a broker that is away, and how the hub waits for it."""

import threading
from pathlib import Path

import pytest
from kafka.errors import KafkaTimeoutError, SaslAuthenticationFailedError

from connectors.kafka.client_errors import ClientFault
from connectors.kafka.options import LiveOptions
from streaming.config.config import Config
from streaming.config.sources.load import load
from streaming.core.model.errors import HubError, OvertakenError, PublishError, SourceError
from streaming.hub.observe.view import HubView
from streaming.hub.outage import KafkaOutage

SAMPLE = Path(__file__).parents[3] / "deploy" / "hub.toml"
READ = HubError("Cannot fetch record for offset 7 in 30000 milliseconds")


def config(folder: Path) -> Config:
    """A configuration whose state is in this folder."""
    sample = load(SAMPLE)
    hub = sample.hub.model_copy(update={"state": folder})
    kafka = sample.kafka.model_copy(update={"bootstrap_servers": "b:1"})
    return sample.model_copy(update={"hub": hub, "kafka": kafka})


def outage(folder: Path, *answers: Exception | None, has_worked: bool = False) -> KafkaOutage:
    """An outage in which Kafka gives these answers, the last one for ever."""
    left, options = list(answers), LiveOptions({"sasl.username": "hub", "sasl.password": "word"})
    found = KafkaOutage(config(folder), HubView(config(folder)), options, has_worked)

    def ask() -> None:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if answer is not None:
            raise answer

    found.ask = ask
    return found


def refused(by: Exception) -> SourceError:
    """What a client of Kafka raises for an error."""
    error = SourceError(f"Kafka did not answer as expected ({by})")
    error.__cause__ = by
    return error


@pytest.mark.parametrize(
    ("error", "is_missed", "answer", "is_why"),
    [
        (READ, False, None, True),
        (PublishError("r1 was not delivered (Local: Message timed out)"), False, None, True),
        (SourceError("no answer"), False, refused(KafkaTimeoutError()), True),
        (PublishError("record is refused"), True, None, True),
        (SourceError("topics cannot be used"), False, None, False),
        (OvertakenError("another hub"), True, refused(KafkaTimeoutError()), False),
        (refused(SaslAuthenticationFailedError()), True, None, False),
    ],
)
def test_a_hub_waits_only_for_a_broker_that_is_away(
    tmp_path: Path, error: HubError, answer: HubError | None, *, is_missed: bool, is_why: bool
) -> None:
    """Whatever else is wrong ends it with the reason: waiting would not help."""
    assert outage(tmp_path, answer).is_why(error, is_missed=is_missed) is is_why


REFUSED = {
    ClientFault.LOGIN: refused(SaslAuthenticationFailedError("Authentication failed")),
    ClientFault.OWN_CERTIFICATE: HubError("SSL handshake failed: alert bad certificate"),
    ClientFault.RIGHT: SourceError(
        "Kafka refuses User:hub Write on topic x (TOPIC_AUTHORIZATION_FAILED): give it"
    ),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_a_hub_that_has_worked_waits_where_kafka_refuses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: ClientFault
) -> None:
    """A password, a certificate and a right are wrong for a while when they are changed."""
    monkeypatch.setattr("streaming.hub.outage.PAUSE_S", 0.0)
    error, seen = REFUSED[fault], list[str]()
    cut_off = SourceError(f"no answer ({ClientFault.ENDED} (socket disconnected))")
    found = outage(tmp_path, error, cut_off, None, has_worked=True)
    ask = found.ask

    def asked() -> None:
        seen.append(found.view.away_why)
        ask()

    found.ask = asked

    assert found.is_why(error, is_missed=False)
    assert found.is_over(error, threading.Event())
    assert seen[1] == seen[2], "a client that is told nothing knows no better"
    assert "User:hub" in seen[1]
    assert seen[1].startswith("Kafka refuses" if fault is ClientFault.RIGHT else fault.value)
    assert not found.view.away_why
    assert not outage(tmp_path, error).is_why(error, is_missed=False), "it was never right"


def test_a_hub_goes_on_when_kafka_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its log says for which broker it waits, and since when."""
    monkeypatch.setattr("streaming.hub.outage.PAUSE_S", 0.0)
    away = refused(KafkaTimeoutError())
    found = outage(tmp_path, away, away, None)

    assert found.is_over(READ, threading.Event())

    said = [one.getMessage() for one in caplog.records]
    assert said[0] == "Kafka is away: Cannot fetch record for offset 7 in 30000 milliseconds"
    assert said[1].startswith("the hub waits for Kafka at b:1 since 2")
    assert len(said) == 3, "once a minute, and at the end"
    assert not found.view.is_waiting()


def test_a_hub_that_is_stopped_while_it_waits_ends(tmp_path: Path) -> None:
    """In order, as at any other time."""
    end = threading.Event()
    end.set()

    assert not outage(tmp_path, refused(KafkaTimeoutError())).is_over(READ, end)


def test_a_password_that_is_wrong_is_not_waited_for(tmp_path: Path) -> None:
    """Kafka is there, and will say the same for ever."""
    found = outage(tmp_path, refused(KafkaTimeoutError()), refused(SaslAuthenticationFailedError()))

    with pytest.raises(SourceError, match="SaslAuthenticationFailedError"):
        found.is_over(READ, threading.Event())
