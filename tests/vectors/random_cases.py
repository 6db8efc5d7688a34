"""Random cases of two clusters: what the origin's model makes of random transactions and syncs."""

from collections.abc import Iterator
from random import Random
from typing import Any

from hypothesis import strategies as st

from tests.vectors import origin
from tests.vectors.outcome import Case

COLUMN_FUNCTIONS = ("OLD", "MAX", "MAX_DELETE_WIN", "MAX_INS", "MAX_DEL_WIN_INS")
FUNCTIONS: dict[str, dict[str, str | None]] = {
    **{name: {"t1": name} for name in ("NDB$EPOCH", "NDB$EPOCH(0)", "NDB$EPOCH(1)", "NDB$EPOCH2")},
    "NDB$EPOCH_TRANS": {"t1": "NDB$EPOCH_TRANS"},
    "NDB$EPOCH_TRANS beside others": {"t1": "NDB$EPOCH_TRANS", "t2": "NDB$EPOCH", "t3": None},
    **{f"NDB${name}": {"t1": f"NDB${name}"} for name in COLUMN_FUNCTIONS},
}
"""Functions by table, and what they are called together."""

LENGTH = 30
OPS = ("insert", "update", "update", "delete", "delete")
ENDINGS: tuple[tuple[str, ...], ...] = ((), ("B->A", "A->B"))


@st.composite
def random_cases(draw: st.DrawFn, name: str) -> Case:
    """Cases that shrink: a seed makes the steps, Hypothesis says which of them are taken."""
    random = Random(draw(st.integers(0, 2**32 - 1)))
    taken = draw(st.lists(st.booleans(), min_size=LENGTH, max_size=LENGTH))
    tables = FUNCTIONS[name]
    rows = [(table, key) for table in tables for key in (1, 2)]
    setup = [
        {"table": table, "key": key, "values": _image(random, 0, "x")}
        for table, key in rows
        if random.random() < 0.6
    ]
    told = zip([list(_steps(random, tables, rows, n)) for n in range(LENGTH)], taken, strict=True)
    steps = [step for group, is_taken in told if is_taken for step in group]
    ending = [{"sync": way} for way in draw(st.sampled_from(ENDINGS))]
    return origin.case(setup, [*steps, *ending], name.split(maxsplit=1)[0], tables)


def _steps(
    random: Random, tables: dict[str, Any], rows: list[tuple[str, int]], number: int
) -> Iterator[Case]:
    """A sync, or a transaction, of more writes where transactions go whole."""
    if random.random() < 0.4:
        yield {"sync": random.choice(("A->B", "B->A"))}
        return
    cluster = random.choice("AABBB")
    sizes = (1, 2, 3) if tables["t1"] == "NDB$EPOCH_TRANS" else (1, 1, 1, 1, 1, 1, 1, 2)
    for table, key in random.choices(rows, k=random.choice(sizes)):
        op = random.choice(OPS)
        values = None if op == "delete" else _image(random, number, f"w{number}")
        named = {"cluster": cluster, "op": op, "table": table, "key": key}
        yield {**named, "values": values, "txn": number}


def _image(random: Random, number: int, text: str) -> Case:
    """The column mostly rises, and often ties."""
    return {"b": text, origin.COLUMN: number // 4 + random.randint(1, 3)}
