"""Options that are read again when a file of theirs is changed."""

from pathlib import Path

import pytest

from connectors import live_value
from connectors.kafka.options import LiveOptions
from streaming.config.sources.live import live_options as of_configuration
from streaming.config.sources.load import load
from streaming.core.model.errors import ConfigError

SAMPLE = Path(__file__).parents[3] / "deploy" / "hub.toml"
SECRET = "SLACKWATER_KAFKA__OPTIONS__SASL__PASSWORD"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each question looks at the files."""
    monkeypatch.setattr(live_value, "LOOK_S", 0.0)


def replace(file: Path, text: str) -> None:
    """Put another file in its place, as tools do that rotate secrets."""
    new = file.with_name(f".new-{file.name}")
    new.write_text(text, encoding="utf-8")
    new.replace(file)


def test_a_password_is_read_again_from_its_secret_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rotated password must not need a restart; nor may one that is half written be taken."""
    secrets, file = tmp_path / "secrets", tmp_path / "hub.toml"
    secrets.mkdir(mode=0o700)
    (secrets / SECRET).write_text("one")
    with_user = '[kafka.options]\n"sasl.username" = "hub"\n'
    file.write_text(SAMPLE.read_text().replace("[kafka.options]\n", with_user))
    monkeypatch.setenv("SLACKWATER_SECRETS", str(secrets))
    live = of_configuration(file, load(file))
    seen = list[str]()
    live.changed = lambda options: seen.append(options["sasl.password"])
    first = live.number

    unchanged = live.number
    replace(secrets / SECRET, "two")

    assert (live.now()["sasl.password"], unchanged, live.number) == ("two", first, first + 1)
    file.write_text("[kafka")
    assert live.now()["sasl.password"] == "two", "what cannot be read changes nothing"
    (secrets / SECRET).unlink()
    secrets.rmdir()
    assert live.now()["sasl.password"] == "two"
    assert seen == ["two"]


def test_a_certificate_that_is_replaced_counts_as_a_change(tmp_path: Path) -> None:
    """Clients read their certificates when they are opened, and never again."""
    certificate = tmp_path / "own.pem"
    certificate.write_text("one")
    live = LiveOptions({"ssl.keystore.location": str(certificate)})
    first = live.number

    replace(certificate, "two")

    assert live.number == first + 1


def test_options_that_cannot_be_read_are_told_once_for_each_change(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A mistake in the file must be seen, and must not fill the log."""

    def read() -> dict[str, str]:
        raise ConfigError("line 1 is wrong")

    file = tmp_path / "hub.toml"
    file.write_text("one")
    live = LiveOptions({"a": "b"}, read, lambda: [file])

    replace(file, "two")

    assert [live.now(), live.now()] == [{"a": "b"}] * 2
    assert caplog.messages == [
        "kafka.options cannot be read again, so the old one stays: line 1 is wrong"
    ]


def test_another_part_of_the_file_changes_no_option(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Every connection would be opened anew, and the log would say what is not so."""
    file = tmp_path / "hub.toml"
    file.write_text("one")
    live = LiveOptions({"a": "b"}, lambda: {"a": file.read_text()[-1:]}, lambda: [file])
    replace(file, "one, b")
    with caplog.at_level("INFO"):
        first = live.number
        replace(file, "two, b")
        assert live.number == first

        replace(file, "two, c")

        assert (live.number, live.latest) == (first + 1, {"a": "c"})
    assert caplog.messages == ["kafka.options: its files were changed and are read again"]
