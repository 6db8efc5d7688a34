"""No text of ours is in the encoding of a machine's country."""

import ast
from pathlib import Path

CHECKOUT = Path(__file__).parent.parent
OURS = ("streaming", "connectors", "checkpoints", "deploy", "examples")
TEXT_ARGUMENTS = {"read_text": 0, "write_text": 1}
"""Method of a path -> the arguments before its encoding."""


def is_of_the_country(call: ast.Call) -> bool:
    """Whether a call reads or writes text and names no encoding."""
    given = {one.arg for one in call.keywords}
    before = TEXT_ARGUMENTS.get(getattr(call.func, "attr", ""))
    is_of_text = "text" in given and bool(given & {"stdout", "capture_output"})
    return "encoding" not in given and (is_of_text or before == len(call.args))


def test_every_text_names_its_encoding() -> None:
    """Else a file that was written in one country is another one in the next."""
    found = [
        f"{file.relative_to(CHECKOUT)}:{node.lineno} {ast.unparse(node)}"
        for top in OURS
        for file in (CHECKOUT / top).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and is_of_the_country(node)
    ]

    assert found == []
