"""Imports go one way: core <- stages <- carriers <- pipeline <- service <- cli; facts <- cli."""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.rooms import CHECKOUT, MAY_IMPORT, PAGE, dotted, page

OURS = ("streaming", "connectors", "checkpoints")
PRIVATE = "streaming/jvm/private.py"
OF_PYSPARK = {
    *("_jc", "_jdf", "_jmap", "_jrdd", "_jreader", "_jsc", "_jsparkSession", "_jvm", "_jwrite"),
    *("_gateway", "_load_from_socket"),
}
"""Names that pyspark keeps to itself: its handles of Java objects, and helpers around them."""

OWN_JSON = {
    *(
        "checkpoints/maintenance/backup.py",
        "checkpoints/commit/last_poll.py",
        "streaming/carriers/read.py",
    ),
    *(
        "streaming/cli/start/config.py",
        "streaming/config/history.py",
        "streaming/replay/what_if.py",
    ),
    *("streaming/core/model/command.py", "streaming/core/replay/pins.py"),
    *("streaming/demo/verdict/evidence.py", "streaming/demo/verdict/timing.py"),
    "streaming/demo/parts.py",
}
"""Who reads JSON that this program, or Spark, has written itself; others ask foreign_json."""

IN_CORE = {"pyspark", "delta", "deltalake", "pyarrow", "kafka", "os", "time", "random", "secrets"}

DATABASES = {"sqlite3", "psycopg", "psycopg2", "asyncpg"}


def imports(place: Path) -> Iterator[tuple[str, str]]:
    """Each file below the place with each module that it imports."""
    files = place.rglob("*.py") if place.is_dir() else [place]
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                if (CHECKOUT / node.module.replace(".", "/")).is_dir():  # it gives modules
                    for alias in node.names:
                        yield str(file), f"{node.module}.{alias.name}"
                else:
                    yield str(file), node.module
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    yield str(file), alias.name


def is_below(module: str, packages: tuple[str, ...]) -> bool:
    """Whether the module is one of the packages or in one."""
    return any(module == package or module.startswith(f"{package}.") for package in packages)


@pytest.mark.parametrize("place", MAY_IMPORT)
def test_nothing_imports_from_above(place: str) -> None:
    """What the rules know of the machinery around them, nobody can test or reuse without it."""
    upward = [
        (file, module)
        for file, module in imports(CHECKOUT / place)
        if is_below(module, OURS) and not is_below(module, MAY_IMPORT[place])
    ]

    assert upward == []


def test_no_module_imports_itself_through_others() -> None:
    """Nobody can read, test or replace one of a circle alone; also one that is imported late."""
    graph = defaultdict[str, set[str]](set)
    for top in OURS:
        for file, module in imports(CHECKOUT / top):
            if is_below(module, OURS):
                graph[dotted(str(Path(file).relative_to(CHECKOUT)))].add(module)

    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_the_page_shows_the_rooms_as_they_are() -> None:
    """`make docs` writes them; a reader believes the table."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_core_knows_no_spark_no_clock_and_no_environment() -> None:
    """Values in, values out: that is what makes the core a model to test everything against."""
    impure = [
        (file, module)
        for file, module in imports(CHECKOUT / "streaming" / "core")
        if module.split(".")[0] in IN_CORE
    ]

    assert impure == []


def test_private_parts_of_pyspark_are_used_in_one_file() -> None:
    """A new Spark changes them without notice; then there is one file to look at."""
    files = [file for top in OURS for file in (CHECKOUT / top).rglob("*.py")]

    users = {
        file.relative_to(CHECKOUT).as_posix()
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if name_of(node) in OF_PYSPARK
    }

    assert users == {PRIVATE}


def test_what_others_wrote_is_read_as_json_within_bounds() -> None:
    """A record of 500,000 brackets ends whoever reads it with json.loads."""
    users = {
        file.relative_to(CHECKOUT).as_posix()
        for top in OURS
        for file in (CHECKOUT / top).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if (isinstance(node, ast.Attribute) and ast.unparse(node) in {"json.load", "json.loads"})
        or (isinstance(node, ast.ImportFrom) and node.module == "json")
    }

    assert users == OWN_JSON


def name_of(node: ast.AST) -> str:
    """The attribute or the imported name that a node is about; empty for others."""
    match node:
        case ast.Attribute(attr=name) | ast.alias(name=name):
            return name
        case _:
            return ""


def test_facts_are_computed_without_a_terminal() -> None:
    """The command line prints what HTTP and metrics will serve: the same values."""
    found = [
        (file, module)
        for file, module in imports(CHECKOUT / "streaming" / "facts")
        if module.split(".")[0] in {"typer", "rich", "sys"}
    ]

    assert found == []


def test_the_agents_loop_imports_no_database() -> None:
    """A second database needs a connector of its own, not a second loop."""
    found = [
        (file, module)
        for file, module in imports(CHECKOUT / "connectors" / "agent")
        if module.split(".")[0] in DATABASES
    ]

    assert found == []


def test_no_two_files_of_the_tests_have_one_name() -> None:
    """A name in a traceback or in an editor's list then names one file."""
    names = Counter(path.name for path in (CHECKOUT / "tests").rglob("*.py"))

    assert {name for name, count in names.items() if count > 1} <= {"__init__.py", "conftest.py"}
