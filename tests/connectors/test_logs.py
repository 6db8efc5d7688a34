"""Claims about log lines."""

import io
import json
import logging

import pytest

from connectors.log_format import LogFormat, write_failure
from connectors.logs import configure_logs
from streaming.core.access.secret_names import HIDDEN, secrets_of

SECRET = "correct-horse"
LOG = logging.getLogger("slackwater")


def written(kind: LogFormat, level: str = "info", options: dict[str, str] | None = None) -> str:
    """What some lines become."""
    stream, epochs = io.StringIO(), iter(range(7, 99))
    fields = {"hub": "centre"}
    secrets = secrets_of(options or {})
    every = lambda: {**fields, "hub_epoch": next(epochs)}  # noqa: E731
    configure_logs(kind, level, "centre", every, secrets, stream=stream)
    LOG.debug("an epoch")
    LOG.info("agreement %s: %s", "to-a", "in_sync", extra={"agreement": "to-a"})
    LOG.warning("refused by %s", SECRET)
    logging.getLogger("py4j").info("noise")
    try:
        {"known": 0}[SECRET]
    except KeyError:
        LOG.exception("it failed")
    return stream.getvalue()


def test_a_program_gets_an_object_a_line_with_its_fields() -> None:
    """A log store finds all lines of an agreement without a pattern for each text."""
    first, second, third = map(json.loads, written(LogFormat.JSON).splitlines())

    assert first.pop("timestamp").endswith("Z")
    assert first == {
        "hub": "centre",
        "hub_epoch": 7,
        "agreement": "to-a",
        "event": "agreement to-a: in_sync",
        "level": "info",
        "logger": "slackwater",
    }
    assert (second["hub_epoch"], second["level"]) == (8, "warning")
    assert "KeyError" in third["exception"]


def test_a_person_gets_text() -> None:
    """On a terminal a line is read from left to right."""
    lines = written(LogFormat.TEXT).splitlines()

    assert lines[0].endswith("Z centre INFO agreement to-a: in_sync")
    assert lines[3].startswith("Traceback")


def test_what_is_no_terminal_gets_json() -> None:
    """A container's log is read by a program."""
    assert all(json.loads(line) for line in written(LogFormat.AUTO).splitlines())


@pytest.mark.parametrize("kind", [LogFormat.JSON, LogFormat.TEXT])
def test_a_secret_is_never_written(kind: LogFormat) -> None:
    """Not in a message, not in an exception of a library."""
    jaas = f'org.apache.kafka...ScramLoginModule required username="u" password="{SECRET}";'

    text = written(kind, options={"sasl.jaas.config": jaas})

    assert SECRET not in text
    assert f"refused by {HIDDEN}" in text


def test_why_a_program_ends_is_an_object_too(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever reads objects would otherwise lose the one line that says why."""
    configure_logs(LogFormat.JSON, "error", "centre", dict, secrets_of({"sasl.password": SECRET}))

    write_failure("slackwater", f"no room\nnor {SECRET}")

    (line,) = map(json.loads, capsys.readouterr().err.splitlines())
    assert (line["level"], line["event"]) == ("critical", f"no room\nnor {HIDDEN}")


def test_why_a_program_ends_is_a_line_for_each_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    """For a person, with its name, as of a program that has no log yet."""
    write_failure("slackwater", "before")
    configure_logs(LogFormat.TEXT, "info", "centre", dict, secrets_of({}))
    write_failure("slackwater", "no room\nno rest")

    assert capsys.readouterr().err.splitlines() == [
        "slackwater: before",
        "slackwater: no room",
        "slackwater: no rest",
    ]


def test_an_epoch_is_a_line_at_debug_only() -> None:
    """Ten lines a second hide the one that matters."""
    assert "an epoch" not in written(LogFormat.TEXT)
    assert "an epoch" in written(LogFormat.TEXT, "debug")


def test_the_name_of_a_user_is_no_secret() -> None:
    """It is a part of topics' names, and of what Kafka says of rights; the password is hidden."""
    line = 'x.ScramLoginModule required username="alpha" password="s3cret";'

    assert secrets_of({"sasl.jaas.config": line}) == {line, "s3cret"}
    assert secrets_of({"sasl.username": "alpha", "sasl.password": "s3cret"}) == {"s3cret"}
