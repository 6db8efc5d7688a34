"""The pages name files, functions and tests that exist; the tables of rules are complete."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parent.parent
INDEX = CHECKOUT / "docs" / "rules" / "README.md"
RULES = {
    page: [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in page.read_text(encoding="utf-8").splitlines()
        if re.match(r"\| .*`", line)
    ]
    for page in sorted(INDEX.parent.glob("*.md"))
    if page != INDEX
}
"""Page -> its rules, each as (rule, functions, tests)."""
PAGES = ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", *CHECKOUT.glob("docs/**/*.md")]


def quoted(cell: str) -> list[str]:
    """What stands in backticks."""
    return re.findall(r"`([^`]+)`", cell)


def names(file: Path) -> set[str]:
    """Everything that a Python file defines, methods and fields with their class and without."""
    return set(_names(ast.parse(file.read_text(encoding="utf-8")).body, ""))


def _names(body: list[ast.stmt], prefix: str) -> Iterator[str]:
    for node in body:
        match node:
            case ast.ClassDef(name=name, body=inner):
                yield name
                for each in _names(inner, f"{name}."):
                    yield each
                    yield each.removeprefix(f"{name}.")
            case ast.FunctionDef(name=name):
                yield prefix + name
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                yield prefix + name
            case _:
                pass


@pytest.mark.parametrize(
    "rule", [rule for rules in RULES.values() for rule in rules], ids=lambda rule: rule[0][:60]
)
def test_a_rule_names_its_function_and_its_test(rule: list[str]) -> None:
    """A table that names what is gone tells the reader that a rule is held, and it is not."""
    _, functions, tests = rule
    file: Path | None = None
    found = 0
    for name in quoted(functions):
        if name.endswith(".py"):
            file = CHECKOUT / name
            assert file.exists(), name
        else:
            assert file is not None, f"{name} stands without its file"
            assert name in names(file), f"{name} is not in {file}"
            found += 1
    assert found
    assert quoted(tests)
    for name in quoted(tests):
        path, _, function = name.partition("::")
        assert (CHECKOUT / path).exists(), path
        assert not function or function in names(CHECKOUT / path), name


def test_every_page_of_rules_is_in_the_index() -> None:
    """A page that nobody links is not read."""
    listed = set(re.findall(r"\]\((\w+\.md)\)", INDEX.read_text(encoding="utf-8")))

    assert listed == {page.name for page in RULES}
    assert all(RULES.values())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: Path(page).name)
def test_a_file_that_a_page_names_exists(page: str | Path) -> None:
    """Who follows a page into the code must find what it names, and a test by its name."""
    text = (CHECKOUT / page).read_text(encoding="utf-8")
    named = re.findall(r"`([\w.-]+/[\w./-]+\.(?:py|txt|toml|md))(?:::(\w+))?`", text)

    gone = {path for path, _ in named if not (CHECKOUT / path).exists()}
    tests = {(path, name) for path, name in named if name and path not in gone}

    assert gone == set()
    assert {(path, name) for path, name in tests if name not in names(CHECKOUT / path)} == set()
