"""Random replicas: CSNs, logs in CSN order, and the RUV of who knows how much of a log."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from streaming.core.model.csn import Csn, CsnParts, format_csn, rid_of
from streaming.core.model.ruv import Element, Ruv
from tests.harness.builders import csn

RIDS = (1, 2, 258, 65_000)

parts = st.builds(
    CsnParts,
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**16 - 1),
    st.integers(0, 2**16 - 1),
    st.integers(0, 2**16 - 1),
)
csns = parts.map(format_csn)


@st.composite
def ruvs(draw: st.DrawFn, generations: Sequence[str] = ("", "6b00623c000000010000")) -> Ruv:
    """A RUV of some replicas, some of which have no CSNs or no URL."""
    elements = {}
    for rid in draw(st.sets(st.sampled_from(RIDS))):
        numbers = draw(st.lists(st.integers(0, 40), min_size=2, max_size=2).map(sorted))
        url = draw(st.sampled_from(("", f"ldap://localhost:{rid}")))
        seen = draw(st.booleans())
        low, high = (csn(number, rid) for number in numbers)
        elements[rid] = Element(low, high, url) if seen else Element(url=url)
    return Ruv(draw(st.sampled_from(generations)), elements)


@dataclass(frozen=True, slots=True)
class History:
    """All that was ever written, in CSN order, and how many of each replica's each side knows."""

    log: tuple[Csn, ...]
    supplier: Mapping[int, int]
    consumer: Mapping[int, int]

    def known(self, counts: Mapping[int, int]) -> list[Csn]:
        """The changes that a side knows, in CSN order."""
        known = {c for rid in RIDS for c in self.of(rid)[: counts.get(rid, 0)]}
        return [c for c in self.log if c in known]

    def of(self, rid: int) -> list[Csn]:
        """One replica's changes."""
        return [c for c in self.log if rid_of(c) == rid]


def ruv_of(known: Iterable[str]) -> Ruv:
    """The RUV of one who knows exactly these."""
    ruv = Ruv()
    for each in sorted(known):
        ruv = ruv.with_csn(each)
    return ruv


@st.composite
def histories(draw: st.DrawFn) -> History:
    """A log of some replicas; a supplier and a consumer that each know a beginning of each."""
    written = draw(st.sets(st.tuples(st.integers(0, 40), st.sampled_from(RIDS)), max_size=40))
    log = tuple(sorted(csn(number, rid) for number, rid in written))
    totals = {rid: sum(rid_of(c) == rid for c in log) for rid in RIDS}
    sides = [{rid: draw(st.integers(0, totals[rid])) for rid in RIDS} for _ in range(2)]
    return History(log, *sides)
