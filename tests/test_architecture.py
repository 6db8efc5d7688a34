"""ARCHITECTURE.md names files, functions and tests that exist."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parent.parent
TEXT = (CHECKOUT / "ARCHITECTURE.md").read_text(encoding="utf-8")
RULES = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in TEXT.partition("## The rules of the documents")[2].splitlines()
    if re.match(r"\| .*`", line)
]


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


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule[0][:60])
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


def test_every_document_has_its_rules() -> None:
    """Three documents, none of them with a handful of lines only."""
    parts = TEXT.partition("## The rules of the documents")[2].split("### ")[1:]

    assert len(parts) == 3
    assert all(part.count("\n| ") > 20 for part in parts)


def test_files_that_the_text_names_exist() -> None:
    """Who follows one change through the hub must find every station."""
    told = {q for q in quoted(TEXT) if re.fullmatch(r"[\w/]+\.(py|txt|toml)", q)}
    places = ("", "streaming/", "streaming/stages/")

    assert told
    assert not {q for q in told if not any((CHECKOUT / p / q).exists() for p in places)}
