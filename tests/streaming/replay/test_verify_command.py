"""Claims about `verify`: a sound state is sound, and each kind of damage is found."""

import shutil
import socket
import urllib.error
import urllib.request
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import write_deltalake

from checkpoints.store import rows_of
from checkpoints.tables import TableName
from streaming.cli.past.proof import Proof
from streaming.cli.past.verify import audits_of_what_is_new
from streaming.config.sources.load import load
from streaming.core.model.errors import ConfigError
from tests.checkpoints.spoilt_state import spoil
from tests.streaming.cli.conftest import Answer, Slackwater
from tests.streaming.replay.conftest import History


def checks(answer: Answer) -> set[str]:
    """The checks that failed."""
    return {one["check"] for one in answer.facts["found"]}


def materialize(history: History, *rows: dict[str, object]) -> None:
    """Fill `rows` as if a hub had, up to its last hub epoch, and note that in its last commit."""
    path = history.state / TableName.ROWS
    write_deltalake(path, rows_of(TableName.ROWS, rows), mode="append")
    epochs = history.rows(TableName.EPOCHS).to_pylist()
    last = max((row for row in epochs if row["kind"] == "commit"), key=lambda row: row["batch"])
    last["rows_epoch"] = last["hub_epoch"]
    last["versions"] = [*(p for p in last["versions"] if p[0] != "rows"), ("rows", 1)]
    history.rewrite(TableName.EPOCHS, rows_of(TableName.EPOCHS, epochs))


def standing(history: History) -> list[dict[str, object]]:
    """The rows that the story ends with, as `rows` holds them."""
    log = history.rows(TableName.CHANGELOG).to_pylist()
    by_csn = {row["csn"]: row for row in log if row["verdict"] == "accepted"}
    found = (by_csn[history.csn_of(value)] for value in ("w1", "w4", "w7"))
    return [
        {
            "table": row["table"],
            "key": row["key"],
            "author": row["rid"],
            "hub_epoch": row["hub_epoch"],
            "csn": row["csn"],
            "image": row["image"],
        }
        for row in found
    ]


def test_a_history_that_nobody_touched_is_sound(history: History, slackwater: Slackwater) -> None:
    """All checks look at something, and none complains."""
    materialize(history, *standing(history))

    answer = slackwater("verify", "--json")

    assert answer.code == 0, answer.out
    assert answer.facts["sound"]
    assert (answer.facts["changes"], answer.facts["rows"]) == (7, 3)
    assert answer.facts["records"] > 20


def test_a_verdict_that_was_changed_is_found(history: History, slackwater: Slackwater) -> None:
    """Nothing that is recorded of a verdict is believed."""
    history.tamper(TableName.CHANGELOG, history.csn_of("w2"), "verdict", "accepted")

    answer = slackwater("verify", "--json")

    assert answer.code == 1
    assert "fact" in checks(answer)


def test_a_change_that_was_removed_is_found(history: History, slackwater: Slackwater) -> None:
    """Its offset has no trace, and the RUV covers what is not there."""
    log = history.rows(TableName.CHANGELOG)
    gone = pc.not_equal(log["csn"], history.csn_of("w7"))
    history.rewrite(TableName.CHANGELOG, log.filter(gone))

    answer = slackwater("verify", "--json")

    assert {"offsets", "ruv"} <= checks(answer)


def test_a_change_that_stands_twice_is_found(history: History, slackwater: Slackwater) -> None:
    """A consumer that counts by CSN would have applied it twice."""
    log = history.rows(TableName.CHANGELOG)
    twice = log.filter(pc.equal(log["csn"], history.csn_of("w7")))
    history.rewrite(TableName.CHANGELOG, pa.concat_tables([log, twice]))

    answer = slackwater("verify", "--json")

    assert "csn" in checks(answer)


@pytest.mark.parametrize(
    "column",
    [
        *("image", "hub_epoch"),
        pytest.param("csn", marks=pytest.mark.slow),
        pytest.param("author", marks=pytest.mark.slow),
    ],
)
def test_a_row_that_was_changed_is_found(
    column: str, history: History, slackwater: Slackwater
) -> None:
    """The full state decides conflicts whose changes are purged one day."""
    others = {"csn": "6553f120000000030000", "author": 3, "hub_epoch": 1}
    others["image"] = '{"k":"k","v":"w9"}'
    first, *rest = standing(history)
    materialize(history, first | {column: others[column]}, *rest)

    answer = slackwater("verify")

    assert answer.code == 1
    assert "the changelog makes it" in answer.out


def test_an_audit_goes_on_with_what_is_new(recorded: History, tmp_path: Path) -> None:
    """Beside a running hub nobody waits for the whole history again; here a hub's first half."""
    whole = recorded.rows(TableName.EPOCHS)
    shutil.copytree(recorded.folder, tmp_path / "hub")
    grown = History(tmp_path / "hub")
    grown.rewrite(TableName.EPOCHS, whole.filter(pc.less_equal(whole["batch"], 6)))
    config, proof = load(grown.folder / "hub.toml"), Proof()

    def grow() -> None:
        grown.rewrite(TableName.EPOCHS, whole)

    rounds = audits_of_what_is_new(config, None, grow, proof.note)

    first, second = next(rounds), next(rounds)

    assert first.is_sound
    assert second.is_sound
    assert (first.from_epoch, first.to_epoch) == (1, 3)
    assert (second.from_epoch, second.to_epoch) == (4, 5)
    assert proof.registry.get_sample_value("slackwater_proven_hub_epoch") == 5
    assert (proof.registry.get_sample_value("slackwater_proof_age_seconds") or 0) >= 0


def test_a_history_with_a_very_large_record_is_read_through(
    history: History, slackwater: Slackwater
) -> None:
    """An earlier version kept all bytes of a record, and twice more in the footer of its file."""
    log = history.rows(TableName.CHANGELOG).to_pylist()
    last = max(log, key=lambda row: row["offset"] if row["rid"] == 1 else -1)
    place = {name: last[name] for name in ("batch", "rid", "offset", "time")}
    spoil(history.state, id="1-0", topic="changes.r1", **place)

    answer = slackwater("verify", "--json")

    assert answer.code == 1
    assert checks(answer) == {"fact"}


def test_the_proof_is_served_to_this_machine_under_its_own_names() -> None:
    """Prometheus asks for it there; a page that a browser shows must not."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = int(found.getsockname()[1])
    url = f"http://127.0.0.1:{port}/metrics"
    strange = urllib.request.Request(url, headers={"host": "evil.example"})

    with Proof().served(port):
        with urllib.request.urlopen(url) as answer:
            text = answer.read().decode()
        with pytest.raises(urllib.error.HTTPError, match="421"):
            urllib.request.urlopen(strange)
        with pytest.raises(ConfigError, match="give another --metrics-port"), Proof().served(port):
            pass

    assert "slackwater_proof_age_seconds" in text
