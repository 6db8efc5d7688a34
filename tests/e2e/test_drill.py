"""The disaster drill of docs/deploy.md, command by command, on the site of getting-started.md."""

import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from connectors.kafka.broker import Broker
from tests.docs.test_getting_started import blocks
from tests.harness.hub_process import wait_until

DOCS = Path(__file__).parents[2] / "docs"
CUSTOMERS = "SELECT id, name FROM customers ORDER BY id"
PLACES = ("berlin", "lisbon")


def steps() -> list[list[str]]:
    """The words of each command of the drill."""
    page = (DOCS / "deploy.md").read_text(encoding="utf-8")
    section = page.partition("## A disaster drill\n")[2].partition("\n## ")[0]
    return [
        shlex.split(text) for text in re.findall(r"```sh\n(.*?)```", section, re.DOTALL) if text
    ]


@contextmanager
def started(folder: Path, words: Sequence[str]) -> Iterator["subprocess.Popen[bytes]"]:
    """A command that runs until the block ends, and then is asked to stop."""
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            program(words), cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def program(words: Sequence[str]) -> list[str]:
    """The command line of a command of the page."""
    if words[0] != "slackwater":
        return [*words]
    return [sys.executable, "-m", "streaming.cli.entry", *words[1:]]


def run(folder: Path, words: Sequence[str]) -> int:
    """The exit code of a command that ends."""
    with (folder / "log").open("ab") as log:
        return subprocess.run(
            program(words), cwd=folder, stdout=log, stderr=log, check=False
        ).returncode


def customers(folder: Path, place: str) -> list[tuple[int, str]]:
    """What a database holds."""
    with closing(sqlite3.connect(folder / f"{place}.db")) as database:
        return database.execute(CUSTOMERS).fetchall()


def write(folder: Path, place: str, id_: int, name: str) -> None:
    """Write a customer with a plain client."""
    with closing(sqlite3.connect(folder / f"{place}.db", timeout=60)) as database:
        database.execute(
            "INSERT INTO customers (id, name) VALUES (?, ?)"
            " ON CONFLICT (id) DO UPDATE SET name = excluded.name",
            (id_, name),
        )
        database.commit()


def until_both_hold(folder: Path, *expected: tuple[int, str]) -> None:
    """Wait until both databases hold these customers, and the hub says so."""
    wait_until(
        lambda: all(customers(folder, place) == [*expected] for place in PLACES),
        lambda: f"{[customers(folder, one) for one in PLACES]}\n{(folder / 'log').read_text()}",
    )


def until_yes(folder: Path, words: Sequence[str]) -> None:
    """Wait until a command exits with 0."""
    wait_until(lambda: run(folder, words) == 0, lambda: (folder / "log").read_text()[-2_000:])


def test_a_lost_state_is_put_back_as_the_page_says(
    tmp_path: Path, broker: Broker, topic_prefix: str
) -> None:
    """What was written behind the copy is at both places in the end, and the history is sound."""
    backup, lose, restore, begin, level, verify = steps()
    (table,), (config,) = blocks("sql"), blocks("toml")
    config = config.replace("127.0.0.1:9092", broker.bootstrap_servers)
    config = config.replace("[hub]\n", f'[hub]\ntopic_prefix = "{topic_prefix}"\n')
    (tmp_path / "hub.toml").write_text(f"{config}\n[http]\nport = 0\n")
    for place in PLACES:
        with closing(sqlite3.connect(tmp_path / f"{place}.db")) as database:
            database.executescript(table)
    agents = [f"slackwater agent --replica {one} --database {one}.db".split() for one in PLACES]
    with started(tmp_path, agents[0]), started(tmp_path, agents[1]):
        with started(tmp_path, begin):
            write(tmp_path, "berlin", 1, "Ada")
            until_both_hold(tmp_path, (1, "Ada"))
            until_yes(tmp_path, level)
            assert run(tmp_path, backup) == 0
            write(tmp_path, "lisbon", 1, "Ada Lovelace")
            write(tmp_path, "berlin", 2, "Grace")
            until_both_hold(tmp_path, (1, "Ada Lovelace"), (2, "Grace"))
            until_yes(tmp_path, level)

        assert run(tmp_path, lose) == 0
        assert run(tmp_path, restore) == 0
        with started(tmp_path, begin):
            write(tmp_path, "lisbon", 3, "Edsger")
            until_both_hold(tmp_path, (1, "Ada Lovelace"), (2, "Grace"), (3, "Edsger"))
            until_yes(tmp_path, level)
        assert run(tmp_path, verify) == 0
    assert os.path.lexists(tmp_path / "state.lost")
