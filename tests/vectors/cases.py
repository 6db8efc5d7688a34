"""The cases of the vector files, and ways to make others of them."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tests.vectors.deviations import Deviations
from tests.vectors.matrix_kinds import is_matrix_case
from tests.vectors.outcome import Case
from tests.vectors.tracking_kinds import is_tracking_case

FILES = sorted(Path(__file__).parent.glob("*.json"))
CASES = [case for file in FILES for case in json.loads(file.read_text())["cases"]]
SESSIONS = [case for case in CASES if "changelog" in case]
CONFLICTS = [case for case in CASES if "function" in case]
TRACKING = [case for case in CASES if is_tracking_case(case)]
MATRIX = [case for case in CASES if is_matrix_case(case)]
DEVIATIONS = Deviations.load()


def by_id(cases: list[Case]) -> pytest.MarkDecorator:
    """A test parameter per case."""
    return pytest.mark.parametrize("case", cases, ids=[case["id"] for case in cases])


def broken(case: Case, *path: str | int, value: object) -> Case:
    """The case with another value in one place."""
    changed = copy.deepcopy(case)
    place: Any = changed
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return changed


def session(supplier: Case, consumer: Case, log: list[Any], **more: object) -> Case:
    """A session of short CSNs: (number, rid)."""
    return {
        "id": "made",
        "supplier_ruv": {rid: _span(rid, span) for rid, span in supplier.items()},
        "consumer_ruv": {rid: _span(rid, span) for rid, span in consumer.items()},
        "changelog": [csn(*c) if isinstance(c, tuple) else c for c in log],
        **more,
    }


def csn(number: int, rid: int) -> str:
    """The CSN of a second of its own."""
    return f"{number:08x}0000{rid:04x}0000"


def _span(rid: str, span: tuple[int, int] | None) -> dict[str, str | None] | None:
    return span and dict(zip(("min", "max"), (csn(n, int(rid)) for n in span), strict=True))
