"""Every property is tried on many more cases by `make test-deep`."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.examples import USUAL

TESTS = Path(__file__).parent.parent
ALLOWED = {TESTS / "harness/examples.py", Path(__file__)}


def test_the_number_of_examples_has_one_home() -> None:
    """A number that a test fixes is the same in a deep run, which then proves nothing more."""
    found = [
        str(file.relative_to(TESTS))
        for file in TESTS.rglob("*.py")
        if file not in ALLOWED and re.search(r"\b(max_examples|derandomize)\b", file.read_text())
    ]

    assert found == []


@pytest.mark.parametrize(
    ("deep", "rotation", "asked", "expected"),
    [
        (0, "", "is_fixed=True", (USUAL, True)),
        (0, "", "300, share=1", (300, False)),
        (0, "017", "is_fixed=True", (USUAL, False)),
        (8_000, "", "is_fixed=True", (2_000, False)),
        (8_000, "", "300, share=1, is_fixed=True", (8_000, False)),
        (8_000, "", "45, share=40", (200, False)),
        (40, "", "", (USUAL, False)),
    ],
)
def test_a_deep_run_is_random_and_never_smaller(
    deep: int, rotation: str, asked: str, expected: tuple[int, bool]
) -> None:
    """Its seed is printed, so nothing in it is fixed otherwise; what is expensive gets a share.

    A run with a rotation is as large as the usual one, and has other cases.
    """
    program = f"from tests.harness.examples import examples; s = examples({asked})"
    done = subprocess.run(
        [sys.executable, "-c", f"{program}; print((s.max_examples, s.derandomize))"],
        cwd=TESTS.parent,
        env={
            **os.environ,
            "SLACKWATER_EXAMPLES": str(deep),
            "SLACKWATER_ROTATION": rotation,
        },
        check=True,
        capture_output=True,
        text=True,
    )

    assert done.stdout.strip() == str(expected)
