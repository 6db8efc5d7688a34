"""A machine in another country: its digits, letters, zone and encoding change nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

from connectors.kafka.embedded.broker import Broker
from tests.harness.site import Site, site
from tests.harness.sqlite_agents import agents, create, execute, rows

pytestmark = pytest.mark.more

COUNTRIES = {
    "ar-EG": ("ar_EG.UTF-8", "-Duser.language=ar -Duser.country=EG -Duser.extensions=u-nu-arab"),
    "tr-TR": (
        "tr_TR.ISO-8859-9",
        "-Duser.language=tr -Duser.country=TR -Dfile.encoding=ISO-8859-9",
    ),
}
"""Locale -> the variables LANG and LC_ALL, and what a machine of it adds to every JVM."""

TEXT = "kïş \N{LATIN SMALL LETTER DOTLESS I} İI ٠١٢ ∑"
INSERT = "INSERT INTO t VALUES (?, ?)"


@pytest.fixture(params=["ar-EG", pytest.param("tr-TR", marks=pytest.mark.slow)])
def country(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A machine of this locale, whose zone is half an hour off, for every process that starts."""
    locale, options = COUNTRIES[request.param]
    variables = {"LANG": locale, "LC_ALL": locale, "TZ": "Asia/Kolkata"}
    java = dict.fromkeys(("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"), options)
    for name, value in (variables | java).items():
        monkeypatch.setenv(name, value)
    return str(request.param)


def slackwater(at: Site, *arguments: str) -> str:
    """What a process of the command prints; it says yes."""
    command = [sys.executable, "-m", "streaming.cli.entry", *arguments, "--config", str(at.file)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, (arguments, done.stdout, done.stderr)
    return done.stdout


def is_level(at: Site) -> bool:
    """Whether `level` says yes."""
    return bool(at.slackwater("level", "--wait", "20")["level"])


@pytest.mark.more
@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.usefixtures("country")
def test_a_hub_in_another_country_replicates_and_merges(tmp_path: Path) -> None:
    """Delta would look for its log in other digits, and the hub end at each start."""
    limits = {"driver_batch_records": 0, "materialize_every_epochs": 1}
    with (
        Broker.start(tmp_path / "broker") as broker,
        site(tmp_path / "hub", broker.bootstrap_servers, "", "ab", limits) as at,
    ):
        for name in "ab":
            create(at, name)
        with at.hub() as hub:
            with agents(at, "ab"):
                for number in range(6):
                    execute(at, "ab"[number % 2], INSERT, str(number), TEXT)
                execute(at, "a", "DELETE FROM t WHERE k = '0'")
                hub.waits_for(lambda: has_all(at), "both files have the rows, and level says yes")
                hub.waits_for(lambda: is_merged(at), "`rows` has them")
                shown = slackwater(at, "status")
            hub.terminate()
            hub.ends_with(0)
        slackwater(at, "verify")
        listed = slackwater(at, "rows", "t")
        asked = slackwater(at, "sql", "SELECT count(*) AS n, max(v) AS v FROM t", "--json")

    assert "hub epoch" in shown
    assert TEXT in listed
    assert TEXT in asked


def has_all(at: Site) -> bool:
    """Whether both files have the rows that stand, and `level` says yes."""
    wanted = {str(number): TEXT for number in range(1, 6)}
    return rows(at, "a") == rows(at, "b") == wanted and is_level(at)


def is_merged(at: Site) -> bool:
    """Whether a MERGE has brought rows into `rows`."""
    return len(list((at.state / "rows" / "_delta_log").glob("*.json"))) > 1
