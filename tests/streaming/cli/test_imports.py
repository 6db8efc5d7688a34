"""Claims about what a command imports: its start is what an operator in trouble waits for."""

import json
import subprocess
import sys

import pytest
from typer.core import TyperCommand

from streaming.cli.commands import COMMANDS
from streaming.cli.lazy import CommandPlace, imported
from tests.checkpoints.written_state import WrittenState, ruv
from tests.rooms import CHECKOUT

TABLES = {"deltalake", "numpy", "pyarrow"}
NEVER = {
    *("confluent_kafka", "kafka", "pandas", "py4j", "pydantic_settings", "pyspark", "starlette"),
    *("uvicorn", "pyarrow.compute", "pyarrow.dataset", "streaming.stages", "connectors.wire"),
    *("streaming.cli.look.flight", "streaming.facts.consumers.flight", "pyarrow.fs", "rich"),
}
"""What no command needs that only reads what the last commit says."""
NEVER_OF_STATUS = {"numpy", "streaming.core.conflict.judge", "streaming.core.batch.sending"}
"""What decides, and what computes; `status` reads what was decided, counted and sent."""
COLLECTIONS_MAX = 100
"""While everything is imported Python would look for young garbage 140 times, and find none."""

RUN = """
import json, sys
from streaming.cli.entry import main
sys.argv[0] = "slackwater"
code = main()
sys.stdout.flush()
sys.stderr.write("\\n" + json.dumps([code, *sys.modules]))
"""


def modules_of(*arguments: str) -> set[str]:
    """The modules that a process of this command has imported when it ends with an answer."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, *arguments], capture_output=True, text=True, check=True
    )
    code, *names = json.loads(done.stderr.splitlines()[-1])
    assert done.stdout, done.stderr
    assert code in {0, 1}
    return set(names)


def ours(modules: set[str]) -> list[str]:
    """Those of this project that hold more than the name of a folder."""
    mine = [m for m in modules if m.split(".")[0] in {"streaming", "connectors", "checkpoints"}]
    return [m for m in mine if not (CHECKOUT / m.replace(".", "/")).is_dir()]


@pytest.mark.parametrize("arguments", [("--help",), ("--version",)])
def test_a_list_of_commands_imports_none_of_them(arguments: tuple[str, ...]) -> None:
    """It is the first thing that a new user tries, and completion does the same at each key."""
    found = modules_of(*arguments)

    assert found & (NEVER | TABLES | {"logging", "pydantic", "structlog"}) == set()
    assert len(ours(found)) <= 25


def test_the_help_of_a_command_imports_no_other_command() -> None:
    """Somebody looks for an option: the other forty commands have nothing to say about it."""
    found = modules_of("services", "--help")

    commands = {one.place.partition(":")[0] for one in COMMANDS}
    assert found & commands == {"streaming.cli.start.services"}


@pytest.mark.parametrize("arguments", [("status",), ("conflicts", "list"), ("quarantine", "list")])
def test_a_reading_command_imports_what_reads_a_table_and_no_more(
    state: WrittenState, arguments: tuple[str, ...]
) -> None:
    """Kafka's clients, Spark and the functions of Arrow are seconds that a reader waits for."""
    state.commit(1, 1, ruv(r1=1))

    found = modules_of(*arguments)

    assert found & (NEVER | (NEVER_OF_STATUS if arguments == ("status",) else set())) == set()


def test_what_a_command_imports_is_not_searched_for_garbage(state: WrittenState) -> None:
    """That is a tenth of a command's time, and what is imported stays anyway."""
    state.commit(1, 1, ruv(r1=1))
    looked = "import atexit, gc\natexit.register(lambda: print(gc.get_stats()[0]['collections']))\n"

    done = subprocess.run(
        [sys.executable, "-c", f"{looked}{RUN}", "status"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert int(done.stdout.splitlines()[-1]) <= COLLECTIONS_MAX


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: one.name)
def test_a_command_is_listed_with_the_first_sentence_of_its_own_help(command: CommandPlace) -> None:
    """The list is written by hand; what it says and what the command says may not differ."""
    listed = TyperCommand(command.name, help=command.help)

    assert imported(command).get_short_help_str(1_000) == listed.get_short_help_str(1_000)
