"""The site of docs/getting-started.md as processes: a hub, agents, two databases of customers."""

import shlex
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from connectors.kafka.embedded.broker import Broker
from tests.docs.test_getting_started import blocks
from tests.harness.hub_process import QUICK_JAVA, wait_until

CUSTOMERS = "SELECT id, name FROM customers ORDER BY id"
PLACES = ("berlin", "lisbon")


def make_site(folder: Path, broker: Broker, prefix: str) -> None:
    """Write the configuration of the page, and make its databases."""
    (table,), (config,) = blocks("sql"), blocks("toml")
    config = config.replace("127.0.0.1:9092", broker.bootstrap_servers)
    config = config.replace("[hub]\n", f'[hub]\ntopic_prefix = "{prefix}"\n')
    spark = f'[spark]\n"spark.driver.extraJavaOptions" = "{QUICK_JAVA}"\n'
    (folder / "hub.toml").write_text(f"{config}\n[http]\nport = 0\n{spark}")
    for place in PLACES:
        with closing(sqlite3.connect(folder / f"{place}.db")) as database:
            database.executescript(table)


def agent(place: str) -> list[str]:
    """The command that starts the agent of a database."""
    return shlex.split(f"slackwater agent --replica {place} --database {place}.db")


@contextmanager
def started(
    folder: Path, words: Sequence[str], log: str = "log"
) -> Iterator["subprocess.Popen[bytes]"]:
    """A command that runs until the block ends, and then is asked to stop; `log`: its file."""
    with (folder / log).open("ab") as file:
        process = subprocess.Popen(
            program(words), cwd=folder, stdin=subprocess.DEVNULL, stdout=file, stderr=file
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
        lambda: f"{[customers(folder, one) for one in PLACES]}\n{logs(folder)}",
    )


def until_yes(folder: Path, words: Sequence[str]) -> None:
    """Wait until a command exits with 0."""
    wait_until(lambda: run(folder, words) == 0, lambda: logs(folder))


def logs(folder: Path) -> str:
    """The end of what each program has written."""
    files = sorted(folder.glob("*log"))
    return "\n".join(f"{one.name}: {one.read_text(errors='replace')[-2_000:]}" for one in files)
